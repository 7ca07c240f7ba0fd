"""Run by test_frameworks.py without torchrun: Lightning starts the second process, or forks both, by itself.

Arguments: the strategy, and the output folder. The loaders are made before there are any ranks. Writes the
ids of each batch and epoch, as JSON, one file a rank.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import lightning
import torch

from headrace.loading import Loader
from headrace.testing import Counting

SIZE, BATCH = 103, 8


class Model(lightning.LightningModule):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen: list[list[list[int]]] = [[], []]
        self.folder = folder

    def training_step(self, batch: dict[str, torch.Tensor], number: int) -> torch.Tensor:
        self.seen[self.current_epoch].append(batch["index"].tolist())
        return self.layer(batch["index"].float().reshape(-1, 1)).sum() * 1e-6

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def on_fit_end(self) -> None:
        (self.folder / f"rank-{self.global_rank}.json").write_text(json.dumps(self.seen))


def main() -> None:
    warnings.simplefilter("ignore")
    strategy, folder = sys.argv[1], Path(sys.argv[2])
    loader = Loader(Counting(SIZE), batch_size=BATCH, shuffle="global", seed=5, output="torch")
    place: dict[str, Any] = {"accelerator": "cpu", "devices": 2, "default_root_dir": folder}
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(max_epochs=2, strategy=strategy, enable_checkpointing=False, **quiet, **place)
    trainer.fit(Model(folder), loader.as_torch_dataloader())


if __name__ == "__main__":
    main()
