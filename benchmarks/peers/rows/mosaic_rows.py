"""MosaicML Streaming: rows in MDS shards, a column for each feature or each row in one piece of bytes.

Its packages for pictures, text and video ask for torchvision and more, which rows do not need: they are left
out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

for _name in ("vision", "text", "multimodal"):
    sys.modules.setdefault(f"streaming.{_name}", ModuleType(_name))

import streaming  # noqa: E402
from streaming.base.util import clean_stale_shared_memory  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

from peers.rows.layout import BATCH, LENGTH, SCALARS, Batches, batch_of_bytes, count, records  # noqa: E402
from peers.rows.torch_loaders import NumpyRows, Stack, options  # noqa: E402

KINDS = {
    **SCALARS,
    "price": "float32",
    "history": f"ndarray:int64:{LENGTH}",
    "history_mask": f"ndarray:uint8:{LENGTH}",
}


def write(folder: Path, target: Path, rows: int, form: str) -> None:
    """Write the first rows."""
    columns = {"row": "bytes"} if form == "bytes" else KINDS
    with streaming.MDSWriter(out=str(target), columns=columns) as writer:
        if form == "bytes":
            for record in records(folder, rows):
                writer.write({"row": record.tobytes()})
            return
        dataset = NumpyRows(folder)
        for index in range(rows):
            row = dataset[index]
            writer.write({**row, "history_mask": row["history_mask"].astype("uint8")})


class FromBytes:
    """Puts rows of bytes together."""

    def __init__(self, id_dtype: str) -> None:
        self.id_dtype = id_dtype

    def __call__(self, rows: list[dict[str, bytes]]) -> Any:
        return batch_of_bytes([row["row"] for row in rows], self.id_dtype)


class FromColumns(Stack):
    """Puts rows of columns together."""

    def __call__(self, rows: list[dict[str, Any]]) -> Any:
        import torch

        batch = super().__call__(rows)
        dtype = getattr(torch, self.id_dtype)
        mask, history = batch["history_mask"].view(torch.bool), batch["history"].to(dtype)
        return {**batch, "history": history, "history_mask": mask}


def loader(
    folder: Path, id_dtype: str, rows: int, form: str = "columns", workers: int = 2, shuffle: str = "py1e"
) -> Batches:
    """Shuffled batches, put together by a function of one's own."""
    clean_stale_shared_memory()
    local = str(folder / f"mds-{form}-{count(folder, rows)}")
    dataset: Any = streaming.StreamingDataset(
        local=local, shuffle=True, shuffle_algo=shuffle, batch_size=BATCH, num_canonical_nodes=1
    )
    together = FromBytes(id_dtype) if form == "bytes" else FromColumns(id_dtype)
    yield from DataLoader(dataset, BATCH, collate_fn=together, **options(workers))
