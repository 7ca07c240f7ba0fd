"""Grain: a map dataset of rows, shuffled and batched; and of indices, gathered a batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import grain
import numpy as np
from absl import flags

from peers.rows.layout import (
    BATCH,
    LENGTH,
    NAMES,
    RECORD,
    SCALARS,
    SEED,
    Batch,
    Batches,
    batch_of_records,
    column,
    count,
    padded_columns,
    records,
    tensors,
)


class Rows(grain.sources.RandomAccessDataSource):  # type: ignore[misc]
    """One padded row of NumPy values at a time."""

    def __init__(self, folder: Path, id_dtype: str) -> None:
        self.columns = {name: column(folder, name) for name in (*SCALARS, "price")}
        self.offsets, self.values = column(folder, "offsets"), column(folder, "values")
        self.id_dtype = id_dtype

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> dict[str, Any]:
        row: dict[str, Any] = {name: array[index] for name, array in self.columns.items()}
        own = self.values[self.offsets[index] : self.offsets[index + 1]]
        row["history"] = np.zeros(LENGTH, self.id_dtype)
        row["history_mask"] = np.zeros(LENGTH, bool)
        row["history"][LENGTH - len(own) :] = own
        row["history_mask"][LENGTH - len(own) :] = True
        return row


class Records(grain.sources.RandomAccessDataSource):  # type: ignore[misc]
    """Rows in memory, each one NumPy record, padded already."""

    def __init__(self, folder: Path) -> None:
        self.records = records(folder, count(folder))

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> np.void:
        return self.records[index]  # type: ignore[no-any-return]


class StackRecords:
    """Puts records together."""

    def __call__(self, rows: Any) -> np.ndarray:
        return np.array(rows, RECORD)


class Stack:
    """Puts rows together, one array for each column."""

    def __call__(self, rows: Any) -> dict[str, np.ndarray]:
        return {name: np.array([row[name] for row in rows]) for name in NAMES}


class Gather:
    """Gathers the padded rows of a batch of indices."""

    def __init__(self, folder: Path, id_dtype: str) -> None:
        self.columns, self.id_dtype = padded_columns(folder, id_dtype), id_dtype

    def __call__(self, index: np.ndarray) -> dict[str, np.ndarray]:
        return {name: array.take(index, axis=0) for name, array in self.columns.items()}


def row_by_row(
    folder: Path, id_dtype: str, workers: int = 2, threads: int = 0, ahead: int = 0, stack: str = "own"
) -> Batches:
    """Rows out of the source, batched by Grain or by one ``np.array`` for each column; or NumPy records."""
    if stack == "records":
        together = grain.MapDataset.source(Records(folder)).shuffle(seed=SEED)
        found = together.batch(BATCH, batch_fn=StackRecords())
        yield from _iterate(found, partial(batch_of_records, id_dtype=id_dtype), workers, threads, ahead)
        return
    source = grain.MapDataset.source(Rows(folder, id_dtype)).shuffle(seed=SEED)
    batched = source.batch(BATCH, batch_fn=Stack()) if stack == "own" else source.batch(BATCH)
    yield from _iterate(batched, partial(tensors, id_dtype=id_dtype), workers, threads, ahead)


def by_indices(folder: Path, id_dtype: str, workers: int = 0, threads: int = 0, ahead: int = 0) -> Batches:
    """Shuffled indices, batched by Grain, and one NumPy gather for each batch."""
    indices = grain.MapDataset.range(count(folder)).shuffle(seed=SEED).batch(BATCH, batch_fn=np.array)
    yield from _iterate(
        indices.map(Gather(folder, id_dtype)), partial(tensors, id_dtype=id_dtype), workers, threads, ahead
    )


def _iterate(dataset: Any, finish: Callable[[Any], Batch], workers: int, threads: int, ahead: int) -> Batches:
    flags.FLAGS.mark_as_parsed()
    batches = dataset.to_iter_dataset(grain.ReadOptions(num_threads=threads, prefetch_buffer_size=ahead))
    if workers:
        batches = batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers))
    yield from map(finish, batches)
