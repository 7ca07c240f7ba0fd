"""``torch.utils.data``: datasets of rows and of batches under its ``DataLoader``."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from torch import tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, TensorDataset

from peers.rows.by_hand import in_memory
from peers.rows.layout import (
    BATCH,
    LENGTH,
    NAMES,
    RECORD,
    SCALARS,
    Batch,
    Batches,
    batch_of_records,
    column,
    count,
    gather,
    padded_columns,
    records,
    tensors,
)


def options(workers: int, prefetch: int = 2) -> dict[str, Any]:
    """Return the arguments for worker processes, of which some are refused where there are none."""
    return {"num_workers": workers} | ({"prefetch_factor": prefetch} if workers else {})


def tensor_dataset(folder: Path, id_dtype: str, workers: int = 0) -> Batches:
    """Tensors in memory, a whole batch of indices at a time."""
    columns = in_memory(folder, id_dtype)
    dataset = TensorDataset(*columns.values())
    sampler: Any = BatchSampler(RandomSampler(dataset), BATCH, drop_last=False)
    for batch in DataLoader(dataset, sampler=sampler, batch_size=None, **options(workers)):
        yield dict(zip(columns, batch, strict=True))


class WholeBatches(Dataset[Batch]):
    """A map-style dataset that gathers a whole batch of padded rows at once."""

    def __init__(self, folder: Path, id_dtype: str) -> None:
        self.columns, self.id_dtype = padded_columns(folder, id_dtype), id_dtype

    def __len__(self) -> int:
        return len(self.columns["price"])

    def __getitems__(self, indices: list[int]) -> Batch:
        return gather(self.columns, np.array(indices), self.id_dtype)


def whole_batches(folder: Path, id_dtype: str, workers: int = 0, prefetch: int = 2) -> Batches:
    """A dataset with ``__getitems__``, so that a batch is one call."""
    dataset = WholeBatches(folder, id_dtype)
    made = DataLoader(dataset, BATCH, shuffle=True, collate_fn=as_it_is, **options(workers, prefetch))
    yield from made


def as_it_is(batch: Any) -> Any:
    return batch


class NumpyRows(Dataset[dict[str, Any]]):
    """The usual map-style dataset over arrays: one row, padded, at a time."""

    def __init__(self, folder: Path, id_dtype: str = "int64", rows: int | None = None) -> None:
        self.columns = {name: column(folder, name)[:rows] for name in (*SCALARS, "price")}
        self.offsets, self.values = column(folder, "offsets"), column(folder, "values")
        self.id_dtype = id_dtype

    def __len__(self) -> int:
        return len(self.columns["price"])

    def __getitem__(self, index: int) -> dict[str, Any]:
        row: dict[str, Any] = {name: array[index] for name, array in self.columns.items()}
        own = self.values[self.offsets[index] : self.offsets[index + 1]]
        row["history"] = np.zeros(LENGTH, self.id_dtype)
        row["history_mask"] = np.zeros(LENGTH, bool)
        row["history"][LENGTH - len(own) :] = own
        row["history_mask"][LENGTH - len(own) :] = True
        return row


class Records(Dataset[np.void]):
    """Rows in memory, each one NumPy record, padded already."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.records = records(folder, count(folder, rows))

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> np.void:
        return self.records[index]  # type: ignore[no-any-return]


class StackRecords:
    """Puts records together, and takes the columns out of all of them at once."""

    def __init__(self, id_dtype: str) -> None:
        self.id_dtype = id_dtype

    def __call__(self, rows: list[np.void]) -> Batch:
        return batch_of_records(np.array(rows, RECORD), self.id_dtype)


class Stack:
    """Puts rows of NumPy values together, one array for each column."""

    def __init__(self, id_dtype: str) -> None:
        self.id_dtype = id_dtype

    def __call__(self, rows: list[dict[str, Any]]) -> Batch:
        return tensors({name: np.array([row[name] for row in rows]) for name in NAMES}, self.id_dtype)


class DefaultThenWiden:
    """``default_collate``, and the ids in the dtype that is asked for."""

    def __init__(self, id_dtype: str) -> None:
        self.id_dtype = id_dtype

    def __call__(self, rows: list[dict[str, Any]]) -> Batch:
        import torch
        from torch.utils.data import default_collate

        batch = default_collate(rows)
        dtype = getattr(torch, self.id_dtype)
        wide = {name: batch[name].to(dtype) for name in SCALARS}
        return {**batch, **wide, "price": batch["price"].to(torch.float32)}


def numpy_rows(
    folder: Path,
    id_dtype: str,
    rows: int,
    workers: int = 2,
    prefetch: int = 2,
    collate: str = "stack",
) -> Batches:
    """Rows of NumPy values, put together by torch or by one ``np.array`` a column; or NumPy records."""
    ways: dict[str, Any] = {"stack": Stack, "default": DefaultThenWiden, "records": StackRecords}
    together = ways[collate](id_dtype)
    dataset = Records(folder, rows) if collate == "records" else NumpyRows(folder, id_dtype, rows)
    yield from DataLoader(dataset, BATCH, shuffle=True, collate_fn=together, **options(workers, prefetch))


class ListRows(Dataset[dict[str, Any]]):
    """Rows as Python objects, as JSON or ``datasets`` give them; each is padded when it is asked for."""

    def __init__(self, folder: Path, rows: int, as_tensors: bool) -> None:
        offsets = column(folder, "offsets")[: rows + 1]
        values = column(folder, "values")[: offsets[-1]].tolist()
        scalars = [column(folder, name)[:rows].tolist() for name in (*SCALARS, "price")]
        histories = [values[start:end] for start, end in pairwise(offsets)]
        self.rows = [
            dict(zip((*SCALARS, "price", "history"), row, strict=True))
            for row in zip(*scalars, histories, strict=True)
        ]
        self.as_tensors = as_tensors

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        row = self.rows[index]
        empty = LENGTH - len(row["history"])
        history = [0] * empty + row["history"]
        mask = [False] * empty + [True] * len(row["history"])
        if self.as_tensors:
            return {**row, "history": tensor(history), "history_mask": tensor(mask)}
        return {**row, "history": history, "history_mask": mask}


class StackLists:
    """Makes one array of each column of Python values."""

    def __init__(self, id_dtype: str) -> None:
        self.id_dtype = id_dtype

    def __call__(self, rows: list[dict[str, Any]]) -> Batch:
        dtypes = {**dict.fromkeys(NAMES, self.id_dtype), "price": "float32", "history_mask": "bool"}
        columns = {name: np.array([row[name] for row in rows], dtypes[name]) for name in NAMES}
        return tensors(columns, self.id_dtype)


def list_rows(
    folder: Path,
    id_dtype: str,
    rows: int,
    workers: int = 2,
    prefetch: int = 2,
    collate: str = "stack",
) -> Batches:
    """Rows of Python lists; ``collate="default"`` makes tensors of each row, which torch then stacks."""
    together = StackLists(id_dtype) if collate == "stack" else DefaultThenWiden(id_dtype)
    dataset = ListRows(folder, count(folder, rows), collate == "default")
    yield from DataLoader(dataset, BATCH, shuffle=True, collate_fn=together, **options(workers, prefetch))
