"""LitData: rows optimised into its chunks, as dicts of arrays or each in one piece of bytes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import litdata

from peers.rows.layout import BATCH, RECORD, Batches, batch_of_bytes, count, records
from peers.rows.torch_loaders import NumpyRows, Stack, options


def write(folder: Path, target: Path, rows: int, form: str) -> None:
    """Write the first rows."""
    if form == "bytes":
        found = records(folder, rows)
        make: Any = partial(_one_record, found)
    else:
        make = NumpyRows(folder).__getitem__
    litdata.optimize(make, list(range(rows)), str(target), chunk_bytes="64MB", num_workers=1)


def _one_record(found: Any, index: int) -> bytes:
    return found[index].tobytes()  # type: ignore[no-any-return]


class FromBytes:
    """Puts rows of bytes together."""

    def __init__(self, id_dtype: str) -> None:
        self.id_dtype = id_dtype

    def __call__(self, rows: list[bytes]) -> Any:
        assert len(rows[0]) == RECORD.itemsize
        return batch_of_bytes(rows, self.id_dtype)


def loader(
    folder: Path,
    id_dtype: str,
    rows: int,
    form: str = "dict",
    workers: int = 2,
    decode: int | str = 1,
    window: int | str | None = None,
) -> Batches:
    """Shuffled batches, put together by a function of one's own."""
    target = folder / f"litdata-{form}-{count(folder, rows)}"
    dataset = litdata.StreamingDataset(
        str(target), shuffle=True, drop_last=False, batch_decode=decode, item_shuffle_window=window
    )
    together = FromBytes(id_dtype) if form == "bytes" else Stack(id_dtype)
    yield from litdata.StreamingDataLoader(
        dataset, batch_size=BATCH, drop_last=False, collate_fn=together, **options(workers)
    )
