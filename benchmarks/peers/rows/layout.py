"""The data that every loader of rows reads, and what a batch is.

Six scalar ids, a number, and a history of up to 50 ids. A batch of 4,096 rows is a dict of torch tensors:

    slot, hour, city, item, brand, user   int64 or int32 [B]
    price                                 float32 [B]
    history                               int64 or int32 [B, 50], left-padded with 0
    history_mask                          bool [B, 50]

On disk each column is an ``.npy`` file of the smallest dtype; the history is ragged (``offsets``, ``values``)
and, for those who want it so, padded already, in the dtype of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headrace import disk

BATCH, LENGTH, SEED = 4096, 50, 7
SCALARS = {
    "slot": "uint8",
    "hour": "uint8",
    "city": "uint16",
    "item": "uint32",
    "brand": "uint32",
    "user": "uint32",
}
SIZES = {"slot": 20, "hour": 24, "city": 400, "item": 800_000, "brand": 90_000, "user": 3_000_000}
NAMES = (*SCALARS, "price", "history", "history_mask")
RECORD = np.dtype([*SCALARS.items(), ("price", "f4"), ("length", "u1"), ("history", "u4", (LENGTH,))])
"""A row in one piece, for formats that store bytes."""

Batch = dict[str, Any]
Batches = Iterator[Batch]
Columns = Mapping[str, np.ndarray]


def write_data(folder: Path, rows: int) -> None:
    """Write every column; what was begun and not ended is written again."""
    if (folder / "complete").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for name, dtype in SCALARS.items():
        save(folder / f"{name}.npy", generator.integers(1, SIZES[name], rows).astype(dtype))
    save(folder / "price.npy", generator.random(rows, dtype=np.float32))
    lengths = np.minimum(generator.geometric(1 / 30, rows), LENGTH)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = generator.integers(1, SIZES["item"], offsets[-1]).astype(np.uint32)
    save(folder / "offsets.npy", offsets)
    save(folder / "values.npy", values)
    mask = mask_of(lengths)
    save(folder / "history_mask.npy", mask)
    for dtype in ("int64", "int32"):
        save(folder / f"history_{dtype}.npy", pad(values, mask, dtype))
    (folder / "complete").touch()


def save(path: Path, array: np.ndarray) -> None:
    """Write an ``.npy`` file as headrace writes, in blocks that become huge pages: whoever maps it gains."""
    with disk.writing(path) as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(array.reshape(-1).view(np.uint8).data)


def mask_of(lengths: np.ndarray) -> np.ndarray:
    """Return where a left-padded row holds an id, bool [B, 50]."""
    return np.arange(LENGTH) >= LENGTH - lengths[:, None]


def pad(values: np.ndarray, mask: np.ndarray, id_dtype: str) -> np.ndarray:
    """Return flat values in the places of a mask, 0 elsewhere."""
    padded = np.zeros(mask.shape, id_dtype)
    padded[mask] = values
    return padded


def column(folder: Path, name: str) -> np.ndarray:
    """Return one column, mapped, as a plain array: a ``memmap`` takes longer to give an element."""
    return np.load(folder / f"{name}.npy", mmap_mode="r").view(np.ndarray)  # type: ignore[no-any-return]


def count(folder: Path, rows: int | None = None) -> int:
    """Return how many rows a contender reads: all, or ``rows`` of them."""
    size = len(column(folder, "price"))
    return min(size, rows or size)


def padded_columns(folder: Path, id_dtype: str) -> dict[str, np.ndarray]:
    """Return the columns of a batch, the history padded, mapped."""
    columns = {name: column(folder, name) for name in (*SCALARS, "price", "history_mask")}
    return {**columns, "history": column(folder, f"history_{id_dtype}")}


def gather(columns: Columns, index: np.ndarray, id_dtype: str) -> Batch:
    """Return the batch of some rows of padded columns."""
    return tensors({name: array.take(index, axis=0) for name, array in columns.items()}, id_dtype)


def tensors(batch: Columns, id_dtype: str) -> Batch:
    """Return a batch as tensors, its scalar ids widened; memory is shared where nothing has to change."""
    import torch

    wide = {name: array.astype(id_dtype) if name in SCALARS else array for name, array in batch.items()}
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in wide.items()}


def shuffled(rows: int) -> Iterator[np.ndarray]:
    """Yield the index arrays of one epoch."""
    order = np.random.default_rng(SEED).permutation(rows)
    for start in range(0, rows, BATCH):
        yield order[start : start + BATCH]


def records(folder: Path, rows: int) -> np.ndarray:
    """Return the first rows, each in one piece, for those who store rows as bytes."""
    found = np.empty(rows, RECORD)
    for name in (*SCALARS, "price"):
        found[name] = column(folder, name)[:rows]
    found["length"] = np.diff(column(folder, "offsets")[: rows + 1])
    found["history"] = column(folder, "history_int32")[:rows]
    return found


def batch_of_records(found: np.ndarray, id_dtype: str) -> Batch:
    """Return rows in one piece as a batch."""
    columns = {name: found[name] for name in (*SCALARS, "price")}
    history = found["history"].astype(id_dtype)
    return tensors({**columns, "history": history, "history_mask": mask_of(found["length"])}, id_dtype)


def batch_of_bytes(rows: list[bytes], id_dtype: str) -> Batch:
    """Return rows stored as bytes as a batch."""
    return batch_of_records(np.frombuffer(b"".join(rows), RECORD), id_dtype)
