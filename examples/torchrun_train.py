"""Train a click model on several processes, and go on after a crash on any number of them.

    torchrun --nproc-per-node 2 examples/torchrun_train.py --store stores/ads --out runs/first
    torchrun --nproc-per-node 4 examples/torchrun_train.py --store stores/ads --out runs/first   # goes on

The global batch, and not the batch per process, is what stays the same: so the samples of
every step are the same on 2 and on 4 processes, and a run that is resumed sees each sample
of the epoch exactly once. On as many processes as before the weights are the same bit for bit.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import headrace as hr


class ClickModel(nn.Module):
    """Logistic regression on the embeddings of the user, the item and the mean of the history."""

    def __init__(self, sizes: dict[str, int], width: int = 8) -> None:
        super().__init__()
        self.tables = nn.ModuleDict({name: nn.Embedding(size, width) for name, size in sizes.items()})
        self.score = nn.Linear(3 * width, 1)

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return logits: float32 [B]."""
        history = self.tables["item"](batch["history"]) * batch["history_mask"].unsqueeze(-1)
        mean = history.sum(1) / batch["history_lengths"].clamp(min=1).unsqueeze(-1)
        parts = [self.tables["user"](batch["user"]), self.tables["item"](batch["item"]), mean]
        return self.score(torch.cat(parts, dim=-1)).squeeze(-1)


def loss_of(logits: torch.Tensor, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the mean over the global batch of the samples that are valid and have a label.

    Ranks may hold unequal numbers of them, and DDP averages over ranks: so each sums its own,
    and all divide by the number on all ranks.
    """
    live = (batch["valid"] & batch["click_mask"]).float()
    count = live.sum()
    dist.all_reduce(count)
    losses = nn.functional.binary_cross_entropy_with_logits(logits, batch["click"], reduction="none")
    return (losses * live).sum() * dist.get_world_size() / count.clamp(min=1)


class Checkpoint:
    """Weights and the loader's state in one file, replaced as a whole."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "checkpoint.pt"
        folder.mkdir(parents=True, exist_ok=True)

    def save(self, model: nn.Module, optimizer: torch.optim.Optimizer, loader: hr.Loader) -> None:
        """Write what a run needs to go on; only rank 0 does."""
        if dist.get_rank():
            return
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "loader": json.dumps(loader.state_dict()),
        }
        temporary = self.path.with_suffix(".tmp")
        torch.save(state, temporary)
        temporary.replace(self.path)

    def load(self, model: nn.Module, optimizer: torch.optim.Optimizer, loader: hr.Loader) -> None:
        """Read it, where there is one."""
        if not self.path.exists():
            return
        state: dict[str, Any] = torch.load(self.path, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        loader.load_state_dict(json.loads(state["loader"]))


def train(arguments: argparse.Namespace) -> None:
    """Train until ``--epochs`` are over, from the checkpoint where there is one."""
    splits = hr.load_from_disk(arguments.store)
    loader = splits["train"].loader(
        global_batch_size=arguments.global_batch_size,
        shuffle="global",
        seed=arguments.seed,
        last="pad",
        output="torch",
    )
    torch.manual_seed(arguments.seed)
    sizes = splits.embedding_sizes()
    model = DistributedDataParallel(ClickModel({"user": sizes["user"], "item": sizes["item"]}))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    checkpoint = Checkpoint(arguments.out)
    checkpoint.load(model.module, optimizer, loader)
    log = (arguments.out / f"seen-{os.getpid()}.jsonl").open("a")
    while loader.epoch < arguments.epochs:
        epoch = loader.epoch
        for number, batch in enumerate(loader, start=1):
            optimizer.zero_grad()
            loss_of(model(batch), batch).backward()
            optimizer.step()
            seen = batch["sample_id"][batch["valid"]].tolist()
            record = {"epoch": epoch, "position": loader.state_dict()["position"], "ids": seen}
            log.write(json.dumps(record) + "\n")
            log.flush()
            if number % arguments.save_every == 0:
                checkpoint.save(model.module, optimizer, loader)
                dist.barrier()
    checkpoint.save(model.module, optimizer, loader)


def main() -> None:
    """Read the arguments and train."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", required=True, help="a store with user, item, history and click")
    parser.add_argument("--out", required=True, type=Path, help="folder of the checkpoint and the log")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--global-batch-size", type=int, default=96)
    parser.add_argument("--save-every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    train(arguments)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
