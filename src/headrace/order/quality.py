"""How good a shuffle is, as numbers beside those of a true one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.order.plan import Plan
from headrace.order.sampler import EpochOrder


@dataclass(frozen=True)
class ShuffleQuality:
    """Each figure is 1 for a true shuffle, up to chance, and near 0 for the order in which samples stand."""

    displacement: float
    """Mean ``|index − position|`` over its expectation in a true shuffle, about a third of the samples:
    does a sample come anywhere in the epoch?"""
    neighbours: float
    """Mean ``|index − next index|`` over its expectation: are samples that stand together drawn apart?"""
    spread: float
    """Mean number of regions (one in √N of the samples each) that a global batch draws from, over its
    expectation: is each batch like the whole?"""
    samples: int
    """Positions that were looked at."""

    @property
    def score(self) -> float:
        """The smallest of the three, at most 1."""
        return min(1.0, self.displacement, self.neighbours, self.spread)


def measure_shuffle(order: EpochOrder, plan: Plan, size: int, samples: int) -> ShuffleQuality:
    """Compare an order with a true shuffle.

    Displacement and neighbours are taken over global batches that are spread evenly over the epoch.

    Args:
        order: What is measured.
        plan: Where its global batches are.
        size: Samples that the indices are of.
        samples: About how many positions to look at.
    """
    steps = _spread_steps(plan, samples)
    batches = [_batch(order, plan, int(step)) for step in steps]
    batches = [batch for batch in batches if batch[0].size]
    if not batches or size < 2:
        return ShuffleQuality(1.0, 1.0, 1.0, sum(batch[0].size for batch in batches))
    return ShuffleQuality(
        _displacement(batches, len(order), size), _neighbours(batches, size), _spread(batches, size),
        sum(batch[0].size for batch in batches),
    )  # fmt: skip


def _spread_steps(plan: Plan, samples: int) -> NDArray[np.int64]:
    steps = len(plan)
    if not steps:
        return np.empty(0, np.int64)
    start, stop = plan.bounds(0)
    wanted = max(1, min(steps, samples // max(stop - start, 1)))
    return np.unique(np.linspace(0, steps - 1, wanted).astype(np.int64))


def _batch(order: EpochOrder, plan: Plan, step: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return positions and indices of a global batch."""
    start, stop = plan.bounds(step)
    positions = np.arange(start, stop, dtype=np.int64)
    return positions, order.indices(positions, start, stop)


def _displacement(
    batches: list[tuple[NDArray[np.int64], NDArray[np.int64]]], positions: int, size: int
) -> float:
    """Compare ``|index − place|``, the place scaled to the samples, with ``E|u − x|`` of a uniform u."""
    place = np.concatenate([batch[0] for batch in batches]) / max(positions - 1, 1)
    drawn = np.concatenate([batch[1] for batch in batches]) / (size - 1)
    expected = (place**2 + (1 - place) ** 2) / 2
    return float(np.abs(drawn - place).mean() / expected.mean())


def _neighbours(batches: list[tuple[NDArray[np.int64], NDArray[np.int64]]], size: int) -> float:
    """Compare the distance of adjacent draws with ``(size + 1) / 3``."""
    steps = np.concatenate([np.abs(np.diff(batch[1])) for batch in batches])
    return float(steps.mean() / ((size + 1) / 3)) if steps.size else 1.0


def _spread(batches: list[tuple[NDArray[np.int64], NDArray[np.int64]]], size: int) -> float:
    """Compare the regions of a batch with the ``R (1 − (1 − 1/R)^B)`` that a true shuffle draws from."""
    regions = max(2, math.isqrt(size))
    found = [np.unique(batch[1] * regions // size).size for batch in batches]
    expected = [regions * (1 - (1 - 1 / regions) ** batch[1].size) for batch in batches]
    return float(np.sum(found) / np.sum(expected))
