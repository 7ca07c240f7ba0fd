"""Kernels of windows against a few lines of Python each."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.kernels.packing import best_fit_decreasing
from headrace.kernels.windows_dynamic import count_ids, dynamic_starts, edge_density
from headrace.kernels.windows_layout import cumulate_windows
from headrace.kernels.windows_plans import largest_sum, runs_lie_inside
from headrace.kernels.windows_scan import count_id, ends_after, largest_id
from headrace.text import Tokens, Windows
from headrace.text.streams import Streams

documents = st.lists(st.lists(st.integers(0, 7), max_size=12), max_size=6)


def test_counts_by_hand() -> None:
    offsets = np.cumsum([0, 0, 3, 4, 5, 10])
    none = np.zeros(1, np.int64)
    assert np.diff(cumulate_windows(offsets, 4, 2, none, 0, 0)).tolist() == [0, 1, 1, 2, 4]
    assert np.diff(cumulate_windows(offsets, 4, 2, none, 1, 0)).tolist() == [0, 0, 1, 1, 4]
    assert np.diff(cumulate_windows(offsets, 4, 2, none, 0, 2)).tolist() == [0, 1, 1, 1, 4]


@given(st.lists(st.integers(1, 12), max_size=30), st.integers(0, 6))
@settings(max_examples=150, deadline=None)
def test_best_fit_places_each_piece_in_the_fullest_row_that_has_room(sizes: list[int], more: int) -> None:
    falling = sorted(sizes, reverse=True)
    capacity = max(falling, default=1) + more
    row = np.empty(len(falling), np.int64)
    count = best_fit_decreasing(np.array(falling, np.int64), capacity, row)
    rooms: list[int] = []
    for size, chosen in zip(falling, row.tolist(), strict=True):
        fitting = [room for room in rooms if room >= size]
        if fitting:
            assert rooms[chosen] == min(fitting)
            rooms[chosen] -= size
        else:
            assert chosen == len(rooms)
            rooms.append(capacity - size)
    assert count == len(rooms)


@given(documents, st.integers(1, 6), st.floats(0, 8), st.data())
@settings(max_examples=150, deadline=None)
def test_dynamic_starts_are_where_the_sum_reaches_the_quantum(
    texts: list[list[int]], window: int, quantum: float, data: Any
) -> None:
    least = data.draw(st.integers(1, window))
    most = data.draw(st.integers(least, window))
    right = []
    for text in texts:
        start = 0
        while text:
            right.append(start)
            if start + window >= len(text):
                break
            steps = range(least, most + 1)
            start += next((s for s in steps if sum(text[start : start + s]) >= quantum), most)
    lengths = np.array([len(text) for text in texts], np.int64)
    density = np.array([float(value) for text in texts for value in text])
    state, counts = np.zeros(4), np.zeros(len(texts), np.int64)
    found: list[int] = []
    cut = data.draw(st.integers(0, density.size))
    for block in (density[:cut], density[cut:]):
        starts = np.empty(block.size, np.int64)
        count = dynamic_starts(lengths, block, window, quantum, least, most, state, starts, counts)
        found += starts[:count].tolist()
    assert found == right
    assert counts.sum() == len(right)


def test_edge_density_is_one_on_average() -> None:
    density, part = np.empty(1000 + 1), np.empty(500)
    edge_density(np.array([0, 0, 1, 1, 1001]), 0, density)
    assert density[0] == 2 / np.pi
    assert abs(density[1:].mean() - 1) < 0.03
    np.testing.assert_allclose(density[1:], density[:0:-1])
    edge_density(np.array([0, 0, 1, 1, 1001]), 7, part)
    np.testing.assert_array_equal(part, density[7:507])


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_scans(ids: list[int], token: int) -> None:
    values = np.array(ids, np.uint16)
    ends = np.empty(count_id(values, token), np.int64)
    ends_after(values, token, ends)
    assert ends.tolist() == [place + 1 for place, id_ in enumerate(ids) if id_ == token]
    assert largest_id(values) == max(ids, default=-1)
    counts = np.zeros(6, np.int64)
    count_ids(values.astype(np.int64), counts)
    assert counts.tolist() == [ids.count(id_) for id_ in range(6)]


@given(documents, st.sampled_from([None, 7]))
@settings(max_examples=60, deadline=None)
def test_positions_and_the_documents_they_are_of(texts: list[list[int]], eos: int | None) -> None:
    streams = Streams(Tokens.from_documents(texts, vocab_size=8), eos, joined=True)
    full = [text if eos is None or text[-1:] == [eos] else [*text, eos] for text in texts]
    flat = [token for text in full for token in text]
    for begin in range(len(flat) + 1):
        for end in range(begin, len(flat) + 1):
            assert streams.ids(begin, end).tolist() == flat[begin:end]
    offsets = np.cumsum([0, *map(len, full)]).tolist()
    assert streams.document_offsets.tolist() == offsets
    positions = np.arange(offsets[-1])
    assert streams.documents_at(positions).tolist() == [bisect.bisect(offsets, p) - 1 for p in positions]


@given(documents, st.data())
@settings(max_examples=200, deadline=None)
def test_a_summary_says_what_the_batches_hold(texts: list[list[int]], data: Any) -> None:
    window = data.draw(st.integers(2, 8))
    stride = data.draw(st.integers(1, window - 1))
    pack = data.draw(st.sampled_from([False, "concat", "best_fit"]))
    how: dict[str, Any] = {
        "pack": pack,
        "stride": window if pack == "best_fit" else stride,
        "tail": "pad" if pack == "best_fit" else data.draw(st.sampled_from(["pad", "drop", "shift"])),
        "labels": "next" if pack == "best_fit" else data.draw(st.sampled_from(["next", "same"])),
        "overlap_labels": data.draw(st.booleans()),
        "positions": data.draw(st.sampled_from(["segment", "window", "document"])),
        "eos": data.draw(st.sampled_from([False, 7])),
    }
    names = ("input_ids", "labels", "segment_ids", "position_ids", "document", "start")
    windows = Windows(texts, window, outputs=names, **how)
    space = windows.at(0, 0)
    batch = space.gather(np.arange(len(space)), np.zeros(len(space), np.uint64))
    summary = windows.summary()
    live = batch["labels"] != -100
    assert summary.windows == len(space)
    assert summary.live_labels == live.sum()
    assert summary.rows_without_label == (~live.any(axis=1)).sum()
    assert summary.tokens_in_rows == (batch["segment_ids"] > 0).sum()
    assert summary.padding == (batch["segment_ids"] == 0).sum()
    assert summary.segments == batch["segment_ids"].max(axis=1, initial=0).sum()
    assert summary.max_position == batch["position_ids"].max(initial=0)
    assert summary.tokens_left_out == windows.streams.num_positions - len(covered(batch, windows))


def covered(batch: dict[str, Any], windows: Windows) -> set[int]:
    """Return the positions that some row holds, by walking its segments."""
    found: set[int] = set()
    runs = windows.at(0, 0).cut.runs(np.arange(len(windows)))
    for position, size in zip(runs.position, runs.size, strict=True):
        found.update(range(position, position + size))
    return found


@given(
    st.lists(st.lists(st.tuples(st.integers(-2, 12), st.integers(-1, 6)), max_size=4), max_size=5),
    st.integers(0, 12),
    st.integers(0, 2),
)
@settings(max_examples=150, deadline=None)
def test_whether_a_plan_lies_inside_the_tokens(
    lists: list[list[tuple[int, int]]], total: int, twist: int
) -> None:
    offsets = np.cumsum([0, *map(len, lists)])
    runs = [run for part in lists for run in part]
    position = np.array([begin for begin, _ in runs], np.int64)
    size = np.array([count for _, count in runs], np.int32)
    inside = all(count >= 1 and begin >= 0 and begin + count <= total for begin, count in runs)
    assert runs_lie_inside(offsets, position, size, total) == inside
    sums = [sum(count for _, count in part) for part in lists]
    assert largest_sum(offsets, size) == max([0, *sums])
    if twist == 1:
        assert not runs_lie_inside(offsets + 1, position, size, total)
    if twist == 2 and len(runs) > 1:
        assert not runs_lie_inside(np.array([0, len(runs), 0, len(runs)]), position, size, total)
