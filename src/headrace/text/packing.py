"""Best-fit packing: whole documents in few rows, planned once and kept beside the tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.packing import best_fit_decreasing, copy_runs, count_runs
from headrace.kernels.windows_plans import largest_sum
from headrace.text.cuts import check_windows
from headrace.text.plans import RunPlan, kept_plan
from headrace.text.runs import Integers, Runs
from headrace.text.streams import Streams
from headrace.text.tokens import dtype_for


@dataclass(frozen=True, eq=False)
class PackedCut:
    """Rows that hold pieces of several documents; a document that fits in a row is never split."""

    streams: Streams
    window: int
    row_pieces: Integers
    """int64 [R+1], which pieces are of which row."""
    position: Integers
    """int64 [P], first token of each piece; ascending in each row."""
    size: NDArray[np.int32]
    """int32 [P], tokens of each piece."""

    def __len__(self) -> int:
        return self.row_pieces.size - 1

    def width(self, indices: Integers) -> int:
        """Return the tokens in a row."""
        return self.window

    def runs(self, indices: Integers) -> Runs:
        """Return one run a piece."""
        check_windows(indices, len(self))
        row_runs = np.empty(indices.size + 1, np.int64)
        count_runs(indices, self.row_pieces, row_runs)
        position, size = np.empty((2, int(row_runs[-1])), np.int64)
        copy_runs(indices, self.row_pieces, self.position, self.size, row_runs, position, size)
        return Runs(
            row_runs, position, size, self.streams.documents_at(position), np.zeros(indices.size, np.int64)
        )


def packed_cut(streams: Streams, window: int) -> PackedCut:
    """Return the packing of a store, planned on first use and kept beside the tokens.

    Args:
        streams: One stream a document.
        window: Tokens in a row.
    """

    def make() -> RunPlan:
        cut = plan_packing(streams, window)
        return RunPlan(cut.row_pieces, {"position": cut.position, "size": cut.size})

    def fits(plan: RunPlan) -> bool:
        return bool(largest_sum(plan.offsets, plan.columns["size"]) <= window)

    plan = kept_plan(streams, "best_fit", window, make, fits)
    return PackedCut(streams, window, plan.offsets, plan.columns["position"], plan.columns["size"])


def plan_packing(streams: Streams, window: int) -> PackedCut:
    """Cut each document into pieces of ``window`` tokens, and place the rests by best-fit decreasing.

    Ties go by document number; rows are in the order of their first token, pieces
    in a row in the order of the documents.

    Args:
        streams: One stream a document.
        window: Tokens in a row.
    """
    document_offsets = streams.document_offsets
    lengths = np.diff(document_offsets)
    whole = lengths // window
    whole_position = _whole_pieces(document_offsets, whole, window)
    rest = lengths - whole * window
    documents = np.flatnonzero(rest)
    falling = (window - rest[documents]).astype(dtype_for(window))
    documents = documents[np.argsort(falling, kind="stable")]
    row = np.empty(documents.size, np.int64)
    capacity = min(window, max(1, int(lengths.sum())))  # a longer row than all tokens is never filled
    count = best_fit_decreasing(rest[documents], capacity, row)
    return _in_order(
        streams,
        window,
        position=np.concatenate([whole_position, (document_offsets[:-1] + whole * window)[documents]]),
        size=np.concatenate([np.full(whole_position.size, window), rest[documents]]),
        row=np.concatenate([count + np.arange(whole_position.size), row]),
    )


def _whole_pieces(document_offsets: Integers, whole: Integers, window: int) -> Integers:
    """Return int64: where each piece of a full row begins."""
    before = np.cumsum(whole) - whole
    number = np.arange(int(whole.sum())) - np.repeat(before, whole)
    pieces: Integers = np.repeat(document_offsets[:-1], whole) + number * window
    return pieces


def _in_order(streams: Streams, window: int, position: Integers, size: Integers, row: Integers) -> PackedCut:
    """Number rows by their first token, and sort the pieces of each."""
    first = np.full(int(row.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, row, position)
    order = np.lexsort((position, first[row]))
    counts = np.bincount(row, minlength=first.size)[np.argsort(first)]
    row_pieces = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return PackedCut(streams, window, row_pieces, position[order], size[order].astype(np.int32))
