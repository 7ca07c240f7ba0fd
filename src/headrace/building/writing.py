"""Parsed rows and what was fitted become shards; a shard is a pure function of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.arrays import list_borders
from headrace.building.rowset import RowSet
from headrace.building.settings import Settings
from headrace.dataset.shard import MAXIMUM_BYTES, FileEntry, shard_name, write_shard
from headrace.encoding.shard import encode_rows
from headrace.engine.local import run_in_order
from headrace.fit.fitted import Fitted

_SAMPLE_ROWS = 256


@dataclass(frozen=True)
class ShardPlan:
    """Rows ``[start, end)`` of a split."""

    split: str
    number: int
    start: int
    end: int

    @property
    def name(self) -> str:
        """Where the shard lies below the store's folder."""
        return shard_name(self.split, self.number)


def plan_shards(rowset: RowSet, fitted: Fitted, *, labels: bool) -> list[ShardPlan]:
    """Cut every split into shards of about ``MAXIMUM_BYTES``; the cuts depend on the data alone."""
    return [plan for split in rowset.split_names for plan in _plan_split(rowset, split, fitted, labels)]


def _plan_split(rowset: RowSet, split: str, fitted: Fitted, labels: bool) -> Iterator[ShardPlan]:
    total = int(rowset.counts(split).sum())
    size = max(1, int(MAXIMUM_BYTES // max(1.0, _row_bytes(rowset, split, fitted, labels))))
    starts = range(0, max(total, 1), size)
    for number, start in enumerate(starts):
        yield ShardPlan(split, number, start, min(start + size, total))


def _row_bytes(rowset: RowSet, split: str, fitted: Fitted, labels: bool) -> float:
    """Return the mean bytes of a row, from encoded rows that stand evenly over the split."""
    total = int(rowset.counts(split).sum())
    if total == 0:
        return 1.0
    places = np.unique(np.linspace(0, total - 1, min(total, _SAMPLE_ROWS)).astype(np.int64))
    batches = [_encode_places(rowset, split, places, fitted, labels)]
    return sum(_bytes(column) for batch in batches for column in batch.columns) / len(places)


def _bytes(column: pa.Array) -> float:
    """Return the bytes of values and offsets; validity is left out, as it is there for some rows only."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        borders, values = list_borders(column)
        return 4 * len(column) + len(values) * kind.value_type.bit_width / 8
    if pa.types.is_fixed_size_list(kind):
        return len(column) * kind.list_size * 4
    if pa.types.is_large_string(kind):
        return 8 * len(column) + sum(len(text or "") for text in column.to_pylist())
    return len(column) * kind.bit_width / 8


def write_shards(
    rowset: RowSet, fitted: Fitted, folder: Path, settings: Settings, *, labels: bool
) -> dict[str, list[FileEntry]]:
    """Write the shards that are not there yet; return every split's shards in row order."""
    plans = plan_shards(rowset, fitted, labels=labels)

    def finish(plan: ShardPlan) -> FileEntry:
        path = folder / plan.name
        if not path.exists():
            places = np.arange(plan.start, plan.end, dtype=np.int64)
            write_shard(path, _encode_places(rowset, plan.split, places, fitted, labels))
        return FileEntry.of(folder, plan.name, rows=plan.end - plan.start)

    entries: dict[str, list[FileEntry]] = {split: [] for split in rowset.split_names}
    for plan, entry in zip(plans, run_in_order(finish, plans, settings.threads), strict=True):
        entries[plan.split].append(entry)
        settings.progress("encoding", sum(map(len, entries.values())) / len(plans))
    return entries


def _encode_places(
    rowset: RowSet, split: str, places: np.ndarray[Any, np.dtype[np.int64]], fitted: Fitted, labels: bool
) -> pa.RecordBatch:
    """Encode rows of a split, given by their ascending places in it."""
    borders = np.concatenate([[0], np.cumsum(rowset.counts(split))])
    batches = []
    for number, rows in enumerate(rowset.parts):
        first, end = np.searchsorted(places, borders[number : number + 2])
        if first < end:
            chosen = rowset.chosen(number, split)[places[first:end] - borders[number]]
            batches.append(encode_rows(rowset.spec, rows, chosen, split, fitted, labels=labels))
    if not batches:
        nothing = np.empty(0, np.int64)
        return encode_rows(rowset.spec, rowset.parts[0], nothing, split, fitted, labels=labels)
    return joined_batches(batches)


def joined_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches one after the other as one."""
    if len(batches) == 1:
        return batches[0]
    table = pa.concat_tables(
        [pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive"
    )
    return table.combine_chunks().to_batches()[0]
