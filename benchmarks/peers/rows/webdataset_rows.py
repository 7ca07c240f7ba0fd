"""WebDataset: rows in tar files, as one ``.npy`` for each part or each row in one piece of bytes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import webdataset

from peers.rows.layout import (
    BATCH,
    SCALARS,
    Batch,
    Batches,
    batch_of_bytes,
    count,
    records,
    tensors,
)
from peers.rows.torch_loaders import NumpyRows

SHARD = 20_000
PARTS = ("scalars.npy", "price.npy", "history.npy", "mask.npy")


def write(folder: Path, target: Path, rows: int, form: str) -> None:
    """Write the first rows."""
    target.mkdir()
    dataset, found = NumpyRows(folder), records(folder, rows)
    with webdataset.ShardWriter(str(target / "%05d.tar"), maxcount=SHARD, verbose=0) as writer:
        for index in range(rows):
            if form == "bytes":
                writer.write({"__key__": str(index), "row": found[index].tobytes()})
            else:
                writer.write({"__key__": str(index), **_parts(dataset[index])})


def _parts(row: dict[str, Any]) -> dict[str, np.ndarray]:
    scalars = np.array([row[name] for name in SCALARS], np.int64)
    return dict(zip(PARTS, (scalars, row["price"], row["history"], row["history_mask"]), strict=True))


def _of_parts(batch: Any, id_dtype: str) -> Batch:
    scalars, price, history, mask = (np.array(part) for part in batch)
    columns = {name: scalars[:, place] for place, name in enumerate(SCALARS)}
    whole = {**columns, "price": price, "history": history.astype(id_dtype), "history_mask": mask}
    return tensors(whole, id_dtype)


def _of_bytes(batch: Any, id_dtype: str) -> Batch:
    return batch_of_bytes(batch[0], id_dtype)


def loader(
    folder: Path,
    id_dtype: str,
    rows: int,
    form: str = "parts",
    workers: int = 2,
    buffer: int = 5000,
) -> Batches:
    """Batches of rows mixed by shards and a shuffle buffer, put together by a function of one's own."""
    target = folder / f"wds-{form}-{count(folder, rows)}"
    shards = sorted(str(path) for path in target.glob("*.tar"))
    stages = webdataset.WebDataset(shards, shardshuffle=len(shards), empty_check=False).shuffle(buffer)
    if form == "parts":
        stages = stages.decode().to_tuple(*PARTS)
        make = partial(_of_parts, id_dtype=id_dtype)
    else:
        stages = stages.to_tuple("row")
        make = partial(_of_bytes, id_dtype=id_dtype)
    batched = stages.batched(BATCH, collation_fn=_columns).map(make)
    yield from webdataset.WebLoader(batched, batch_size=None, num_workers=workers)


def _columns(rows: Any) -> list[list[Any]]:
    """Turn a list of tuples into a list for each part."""
    return [list(part) for part in zip(*rows, strict=True)]
