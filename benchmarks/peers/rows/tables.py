"""Arrow and Polars: a table in memory, taken by index arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from peers.rows.layout import (
    LENGTH,
    SCALARS,
    Batch,
    Batches,
    column,
    count,
    mask_of,
    pad,
    shuffled,
    tensors,
)


def arrow_table(folder: Path, history: str = "ragged", rows: int | None = None) -> pa.Table:
    """Return the first rows as one chunk; a ``padded`` history is a fixed-size list beside its length."""
    size = count(folder, rows)
    columns = {name: pa.array(np.asarray(column(folder, name)[:size])) for name in (*SCALARS, "price")}
    offsets = column(folder, "offsets")[: size + 1]
    if history == "padded":
        flat = np.asarray(column(folder, "history_int32")[:size]).reshape(-1)
        lists: pa.Array = pa.FixedSizeListArray.from_arrays(pa.array(flat), LENGTH)
        return pa.table({**columns, "length": pa.array(np.diff(offsets)), "history": lists})
    values = pa.array(np.asarray(column(folder, "values")[: offsets[-1]]))
    return pa.table({**columns, "history": pa.ListArray.from_arrays(pa.array(np.asarray(offsets)), values)})


def batch_of_table(table: Any, id_dtype: str) -> Batch:
    """Return an Arrow table (or record batch) of one batch as tensors, padded in NumPy."""
    history = table.column("history")
    history = history.combine_chunks() if isinstance(history, pa.ChunkedArray) else history
    scalars = {name: table.column(name).to_numpy() for name in (*SCALARS, "price")}
    if pa.types.is_fixed_size_list(history.type):
        mask = mask_of(table.column("length").to_numpy())
        padded = history.flatten().to_numpy().reshape(-1, LENGTH).astype(id_dtype)
    else:
        offsets = history.offsets.to_numpy()
        flat = history.values.to_numpy(zero_copy_only=False)
        mask = mask_of(np.diff(offsets))
        padded = pad(flat[offsets[0] : offsets[-1]], mask, id_dtype)
    return tensors({**scalars, "history": padded, "history_mask": mask}, id_dtype)


def pyarrow_take(folder: Path, id_dtype: str, history: str = "ragged", of: str = "table") -> Batches:
    """``take`` of a table, or of its only record batch."""
    table = arrow_table(folder, history)
    source: Any = table if of == "table" else table.to_batches()[0]
    for index in shuffled(table.num_rows):
        yield batch_of_table(source.take(pa.array(index)), id_dtype)


def polars_gather(folder: Path, id_dtype: str, history: str = "ragged", way: str = "index") -> Batches:
    """Rows of a data frame by an index array."""
    import polars

    frame = polars.from_arrow(arrow_table(folder, history))
    assert isinstance(frame, polars.DataFrame)
    for index in shuffled(frame.height):
        taken = frame[index] if way == "index" else frame.select(polars.all().gather(index))
        yield batch_of_table(taken.to_arrow(), id_dtype)
