"""Windows whose starts follow the text: sentence borders and densities."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import TextError
from headrace.text import DynamicStride, Tokens, Windows

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


def test_a_density_must_be_a_number_for_each_token() -> None:
    with pytest.raises(TextError, match="one finite number of at least 0"):
        len(Windows([[1, 2, 3]], 2, DynamicStride(lambda ids: -np.ones(ids.size), mean=1)))
