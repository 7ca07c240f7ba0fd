"""Best-fit packing: nothing lost, nothing split that fits, few rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.text import Tokens, Windows
from headrace.text.packing import PackedCut, plan_packing
from headrace.text.streams import Streams


def plan_of(lengths: Any, window: int) -> PackedCut:
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    tokens = Tokens.from_arrays(np.zeros(offsets[-1], np.uint8), offsets)
    return plan_packing(Streams(tokens, None, joined=False), window)


Everything = Callable[..., dict[str, Any]]


def best_fit_rows(sizes: list[int], window: int) -> int:
    """Best-fit decreasing as a textbook has it."""
    rooms: list[int] = []
    for size in sorted(sizes, reverse=True):
        fitting = [room for room in rooms if room >= size]
        rooms.remove(min(fitting)) if fitting else None
        rooms.append((min(fitting) if fitting else window) - size)
    return len(rooms)


def fewest_rows(sizes: list[int], window: int) -> int:
    """The optimum, by trying every row for every piece."""
    best = len(sizes)

    def place(left: list[int], rooms: list[int]) -> None:
        nonlocal best
        if len(rooms) >= best:
            return
        if not left:
            best = len(rooms)
            return
        for row in {room: i for i, room in enumerate(rooms) if room >= left[0]}.values():
            place(left[1:], [room - left[0] * (i == row) for i, room in enumerate(rooms)])
        place(left[1:], [*rooms, window - left[0]])

    place(sorted(sizes, reverse=True), [])
    return best


@given(st.lists(st.integers(0, 20), max_size=9), st.integers(1, 12))
@settings(max_examples=200, deadline=None)
def test_rows_are_within_the_bound_of_the_optimum(lengths: list[int], window: int) -> None:
    plan = plan_of(lengths, window)
    pieces = [piece for n in lengths for piece in [window] * (n // window) + [n % window] * (n % window > 0)]
    assert len(plan) == best_fit_rows(pieces, window)
    optimum = fewest_rows(pieces, window) if pieces else 0
    assert len(plan) <= 11 / 9 * optimum + 6 / 9


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(1, 12))
@settings(max_examples=150, deadline=None)
def test_every_token_once_and_no_document_that_fits_is_split(lengths: list[int], window: int) -> None:
    offsets = np.cumsum([0, *lengths])
    plan = plan_of(lengths, window)
    covered = np.zeros(offsets[-1], int)
    for position, size in zip(plan.position, plan.size, strict=True):
        covered[position : position + size] += 1
        document = np.searchsorted(offsets, position, side="right") - 1
        assert position + size <= offsets[document + 1]
        if lengths[document] <= window:
            assert size == lengths[document]
    assert (covered == 1).all()
    for begin, end in pairwise(plan.row_pieces):
        assert plan.size[begin:end].sum() <= window
        assert (np.diff(plan.position[begin:end]) > 0).all()


@given(st.lists(st.lists(st.integers(0, 7), max_size=14), max_size=8), st.integers(1, 9))
@settings(max_examples=100, deadline=None)
def test_rows_hold_their_documents(everything: Everything, documents: list[list[int]], window: int) -> None:
    names = ("input_ids", "labels", "segment_ids", "position_ids", "document", "start", "length")
    batch = everything(Windows(documents, window, pack="best_fit", eos=7, outputs=names))
    full = [document if document[-1:] == [7] else [*document, 7] for document in documents]
    labels = batch["labels"][batch["labels"] != -100].tolist()
    assert sorted(labels) == sorted(token for document in full for token in document[1:])
    tokens = batch["input_ids"][batch["segment_ids"] > 0].tolist()
    assert sorted(tokens) == sorted(token for document in full for token in document)
    for ids, document, start in zip(batch["input_ids"], batch["document"], batch["start"], strict=True):
        assert ids[0] == full[document][start]


def test_a_row_longer_than_all_tokens_holds_them_all() -> None:
    windows = Windows([[1, 2], [3], [4, 5, 6]], (1 << 31) - 1, pack="best_fit", eos=0, outputs=("input_ids",))
    assert len(windows) == 1
    assert windows.summary().tokens_in_rows == 9
    assert len(Windows([], (1 << 31) - 1, pack="best_fit", eos=0)) == 0


def test_many_documents_fill_their_rows(everything: Everything) -> None:
    lengths = np.arange(1, 2001) * 37 % 900 + 1
    plan = plan_of(lengths, 1024)
    assert len(plan) <= 1.05 * lengths.sum() / 1024
