"""Hugging Face ``datasets``: its formats, row by row and in batches, under torch's ``DataLoader``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import torch
from torch.utils.data import DataLoader, Dataset

from peers.rows.layout import BATCH, LENGTH, NAMES, SCALARS, SEED, Batch, Batches
from peers.rows.tables import arrow_table, batch_of_table
from peers.rows.torch_loaders import as_it_is, options


class Fetch(Dataset[Any]):
    """Asks ``datasets`` for a whole batch at once."""

    def __init__(self, dataset: Any, make: Callable[[Any], Batch]) -> None:
        self.dataset, self.make = dataset, make

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, indices: list[int]) -> Batch:
        return self.make(self.dataset[indices])


class FromTorch:
    """Pads and widens what the torch format gives for a batch."""

    def __init__(self, id_dtype: str) -> None:
        self.dtype = getattr(torch, id_dtype)

    def __call__(self, found: dict[str, Any]) -> Batch:
        scalars = {name: found[name].to(self.dtype) for name in SCALARS}
        history, lengths = found["history"], found.get("length")
        if lengths is None:
            lengths = torch.tensor([len(own) for own in history])
            history = torch.nn.utils.rnn.pad_sequence(history, batch_first=True, padding_side="left")
            history = torch.nn.functional.pad(history, (LENGTH - history.shape[1], 0))
        mask = torch.arange(LENGTH) >= LENGTH - lengths[:, None]
        batch = {**scalars, "price": found["price"], "history": history.to(self.dtype), "history_mask": mask}
        return {name: batch[name] for name in NAMES}


class FromArrow:
    """Pads what the arrow format gives for a batch, in NumPy."""

    def __init__(self, id_dtype: str) -> None:
        self.id_dtype = id_dtype

    def __call__(self, found: Any) -> Batch:
        return batch_of_table(found, self.id_dtype)


class FromRows:
    """Puts the torch format's rows together."""

    def __init__(self, id_dtype: str) -> None:
        self.make = FromTorch(id_dtype)

    def __call__(self, rows: list[dict[str, Any]]) -> Batch:
        columns: dict[str, Any] = {
            name: torch.stack([row[name] for row in rows]) for name in rows[0] if name != "history"
        }
        return self.make({**columns, "history": [row["history"] for row in rows]})


def in_batches(
    folder: Path,
    id_dtype: str,
    form: str,
    history: str = "ragged",
    workers: int = 0,
    rows: int | None = None,
) -> Batches:
    """A batch of random rows at a time, in one format, with padding of one's own."""
    dataset = datasets.Dataset(arrow_table(folder, history, rows)).with_format(form)
    make = FromArrow(id_dtype) if form == "arrow" else FromTorch(id_dtype)
    yield from DataLoader(Fetch(dataset, make), BATCH, shuffle=True, collate_fn=as_it_is, **options(workers))


def row_by_row(folder: Path, id_dtype: str, rows: int, workers: int = 2, form: str = "torch") -> Batches:
    """The dataset as it is under a ``DataLoader``, with a collate function that pads."""

    class Rows(Dataset[Any]):  # without ``__getitems__``, which ``datasets`` has
        def __len__(self) -> int:
            return len(dataset)

        def __getitem__(self, index: int) -> Any:
            return dataset[index]

    dataset = datasets.Dataset(arrow_table(folder, "ragged", rows)).with_format(form)
    yield from DataLoader(Rows(), BATCH, shuffle=True, collate_fn=FromRows(id_dtype), **options(workers))


def streaming(folder: Path, id_dtype: str, form: str, buffer: int = 10_000) -> Batches:
    """``to_iterable_dataset`` with a shuffle buffer, which is less than a true shuffle."""
    dataset = datasets.Dataset(arrow_table(folder)).to_iterable_dataset(num_shards=8)
    mixed = dataset.shuffle(seed=SEED, buffer_size=buffer).with_format(form)
    make = FromArrow(id_dtype) if form == "arrow" else FromTorch(id_dtype)
    yield from map(make, mixed.iter(BATCH))
