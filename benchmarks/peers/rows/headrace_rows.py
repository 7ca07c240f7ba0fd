"""headrace: the columns as a space of rows under its ``Loader``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.loading import Loader, Ragged, Rows, Scalar
from peers.rows.layout import BATCH, LENGTH, SCALARS, SEED, Batches, column, count


def rows_of(folder: Path, id_dtype: str) -> Rows:
    """Return the columns as a space."""
    columns: list[Any] = [Scalar(name, [column(folder, name)]) for name in (*SCALARS, "price")]
    columns.append(Ragged("history", [column(folder, "offsets")], [column(folder, "values")], LENGTH, "left"))
    return Rows(columns, [count(folder)], "benchmark", id_dtype=id_dtype)  # type: ignore[arg-type]


def loader(folder: Path, id_dtype: str, threads: int = 2, shuffle: Any = "global") -> Batches:
    """Serve one epoch."""
    space = rows_of(folder, id_dtype)
    yield from Loader(space, batch_size=BATCH, shuffle=shuffle, seed=SEED, output="torch", threads=threads)
