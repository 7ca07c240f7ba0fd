"""A factorization machine over whatever features a store declares, and the scores to judge it by."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headrace.encoding.info import FeatureInfo


class FactorizationMachine(nn.Module):
    """``bias + sum of weights + sum of products of pairs of embeddings`` (Rendle 2010, equation 1).

    Args:
        features: ``splits.features``: those with ids get an embedding table of ``size`` rows.
        numbers: Names of the float32 [B] arrays of a batch.
        dim: Length of an embedding.
        click_rate: What it predicts before it has learned anything.
    """

    def __init__(
        self, features: Mapping[str, FeatureInfo], numbers: list[str], dim: int, click_rate: float
    ) -> None:
        super().__init__()
        sizes = {name: info.size for name, info in features.items() if info.size is not None}
        self.numbers = numbers
        self.weights = nn.ModuleDict({name: nn.Embedding(size, 1) for name, size in sizes.items()})
        self.vectors = nn.ModuleDict({name: nn.Embedding(size, dim) for name, size in sizes.items()})
        self.linear = nn.Linear(len(numbers), 1)
        for table in self.weights.values():
            nn.init.zeros_(table.weight)
        for table in self.vectors.values():
            nn.init.normal_(table.weight, std=0.01)
        nn.init.zeros_(self.linear.weight)
        nn.init.constant_(self.linear.bias, float(np.log(click_rate / (1 - click_rate))))

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the logit of each row, float32 [B]."""
        logit = self.linear(torch.stack([batch[name] for name in self.numbers], dim=1)).squeeze(1)
        logit = logit + sum(table(batch[name]).squeeze(1) for name, table in self.weights.items())
        vectors = torch.stack([table(batch[name]) for name, table in self.vectors.items()], dim=1)
        pairs = vectors.sum(dim=1).square() - vectors.square().sum(dim=1)
        return logit + 0.5 * pairs.sum(dim=1)


def log_loss(clicks: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    """Return the mean negative log likelihood, in nats."""
    predicted = np.clip(predicted, 1e-12, 1 - 1e-12)
    return float(-np.mean(clicks * np.log(predicted) + (1 - clicks) * np.log1p(-predicted)))


def auc(clicks: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    """Return the chance that a click is ranked above a non-click; ties count one half."""
    _, places, counts = np.unique(predicted, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    positives, negatives = clicks.sum(), (1 - clicks).sum()
    return float((ranks[clicks == 1].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def auc_error(area: float, positives: int, negatives: int) -> float:
    """Return the standard error of an AUC (Hanley and McNeil 1982)."""
    both, twice = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (positives - 1) * (both - area**2) + (negatives - 1) * (twice - area**2)
    return float(np.sqrt(spread / (positives * negatives)))
