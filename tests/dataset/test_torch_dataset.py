"""Rows of a store as a map-style dataset of torch."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.utils.data import DataLoader

import headrace as hr


def test_a_collate_function_of_the_users_own_gets_the_rows(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("".join(f'{{"u":"{n % 3}","y":{n % 2}}}\n' for n in range(10)))
    spec = {
        "name": "t",
        "source": {"files": str(tmp_path / "log.jsonl")},
        "features": {"u": {"kind": "categorical"}},
        "labels": {"y": {"kind": "binary"}},
    }
    train = hr.build(spec, out=tmp_path / "store")["train"]
    dataset = train.as_torch_dataset()
    assert len(dataset) == 10
    loader = DataLoader(dataset, batch_size=4, collate_fn=lambda rows: [row["u"].item() for row in rows])
    batches = list(loader)
    # 0 stands four times, 1 and 2 three times: ids 3, 4, 5 by falling count, ties by byte order.
    assert batches == [[3, 4, 5, 3], [4, 5, 3, 4], [5, 3]]
    assert torch.as_tensor(dataset[1]["y"]).item() == 1.0
