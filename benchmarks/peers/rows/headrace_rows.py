"""headrace: a space of rows under its ``Loader``, from columns and the records beside them in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from headrace.loading import Loader, Ragged, Rows, Scalar
from headrace.loading.records import pack, record_dtype, unpack
from peers.rows.layout import BATCH, LENGTH, SCALARS, SEED, Batches, column, count, save


def columns_of(folder: Path) -> list[Any]:
    """Return the columns of a shard."""
    columns: list[Any] = [Scalar(name, [column(folder, name)]) for name in (*SCALARS, "price")]
    columns.append(Ragged("history", [column(folder, "offsets")], [column(folder, "values")], LENGTH, "left"))
    return columns


def write(folder: Path, target: Path, rows: int, form: str) -> None:
    """Write the records beside the columns, as ``headrace.build`` does."""
    target.mkdir()
    columns = columns_of(folder)
    save(target / f"{form}.npy", pack(columns, record_dtype(columns), 0, rows + 1))


def rows_of(folder: Path, id_dtype: str, form: str = "records") -> Rows:
    """Return the rows as a space; ``form="columns"`` reads no records."""
    columns = columns_of(folder)
    if form == "records":
        records = np.load(folder / f"headrace-{form}-{count(folder)}" / f"{form}.npy", mmap_mode="r")
        columns = unpack(columns, [records.view(np.ndarray)])
    return Rows(columns, [count(folder)], "benchmark", id_dtype=id_dtype)  # type: ignore[arg-type]


def loader(
    folder: Path, id_dtype: str, threads: int = 1, shuffle: Any = "global", form: str = "records"
) -> Batches:
    """Serve one epoch."""
    space = rows_of(folder, id_dtype, form)
    yield from Loader(space, batch_size=BATCH, shuffle=shuffle, seed=SEED, output="torch", threads=threads)
