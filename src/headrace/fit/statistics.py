"""What the transforms of numbers learn from the train split, independent of how rows are cut into parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.moments import add_compensated

Blocks = Callable[[], Iterable[NDArray[np.float64]]]
"""Gives the present values of the train rows, in row order, as often as it is called."""


@dataclass(frozen=True)
class Statistics:
    """Of the present values of a numeric feature in train."""

    count: int
    mean: float
    """0 where there is no value."""
    deviation: float
    """The population's standard deviation; 0 where there is no value."""
    minimum: float
    maximum: float
    boundaries: tuple[float, ...] = ()
    """With ``bucketize``: value ``x`` is in bucket ``i`` when ``boundaries[i - 1] < x <= boundaries[i]``."""


def fit_statistics(blocks: Blocks, buckets: int | None) -> Statistics:
    """Compute the statistics in two passes, or one sort where there are buckets.

    Args:
        blocks: The values, in row order.
        buckets: Number of quantile buckets, or ``None``. The boundaries are the values at
            ranks ``ceil(k N / buckets)``: the smallest value with at least that share at or below it.
    """
    count, minimum, maximum = 0, math.inf, -math.inf
    state = np.zeros(4)
    for values in blocks():
        add_compensated(values, 0.0, state)
        count += len(values)
        if len(values):
            minimum, maximum = min(minimum, float(values.min())), max(maximum, float(values.max()))
    if count == 0:
        return Statistics(0, 0.0, 0.0, 0.0, 0.0)
    mean = float((state[0] + state[1]) / count)
    centered = np.zeros(4)
    for values in blocks():
        add_compensated(values, mean, centered)
    deviation = math.sqrt(max(0.0, float((centered[2] + centered[3]) / count)))
    return Statistics(count, mean, deviation, minimum, maximum, _boundaries(blocks, count, buckets))


def _boundaries(blocks: Blocks, count: int, buckets: int | None) -> tuple[float, ...]:
    if buckets is None:
        return ()
    ordered = np.sort(np.concatenate(list(blocks())))
    ranks = [-(-number * count // buckets) - 1 for number in range(1, buckets)]
    return tuple(float(ordered[max(rank, 0)]) for rank in ranks)


def standardized(values: NDArray[np.float64], fitted: Statistics) -> NDArray[np.float64]:
    """Return ``(x - mean) / deviation``; 0 where train held one value only."""
    return (values - fitted.mean) / fitted.deviation if fitted.deviation else np.zeros(len(values))


def rescaled(values: NDArray[np.float64], fitted: Statistics) -> NDArray[np.float64]:
    """Return ``(x - minimum) / (maximum - minimum)``; 0 where train held one value only."""
    width = fitted.maximum - fitted.minimum
    return (values - fitted.minimum) / width if width else np.zeros(len(values))


def bucket_numbers(values: NDArray[np.float64], fitted: Statistics) -> NDArray[np.int64]:
    """Return the bucket of each value, from 0."""
    return np.searchsorted(np.array(fitted.boundaries), values, side="left").astype(np.int64)
