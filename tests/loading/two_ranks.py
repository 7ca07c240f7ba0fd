"""Run by test_frameworks.py on each of two ranks: what frameworks make of our DataLoader, as JSON lines.

Arguments: the output folder. Writes ``{name: [[ids of a batch], …] per epoch}`` of this rank.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from headrace.loading import Loader
from headrace.testing import Counting

SIZE, BATCH = 103, 8


def dataloader(**workers: Any) -> Any:
    """A loader that takes rank and world size from the process group."""
    loader = Loader(Counting(SIZE), batch_size=BATCH, shuffle="global", seed=5, last="keep", output="torch")
    return loader.as_torch_dataloader(**workers)


def plain(**workers: Any) -> list[list[list[int]]]:
    """Plain torch: two epochs."""
    batches = dataloader(**workers)
    return [[batch["index"].tolist() for batch in batches] for _ in range(2)]


def accelerate() -> list[list[list[int]]]:
    """Accelerate: two epochs through ``prepare``, with accumulated gradients and gathered metrics."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, batches = accelerator.prepare(model, optimizer, dataloader())
    epochs, steps = [], 0
    for _ in range(2):
        seen = []
        for batch in batches:
            with accelerator.accumulate(model):
                inputs = batch["index"].float().reshape(-1, 1)
                accelerator.backward(model(inputs).sum() * 1e-6)
                steps += accelerator.sync_gradients
                optimizer.step()
                optimizer.zero_grad()
            seen.append(batch["index"].tolist())
            gathered = accelerator.gather_for_metrics(torch.tensor([len(batch["index"])]))
            assert len(gathered) == 2
        epochs.append(seen)
    assert steps == 2 * -(-len(batches) // 4), (
        "gradients are applied every 4 steps and at the end of an epoch"
    )
    return epochs


def lightning(folder: Path) -> list[list[list[int]]]:
    """Lightning: two epochs of ``Trainer.fit``, and a resume from a checkpoint in the middle of one."""
    import lightning

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.seen: dict[int, list[list[int]]] = {}

        def training_step(self, batch: dict[str, torch.Tensor], number: int) -> torch.Tensor:
            self.seen.setdefault(self.current_epoch, []).append(batch["index"].tolist())
            return self.layer(batch["index"].float().reshape(-1, 1)).sum() * 1e-6

        def on_train_batch_end(self, outputs: Any, batch: Any, number: int) -> None:
            if self.trainer.global_step == 10:
                self.trainer.save_checkpoint(folder / "middle.ckpt")

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def trainer(**options: Any) -> lightning.Trainer:
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        place = {"accelerator": "cpu", "devices": 2, "strategy": "ddp", "default_root_dir": folder}
        return lightning.Trainer(max_epochs=2, enable_checkpointing=False, **quiet, **place, **options)

    whole = Model()
    trainer().fit(whole, dataloader())
    resumed = Model()
    trainer().fit(resumed, dataloader(), ckpt_path=folder / "middle.ckpt", weights_only=True)
    assert resumed.seen == {1: whole.seen[1][3:]}, "a resumed run goes on where the checkpoint was made"
    return [whole.seen[0], whole.seen[1]]


def main() -> None:
    warnings.simplefilter("error")
    for harmless in (".*does not have many workers.*", ".*deprecated.*", ".*has `__len__` defined.*"):
        warnings.filterwarnings("ignore", harmless)
    folder, rank = Path(sys.argv[1]), int(os.environ["RANK"])
    dist.init_process_group("gloo")
    found = {
        "threads": plain(),
        "fork": plain(num_workers=2, multiprocessing_context="fork"),
        "persistent": plain(num_workers=1, multiprocessing_context="fork", persistent_workers=True),
        "lightning": lightning(folder),
        "accelerate": accelerate(),
    }
    (folder / f"rank-{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
