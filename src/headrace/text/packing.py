"""Best-fit packing: whole documents in few rows, planned once and kept beside the tokens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.dataset.shard import open_shard, write_shard
from headrace.errors import StoreError
from headrace.kernels.packing import best_fit_decreasing, copy_runs, count_runs
from headrace.text.cuts import check_windows
from headrace.text.runs import Integers, Runs
from headrace.text.streams import Streams
from headrace.text.tokens import dtype_for

_FOLDER = "plans"


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


def packed_cut(streams: Streams, window: int, fingerprint: str) -> PackedCut:
    """Return the packing plan of a store, made on first use and read from then on.

    Args:
        streams: One stream a document.
        window: Tokens in a row.
        fingerprint: What the plan depends on; part of its file's name.
    """
    path = _plan_path(streams.tokens.folder, fingerprint)
    if path is not None and (kept := _read_plan(path, streams, window)) is not None:
        return kept
    plan = plan_packing(streams, window)
    if path is not None:
        _keep_plan(path, plan)
    return plan


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
    count = best_fit_decreasing(rest[documents], window, row)
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


def _plan_path(folder: Path | None, fingerprint: str) -> Path | None:
    return None if folder is None else folder / _FOLDER / f"best_fit-{fingerprint}.arrow"


def _read_plan(path: Path, streams: Streams, window: int) -> PackedCut | None:
    """Return a plan that was kept; None where there is none that can be read."""
    if not path.exists():
        return None
    try:
        batch = open_shard(path)
    except StoreError:
        return None
    pieces = batch.column("pieces")
    return PackedCut(
        streams,
        window,
        np.asarray(pieces.offsets).astype(np.int64),
        np.asarray(pieces.values.field("position")),
        np.asarray(pieces.values.field("size")),
    )


def _keep_plan(path: Path, plan: PackedCut) -> None:
    """Write a plan beside the tokens; a folder that cannot be written to keeps none."""
    pieces = pa.StructArray.from_arrays([pa.array(plan.position), pa.array(plan.size)], ["position", "size"])
    rows = pa.LargeListArray.from_arrays(pa.array(plan.row_pieces), pieces)
    try:
        write_shard(path, pa.RecordBatch.from_arrays([rows], ["pieces"]))
    except OSError:
        return
