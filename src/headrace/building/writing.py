"""Parsed rows and what was fitted become shards; a shard is a pure function of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headrace.arrays import list_borders
from headrace.building.rowset import RowSet
from headrace.building.settings import Settings
from headrace.building.spool import BatchSpool
from headrace.dataset.declared import declared_columns
from headrace.dataset.records import records_name, write_records
from headrace.dataset.shard import MAXIMUM_BYTES, FileEntry, open_shard, shard_name, write_shard
from headrace.dataset.view import shard_columns
from headrace.disk import TEMPORARY_SUFFIX
from headrace.encoding.shard import encode_rows
from headrace.engine.local import run_in_order
from headrace.fit.fitted import Fitted

_SAMPLE_ROWS = 2048
_MOST_PIECE_ROWS = 1 << 18
_PIECES_IN_MEMORY = 16
"""Anonymous bytes that one thread needs while it encodes, for each byte of encoded rows."""


@dataclass(frozen=True)
class ShardPlan:
    """Rows ``[start, end)`` of a split."""

    split: str
    number: int
    start: int
    end: int
    capacity: int = 1
    """Rows of a full shard of the split."""

    @property
    def name(self) -> str:
        """Where the shard lies below the store's folder."""
        return shard_name(self.split, self.number)


def plan_shards(rowset: RowSet, fitted: Fitted, *, labels: bool) -> list[ShardPlan]:
    """Cut every split into shards of about ``MAXIMUM_BYTES``; the cuts depend on the data alone."""
    largest = max(rowset.split_names, key=lambda split: rowset.counts(split).sum())
    size = max(1, int(MAXIMUM_BYTES // max(1.0, _row_bytes(rowset, largest, fitted, labels))))
    return [plan for split in rowset.split_names for plan in _plan_split(rowset, split, size)]


def _plan_split(rowset: RowSet, split: str, size: int) -> Iterator[ShardPlan]:
    total = int(rowset.counts(split).sum())
    starts = range(0, max(total, 1), size)
    for number, start in enumerate(starts):
        yield ShardPlan(split, number, start, min(start + size, total), size)


def _row_bytes(rowset: RowSet, split: str, fitted: Fitted, labels: bool) -> float:
    """Return the mean bytes of the first rows of a split, encoded."""
    count = min(int(rowset.counts(split).sum()), _SAMPLE_ROWS)
    batches = list(_encoded(rowset, ShardPlan(split, 0, 0, count), fitted, labels, count))
    return sum(_bytes(column) for batch in batches for column in batch.columns) / max(count, 1)


def _bytes(column: pa.Array) -> float:
    """Return the bytes of values and offsets; validity is left out, as it is there for some rows only."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _, values = list_borders(column)
        return float(4 * len(column) + len(values) * kind.value_type.bit_width / 8)
    if pa.types.is_fixed_size_list(kind):
        return float(len(column) * kind.list_size * 4)
    if pa.types.is_large_string(kind):
        return 8 * len(column) + sum(len(text or "") for text in column.to_pylist())
    return float(len(column) * kind.bit_width / 8)


class Written(NamedTuple):
    """The encoded rows of a store."""

    splits: dict[str, tuple[FileEntry, ...]]
    """Every split's shards, in row order."""
    records: list[FileEntry]
    """The records beside them."""


def write_shards(
    rowset: RowSet, fitted: Fitted, folder: Path, settings: Settings, *, labels: bool
) -> Written:
    """Write the shards that are not there yet, and the records beside them."""
    plans = plan_shards(rowset, fitted, labels=labels)
    piece_bytes = settings.data_memory // (_PIECES_IN_MEMORY * settings.workers)
    piece_rows = max(_SAMPLE_ROWS, min(_MOST_PIECE_ROWS, piece_bytes // _mean_row_bytes(plans)))

    declared = declared_columns(rowset.spec.to_dict())

    def finish(plan: ShardPlan) -> tuple[FileEntry, list[FileEntry]]:
        path = folder / plan.name
        if not path.exists():
            with BatchSpool(folder / f"spool-{plan.split}-{plan.number}{TEMPORARY_SUFFIX}") as spool:
                for batch in _encoded(rowset, plan, fitted, labels, piece_rows):
                    spool.append(batch)
                write_shard(path, spool.joined())
        rows, records = plan.end - plan.start, records_name(plan.name)
        there = write_records(folder / records, shard_columns(declared, [open_shard(path)]), rows)
        beside = [FileEntry.of(folder, records)] if there else []
        return FileEntry.of(folder, plan.name, rows=rows), beside

    entries: dict[str, list[FileEntry]] = {split: [] for split in rowset.split_names}
    records: list[FileEntry] = []
    for plan, (entry, beside) in zip(plans, run_in_order(finish, plans, settings.workers), strict=True):
        entries[plan.split].append(entry)
        records += beside
        settings.progress("encoding", sum(map(len, entries.values())) / len(plans))
    return Written({split: tuple(shards) for split, shards in entries.items()}, records)


def _mean_row_bytes(plans: list[ShardPlan]) -> int:
    """Return the bytes of a row, from the rows that shards were planned with."""
    return max(MAXIMUM_BYTES // max(1, max(plan.capacity for plan in plans)), 1)


def _encoded(
    rowset: RowSet, plan: ShardPlan, fitted: Fitted, labels: bool, piece_rows: int
) -> Iterator[pa.RecordBatch]:
    """Encode the rows of a shard, at most ``piece_rows`` at a time; at least one batch, be it empty."""
    borders = np.concatenate([[0], np.cumsum(rowset.counts(plan.split))])
    first_part = int(np.searchsorted(borders, plan.start, side="right")) - 1
    given = False
    for number in range(max(first_part, 0), len(rowset.parts)):
        if borders[number] >= plan.end:
            break
        first, end = (
            max(plan.start - borders[number], 0),
            min(plan.end, borders[number + 1]) - borders[number],
        )
        if first >= end:
            continue
        chosen = rowset.chosen(number, plan.split)
        rows = rowset.parts[number]
        for start in range(first, end, piece_rows):
            piece = chosen[start : min(start + piece_rows, end)]
            yield encode_rows(rowset.spec, rows, piece, plan.split, fitted, labels=labels)
            given = True
        rows.forget()
    if not given:
        nothing = np.empty(0, np.int64)
        yield encode_rows(rowset.spec, rowset.parts[0], nothing, plan.split, fitted, labels=labels)
