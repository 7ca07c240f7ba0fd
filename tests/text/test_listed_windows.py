"""Windows whose starts follow the text: sentence borders and densities."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import TextError
from headrace.text import DynamicStride, Tokens, Windows
from headrace.text.streams import Streams

Everything = Callable[..., dict[str, Any]]


def aligned(length: int, window: int, stride: int, borders: set[int], offset: int) -> list[tuple[int, int]]:
    """The definition: previous start + S, moved back to the nearest border within W // 4, if after it."""
    found, start, end, following = [], 0, offset - stride + window if offset else window, offset or stride
    while length:
        found.append((start, min(end, length)))
        if end >= length:
            break
        near = [b for b in borders if max(start + 1, following - window // 4) <= b <= following]
        start = max(near, default=following)
        end, following = start + window, start + stride
    return found


@given(st.lists(st.integers(0, 30), min_size=1, max_size=4), st.integers(1, 12), st.data())
@settings(max_examples=200, deadline=None)
def test_starts_move_back_to_sentences(
    everything: Everything, lengths: list[int], window: int, data: Any
) -> None:
    stride = data.draw(st.integers(1, window))
    offset = data.draw(st.integers(0, stride - 1))
    offsets = np.cumsum([0, *lengths])
    borders = data.draw(st.sets(st.integers(0, max(0, int(offsets[-1]) - 1)))) if offsets[-1] else set()
    tokens = Tokens.from_arrays(
        np.arange(offsets[-1]).astype(np.uint8), offsets, sentence_starts=sorted(borders)
    )
    windows = Windows(tokens, window, stride, align="sentence", offset=offset, outputs=("start", "length"))
    batch = everything(windows)
    right = [
        bounds
        for begin, length in zip(offsets, lengths, strict=False)
        for bounds in aligned(length, window, stride, {b - int(begin) for b in borders}, offset)
    ]
    assert list(zip(batch["start"], batch["start"] + batch["length"], strict=True)) == right


def test_alignment_by_hand(everything: Everything) -> None:
    tokens = Tokens.from_arrays(np.arange(20, dtype=np.uint8), [0, 20], sentence_starts=[0, 6, 11])
    batch = everything(Windows(tokens, 8, align="sentence", outputs=("start",)))
    assert batch["start"].tolist() == [0, 6, 14]


def test_joined_streams_are_aligned_too(everything: Everything) -> None:
    tokens = Tokens.from_arrays(np.arange(12, dtype=np.uint8), [0, 5, 12], sentence_starts=[0, 9])
    batch = everything(
        Windows(tokens, 6, align="sentence", pack="concat", eos=99, outputs=("document", "start"))
    )
    assert list(zip(batch["document"], batch["start"], strict=True)) == [(0, 0), (1, 0), (1, 6)]


def test_min_remainder_and_shift_apply_to_listed_windows(everything: Everything) -> None:
    tokens = Tokens.from_arrays(np.arange(20, dtype=np.uint8), [0, 20], sentence_starts=[0, 6, 11])
    shifted = everything(Windows(tokens, 8, align="sentence", tail="shift", outputs=("start",)))
    assert shifted["start"].tolist() == [0, 6, 12]
    assert len(Windows(tokens, 8, align="sentence", min_remainder=7)) == 2
    assert len(Windows(tokens, 8, align="sentence", tail="drop")) == 2


def test_a_constant_density_gives_a_constant_stride(everything: Everything) -> None:
    stride = DynamicStride(lambda ids: np.ones(ids.size), mean=5)
    starts = everything(Windows([list(range(100))], 10, stride, outputs=("start",)))["start"]
    assert np.diff(starts).tolist() == [5] * (len(starts) - 1)


@pytest.mark.parametrize("density", ["edges", "surprisal"])
@pytest.mark.parametrize("pack", [False, "concat"])
def test_the_mean_stride_is_the_wanted_one(everything: Everything, density: str, pack: Any) -> None:
    ids = (np.arange(20_000) ** 2 % 251 % 90).tolist()
    stride = DynamicStride(density, mean=12.0, minimum=2)  # type: ignore[arg-type]
    windows = Windows([ids[:7000], ids[7000:]], 64, stride, pack=pack, eos=95, outputs=("document", "start"))
    batch = everything(windows)
    strides = np.diff(batch["start"])[np.diff(batch["document"]) == 0]
    assert 11.0 < strides.mean() < 13.0
    assert strides.min() >= 2
    assert strides.max() <= 64


def test_edges_are_denser_at_both_ends(everything: Everything) -> None:
    windows = Windows([[1] * 4000], 64, DynamicStride("edges", mean=16.0), outputs=("start",))
    starts = everything(windows)["start"]
    assert np.count_nonzero(starts < 400) > 1.5 * np.count_nonzero((starts >= 1800) & (starts < 2200))


@given(st.lists(st.lists(st.integers(0, 5), max_size=40), max_size=4), st.integers(1, 8), st.data())
@settings(max_examples=80, deadline=None)
def test_dynamic_windows_skip_nothing_and_repeat_no_window(
    everything: Everything, documents: list[list[int]], window: int, data: Any
) -> None:
    least = data.draw(st.integers(1, window))
    most = data.draw(st.integers(least, window))
    mean = (least + most) / 2
    stride = DynamicStride(lambda ids: ids.astype(float), mean, minimum=least, maximum=most)
    batch = everything(Windows(documents, window, stride, outputs=("document", "start", "length")))
    for number, document in enumerate(documents):
        mine = batch["document"] == number
        starts, ends = batch["start"][mine], (batch["start"] + batch["length"])[mine]
        assert (len(starts) > 0) == (len(document) > 0)
        if document:
            assert starts[0] == 0
            assert ends[-1] == len(document)
        for end, following in pairwise(ends):
            assert end < following
        assert least <= np.diff(starts).min(initial=least)
        assert np.diff(starts).max(initial=most) <= most


@given(
    st.lists(st.lists(st.integers(0, 6), max_size=14), max_size=5),
    st.integers(2, 9),
    st.sampled_from(["next", "same"]),
    st.sampled_from([False, "concat"]),
    st.data(),
)
@settings(max_examples=150, deadline=None)
def test_every_token_is_scored_once_whatever_the_cut(
    everything: Everything, documents: list[list[int]], window: int, labels: Any, pack: Any, data: Any
) -> None:
    stride = data.draw(st.integers(1, window - 1 if labels == "same" else window))
    offsets = np.cumsum([0, *map(len, documents)])
    borders = data.draw(st.sets(st.integers(0, max(0, int(offsets[-1]) - 1)))) if offsets[-1] else set()
    values = np.array([token for document in documents for token in document], np.uint8)
    tokens = Tokens.from_arrays(values, offsets, sentence_starts=sorted(borders))
    how: dict[str, Any] = data.draw(
        st.sampled_from(
            [
                {"stride": stride, "align": "sentence"},
                {"stride": stride, "align": "sentence", "offset": "random"},
                {"stride": stride, "offset": "random"},
                {"stride": DynamicStride("edges", (1 + stride) / 2, maximum=stride)},
                {"stride": DynamicStride("surprisal", (1 + stride) / 2, maximum=stride)},
            ]
        )
    )
    more: dict[str, Any] = {"tail": data.draw(st.sampled_from(["pad", "shift"])), "eos": 7, "pad_id": 0}
    windows = Windows(tokens, window, pack=pack, labels=labels, overlap_labels=False, **how, **more)
    epoch = data.draw(st.integers(0, 3))
    found = everything(windows, 1, epoch)["labels"]
    wanted = [token for document in documents for token in [*document, 7][1:]]
    assert sorted(found[found != -100].tolist()) == sorted(wanted)
    summary = windows.summary(1, epoch)
    assert (summary.live_labels, summary.tokens_left_out) == (len(wanted), 0)


def test_a_density_must_be_a_number_for_each_token() -> None:
    with pytest.raises(TextError, match="one finite number of at least 0"):
        len(Windows([[1, 2, 3]], 2, DynamicStride(lambda ids: -np.ones(ids.size), mean=1)))


def densities(documents: list[list[int]], kind: str) -> list[list[float]]:
    """The definitions: the arcsine density of a place, -log2 of a token's share, a function's own."""
    counts = Counter(token for document in documents for token in document)
    total = sum(counts.values())

    def at(document: list[int], place: int) -> float:
        share = (place + 0.5) / len(document)
        if kind == "edges":
            return 1 / (math.pi * math.sqrt(share * (1 - share)))
        return math.log2(total / counts[document[place]]) if kind == "surprisal" else float(document[place])

    return [[at(document, place) for place in range(len(document))] for document in documents]


@given(
    st.lists(st.lists(st.integers(0, 5), max_size=40), min_size=1, max_size=4),
    st.integers(1, 8),
    st.sampled_from(["edges", "surprisal", "own"]),
    st.sampled_from([False, "concat"]),
    st.sampled_from([1, 3, 1 << 20]),
    st.data(),
)
@settings(max_examples=150, deadline=None)
def test_one_quantum_explains_every_start(
    everything: Everything,
    documents: list[list[int]],
    window: int,
    kind: str,
    pack: Any,
    block: int,
    data: Any,
) -> None:
    least = data.draw(st.integers(1, window))
    most = data.draw(st.integers(least, window))
    density: Any = (lambda ids: ids.astype(float)) if kind == "own" else kind
    stride = DynamicStride(density, (least + most) / 2, least, most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headrace.text.dynamic._BLOCK_TOKENS", block)
        windows = Windows(documents, window, stride, pack=pack, eos=False, outputs=("document", "start"))
        batch = everything(windows)
    places = np.cumsum([0, *map(len, documents)])[batch["document"]] + batch["start"]
    values = np.concatenate([np.empty(0), *densities(documents, kind)])
    above, at_most = -np.inf, np.inf
    streams = [0] * len(batch["document"]) if pack else batch["document"].tolist()
    for (a, b), (stream, following) in zip(pairwise(places.tolist()), pairwise(streams), strict=True):
        if stream == following:
            sums = np.cumsum(values[a:b])
            if b - a > least:
                above = max(above, sums[-2])
            if b - a < most:
                at_most = min(at_most, sums[-1])
    assert above < at_most * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("density", ["edges", "surprisal"])
@pytest.mark.parametrize("pack", [False, "concat"])
def test_one_huge_document_is_never_read_whole(
    everything: Everything, monkeypatch: pytest.MonkeyPatch, density: Any, pack: Any
) -> None:
    monkeypatch.setattr("headrace.text.dynamic._BLOCK_TOKENS", 1 << 12)
    monkeypatch.setattr("headrace.text.dynamic._SAMPLE_TOKENS", 1 << 13)
    monkeypatch.setattr("headrace.text.dynamic._PIECE_TOKENS", 1 << 9)
    read: list[int] = []
    ids_of = Streams.ids

    def recorded(streams: Streams, begin: int, end: int) -> Any:
        read.append(end - begin)
        return ids_of(streams, begin, end)

    monkeypatch.setattr(Streams, "ids", recorded)
    ids = (np.arange(300_000) ** 2 % 251 % 90).astype(np.uint8)
    tokens = Tokens.from_arrays(ids, [0, 299_000, 300_000])
    stride = DynamicStride(density, mean=12.0, minimum=2)
    batch = everything(Windows(tokens, 64, stride, pack=pack, eos=255, outputs=("document", "start")))
    assert max(read, default=0) <= 1 << 12
    strides = np.diff(batch["start"])[np.diff(batch["document"]) == 0]
    assert abs(strides.mean() - 12.0) < 0.1


def test_a_function_sees_whole_documents_and_no_empty_one(everything: Everything) -> None:
    seen: list[list[int]] = []

    def density(ids: np.ndarray) -> np.ndarray:
        seen.append(ids.tolist())
        return np.ones(ids.size)

    documents = [[], [1, 2, 3], [], [4], [], []]
    for block in (1, 2, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("headrace.text.dynamic._BLOCK_TOKENS", block)
            seen.clear()
            len(Windows(documents, 2, DynamicStride(density, mean=1)))
            assert {tuple(ids) for ids in seen} == {(1, 2, 3), (4,)}


@pytest.mark.parametrize("wrong", [-100, -(1 << 40), 1 << 26, (1 << 62)])
def test_ids_that_cannot_be_counted_are_refused(wrong: int) -> None:
    tokens = Tokens.from_arrays(np.array([1, wrong, 2]), [0, 3])
    with pytest.raises(TextError, match=r"counts how often each id comes, and ids run from"):
        len(Windows(tokens, 2, DynamicStride("surprisal", mean=1)))
