"""From a raw log of real ad impressions to a trained click model.

    python examples/open_bandit/demo.py

1. build: `ads.toml` and the files in `data/` become a store, fitted on the first five days.
2. stream: shuffled batches of torch tensors, and how many rows a second come out.
3. train: a small factorization machine, judged on the two days after.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from model import FactorizationMachine, auc, auc_error, log_loss
from numpy.typing import NDArray
from torch.nn.functional import binary_cross_entropy_with_logits

import headrace as hr

HERE = Path(__file__).resolve().parent
ITEMS = 34
BATCH_SIZE = 256
EPOCHS = 10
RIDGE = 0.003
"""Chosen, as the epochs were, on the five days of train alone: one day left out at a time."""
LARGEST_WEIGHT = 10.0
"""Weights are clipped: one impression with a propensity of 0.000165 would count as much as 178 others."""

Arrays = dict[str, NDArray[np.float32]]


def main() -> None:
    """Build or open the store, stream, train, and judge."""
    parser = argparse.ArgumentParser(description="From raw ad impressions to a trained click model.")
    parser.add_argument("--store", type=Path, default=Path("stores/open_bandit"))
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    arguments = parser.parse_args()
    splits = hr.build(HERE / "ads.toml", out=arguments.store)
    print(splits)
    stream(splits)
    train_and_judge(splits, arguments.epochs)


def stream(splits: hr.DatasetDict) -> None:
    """Print how many rows a second come out of the loader: the median of 9 epochs, after one to warm up."""
    heading("stream: shuffled batches of torch tensors")
    loader = splits["train"].loader(batch_size=BATCH_SIZE, shuffle="global", seed=7, output="torch")
    batch = next(iter(loader))
    for name in ("item_id", "hour", "item_feature_0", "click", "weight", "sample_id"):
        print(f"  {name:<16} {batch[name].dtype!s:<14} {list(batch[name].shape)}")
    print(f"  ... {len(batch)} arrays in all")
    rates = []
    for _ in range(10):
        started = time.perf_counter()
        rows = sum(len(batch["sample_id"]) for batch in loader)
        rates.append(rows / (time.perf_counter() - started))
    rate = statistics.median(rates[1:])
    print(f"{rows:,} rows an epoch in {len(loader)} batches of {BATCH_SIZE}: {rate:,.0f} rows/s")


class Prepare:
    """What a loader does to each batch of NumPy arrays, in its threads, before it becomes tensors.

    The log was written by a policy that showed what it believed in: an item it did not like is rare in
    it. Each row therefore counts ``(1 / ITEMS) / p``, with ``p`` the logged chance that the policy showed
    this item: so weighted, the log looks as if items had been shown at random. The store keeps ``p`` as
    logged, so that another clipping needs no new build.

    Of the user's affinities to all items, the model is given that to the item at hand.
    """

    def __init__(self, splits: hr.DatasetDict) -> None:
        vocabulary = splits.vocabularies["item_id"]
        self.column_of_id = np.zeros(len(vocabulary), np.int64)
        for item in range(ITEMS):
            self.column_of_id[vocabulary[str(item)]] = item

    def __call__(self, batch: Arrays, keys: NDArray[np.uint64]) -> Arrays:
        """Replace propensities by weights, and 34 affinities by the one that counts."""
        affinities = np.stack([batch.pop(f"affinity_{item}") for item in range(ITEMS)], axis=1)
        rows = np.arange(len(affinities))
        batch["affinity"] = affinities[rows, self.column_of_id[batch["item_id"]]]
        batch["weight"] = np.minimum(1 / (ITEMS * batch["weight"]), np.float32(LARGEST_WEIGHT))
        return batch


def train_and_judge(splits: hr.DatasetDict, epochs: int) -> None:
    """Train on the first five days, and compare with a constant on the two after."""
    heading("train: a factorization machine on 24 to 28 November, judged on 29 and 30 November")
    prepare = Prepare(splits)
    options = {"batch_size": BATCH_SIZE, "output": "torch", "transform": prepare}
    train = splits["train"].loader(shuffle="global", seed=7, **options)
    rate = float(np.mean(splits["train"]["click"]))
    started = time.perf_counter()
    model = FactorizationMachine(splits.features, ["item_feature_0", "affinity"], 4, rate)
    fit(model, train, epochs)
    seconds, waited = time.perf_counter() - started, train.report().waited_share
    print(f"{epochs} epochs in {seconds:.1f} s, {waited:.0%} of it waiting for batches")
    judge(model, splits["test"].loader(**options), rate)


def fit(model: FactorizationMachine, loader: hr.Loader, epochs: int) -> None:
    """Minimise the weighted log loss and a ridge; each pass over the loader is the next epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    penalized = [parameter for name, parameter in model.named_parameters() if name != "linear.bias"]
    for _ in range(epochs):
        for batch in loader:
            loss = binary_cross_entropy_with_logits(model(batch), batch["click"], weight=batch["weight"])
            loss = loss + RIDGE * sum(parameter.square().sum() for parameter in penalized)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def judge(model: FactorizationMachine, loader: hr.Loader, rate: float) -> None:
    """Print log loss and AUC of the model beside those of a constant."""
    clicks, logits = [], []
    for batch in loader:
        clicks.append(batch["click"].double().numpy())
        logits.append(model(batch).double())
    print_scores(np.concatenate(clicks), torch.sigmoid(torch.cat(logits)).numpy(), rate)


def print_scores(clicks: NDArray[np.float64], predicted: NDArray[np.float64], rate: float) -> None:
    """Print log loss and AUC, the impressions counted as they were logged."""
    positives = int(clicks.sum())
    area = auc(clicks, predicted)
    error = auc_error(area, positives, len(clicks) - positives)
    constant = np.full(len(clicks), rate)
    print(f"{len(clicks):,} impressions with {positives} clicks ({positives / len(clicks):.2%})")
    print(f"  {'':<24}{'log loss':>10}{'AUC':>8}")
    print(f"  {'constant, train rate':<24}{log_loss(clicks, constant):>10.5f}{0.5:>8.3f}")
    print(f"  {'factorization machine':<24}{log_loss(clicks, predicted):>10.5f}{area:>8.3f} ± {error:.3f}")
    print(f"With {positives} clicks this shows that the batches are model-ready, not that the model is good.")


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n== {text}")


if __name__ == "__main__":
    torch.manual_seed(7)
    main()
