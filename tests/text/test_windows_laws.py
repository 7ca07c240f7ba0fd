"""Windows against a plain reference: any documents, any settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headrace.text.tokens import Tokens, dtype_for
from headrace.text.windows import Windows

ALL = ("input_ids", "labels", "attention_mask", "segment_ids", "position_ids", "document", "start", "length")
PAD = 0

# A cell is (document, place in it, id). A row is (cells, how many of them an earlier row holds).
Cell = tuple[int, int, int]
Row = tuple[list[Cell], int]


def with_eos(document: list[int], eos: int | None) -> list[int]:
    return document if eos is None or document[-1:] == [eos] else [*document, eos]


def streams_of(documents: list[list[int]], pack: object, eos: int | None) -> list[list[Cell]]:
    cells = [[(d, i, t) for i, t in enumerate(with_eos(doc, eos))] for d, doc in enumerate(documents)]
    return [[cell for part in cells for cell in part]] if pack == "concat" else cells


def bounds_of(length: int, window: int, stride: int, offset: int) -> list[tuple[int, int]]:
    """Windows by walking: [0, ...), then offset (or stride), then one stride at a time, until the end."""
    found, start = [], (offset - stride if offset else 0)
    while length and (not found or found[-1][1] < length):
        found.append((max(0, start), min(length, start + window)))
        start += stride
    return found


def rows_of(
    stream: list[Cell], window: int, stride: int, offset: int, tail: str, min_remainder: int
) -> list[Row]:
    bounds = bounds_of(len(stream), window, stride, offset)
    ends = [0, *(end for _, end in bounds)]
    if bounds and bounds[-1][1] - bounds[-1][0] < window:
        start, end = bounds.pop()
        if tail != "drop" and end - ends[-2] >= min_remainder:
            bounds.append((max(0, end - window) if tail == "shift" else start, end))
    return [(stream[start:end], max(0, ends[number] - start)) for number, (start, end) in enumerate(bounds)]


def expected(rows: list[Row], documents: list[list[int]], window: int, **how: Any) -> dict[str, Any]:
    full = [with_eos(document, how["eos"]) for document in documents]
    out: dict[str, list[list[int]]] = {name: [] for name in ALL}
    for cells, seen in rows:
        segment, place, line = 0, 0, {name: [] for name in ALL[:5]}
        for column, (d, i, token) in enumerate(cells):
            begins = column == 0 or cells[column - 1][0] != d
            segment, place = (segment + 1, 0) if begins else (segment, place + 1)
            if how["labels"] == "next":
                label = full[d][i + 1] if i + 1 < len(full[d]) else -100
            else:
                label = -100 if begins else token
            hidden = not how["overlap_labels"] and column < seen
            line["input_ids"].append(token)
            line["labels"].append(-100 if hidden else label)
            line["attention_mask"].append(1)
            line["segment_ids"].append(segment)
            line["position_ids"].append({"segment": place, "window": column, "document": i}[how["positions"]])
        for name, filler in zip(ALL[:5], (PAD, -100, 0, 0, 0), strict=True):
            out[name].append(line[name] + [filler] * (window - len(cells)))
        for name, value in zip(ALL[5:], (cells[0][0], cells[0][1], len(cells)), strict=True):
            out[name].append(value)
    return out


def everything(windows: Windows, seed: int = 0, epoch: int = 0) -> dict[str, Any]:
    space = windows.at(seed, epoch)
    return space.gather(np.arange(len(space)), np.arange(len(space), dtype=np.uint64))


pytestmark = pytest.mark.filterwarnings("ignore:labels='same':UserWarning")

documents_of_tokens = st.lists(st.lists(st.integers(0, 7), max_size=14), max_size=6)


@st.composite
def settings_of_windows(draw: Any) -> dict[str, Any]:
    window = draw(st.integers(1, 9))
    stride = draw(st.integers(1, window))
    most = stride if stride < window else window + 2
    return {
        "window": window,
        "stride": stride,
        "pack": draw(st.sampled_from([False, "concat"])),
        "tail": draw(st.sampled_from(["pad", "drop", "shift"])),
        "min_remainder": draw(st.integers(0, most)),
        "offset": draw(st.integers(0, stride - 1)),
        "labels": draw(st.sampled_from(["next", "same"])),
        "overlap_labels": draw(st.booleans()),
        "positions": draw(st.sampled_from(["segment", "window", "document"])),
        "eos": draw(st.sampled_from([False, 7])),
    }


@given(documents_of_tokens, settings_of_windows())
@settings(max_examples=400, deadline=None)
def test_all_arrays_are_as_the_reference_says(documents: list[list[int]], how: dict[str, Any]) -> None:
    eos = how["eos"] or None
    rows = [
        row
        for stream in streams_of(documents, how["pack"], eos)
        for row in rows_of(
            stream, how["window"], how["stride"], how["offset"], how["tail"], how["min_remainder"]
        )
    ]
    windows = Windows(documents, pad_id=PAD, outputs=ALL, **how)
    found = everything(windows)
    right = expected(rows, documents, **{**how, "eos": eos})
    assert len(windows) == len(rows)
    for name in ALL:
        assert found[name].dtype == np.int64
        assert found[name].tolist() == right[name], name


@given(documents_of_tokens, st.lists(st.integers(0, 6), max_size=3), settings_of_windows())
@settings(max_examples=100, deadline=None)
def test_several_shards_are_as_one(
    documents: list[list[int]], borders: list[int], how: dict[str, Any]
) -> None:
    one = Tokens.from_documents(documents, vocab_size=8)
    cuts = sorted(int(one.offsets[min(border, len(documents))]) for border in borders)
    several = Tokens(tuple(part.copy() for part in np.split(one.values[0], cuts)), one.offsets)
    left, right = (everything(Windows(tokens, outputs=ALL, pad_id=PAD, **how)) for tokens in (one, several))
    for name in ALL:
        np.testing.assert_array_equal(left[name], right[name])


@given(st.integers(0, 60), st.integers(1, 12), st.data())
@settings(max_examples=100, deadline=None)
def test_the_count_is_the_formula(length: int, window: int, data: Any) -> None:
    stride = data.draw(st.integers(1, window))
    count = 0 if length == 0 else 1 if length <= window else 1 + -(-(length - window) // stride)
    assert len(Windows([[1] * length], window, stride)) == count


@given(documents_of_tokens, settings_of_windows())
@settings(max_examples=150, deadline=None)
def test_every_token_is_scored_exactly_once(documents: list[list[int]], how: dict[str, Any]) -> None:
    assume(how["tail"] != "drop" and how["min_remainder"] <= 1)
    assume(how["labels"] == "next" or (how["stride"] < how["window"] and how["offset"] == 0))
    how = {**how, "overlap_labels": False, "positions": "document"}
    eos = how["eos"] or None
    full = [with_eos(document, eos) for document in documents]
    batch = everything(Windows(documents, outputs=ALL, pad_id=PAD, **how))
    scored = batch["labels"][batch["labels"] != -100].tolist()
    wanted = [token for document in full for token in document[1:]]
    assert sorted(scored) == sorted(wanted)


@given(documents_of_tokens, settings_of_windows())
@settings(max_examples=100, deadline=None)
def test_masks_segments_positions_and_lengths_agree(documents: list[list[int]], how: dict[str, Any]) -> None:
    batch = everything(Windows(documents, outputs=ALL, pad_id=PAD, **how))
    live = np.arange(how["window"]) < batch["length"][:, None]
    np.testing.assert_array_equal(batch["attention_mask"] == 1, live)
    np.testing.assert_array_equal(batch["segment_ids"] > 0, live)
    assert not batch["position_ids"][~live].any()
    assert (batch["labels"][~live] == -100).all()
    assert (batch["input_ids"][~live] == PAD).all()


@given(st.integers(1, 30), st.integers(1, 6), st.data(), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_as_many_epochs_as_the_stride_cover_every_cut(length: int, window: int, data: Any, seed: int) -> None:
    stride = data.draw(st.integers(1, window))
    documents = [list(range(length)), list(range(length + 3))]
    windows = Windows(documents, window, stride, offset="random", outputs=("input_ids", "document", "start"))
    cuts: list[set[int]] = [set(), set()]
    for epoch in range(stride):
        batch = everything(windows, seed, epoch)
        for d in (0, 1):
            starts = sorted(batch["start"][batch["document"] == d].tolist())
            cuts[d].update(starts)
            covered = {i for s, ids in zip(batch["start"], batch["input_ids"], strict=True) for i in ids}
            assert covered >= set(range(length))
    for d, document in enumerate(documents):
        last = max(cuts[d])
        assert cuts[d] == set(range(last + 1))
        assert last + window >= len(document)


def test_an_epoch_beyond_the_stride_repeats_the_first_cuts() -> None:
    windows = Windows([list(range(50))], 8, 4, offset="random", outputs=("start",))
    for epoch in range(4):
        np.testing.assert_array_equal(
            everything(windows, 5, epoch)["start"], everything(windows, 5, epoch + 4)["start"]
        )


def test_any_seed_and_epoch_cuts() -> None:
    windows = Windows([list(range(50))], 8, 3, offset="random", outputs=("start",))
    for seed in (-1, 1 << 63, 1 << 70):
        for epoch in (1 << 40, 1 << 63, 1 << 70):
            found, right = everything(windows, seed, epoch), everything(windows, seed, epoch % 3)
            np.testing.assert_array_equal(found["start"], right["start"])


def test_dtypes_of_the_store_make_no_difference() -> None:
    documents = [[1, 2, 3, 200], [4, 5]]
    one = Tokens.from_documents(documents)
    assert one.dtype == np.uint8
    for name in ("uint32", "int64"):
        other = Tokens.from_arrays(one.values[0].astype(name), one.offsets)
        for left, right in zip(
            everything(Windows(one, 3)).values(), everything(Windows(other, 3)).values(), strict=True
        ):
            np.testing.assert_array_equal(left, right)


def test_width_is_the_smallest_that_holds_the_vocabulary() -> None:
    sizes = {
        256: "uint8",
        257: "uint16",
        65_536: "uint16",
        65_537: "uint32",
        2**32: "uint32",
        2**32 + 1: "uint64",
    }
    assert {size: dtype_for(size).name for size in sizes} == sizes
