"""Orders with replacement: N draws by weight, or with every class as often as any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import OrderError
from headrace.kernels.alias import LARGEST_TABLE, alias_table, integer_masses
from headrace.kernels.draws import draw_grouped, draw_weighted
from headrace.kernels.rng import stream_key
from headrace.order.integers import array_of
from headrace.order.sampler import Budget, EpochOrder, Parameters, PositionOrder, digest

_LABELS = "labels are numbers, booleans or texts, one a sample"


class Weighted:
    """N draws with replacement, each sample with a chance in proportion to its weight.

    The alias table is made once (8 bytes a sample); a draw is then O(1) at any position.

    Args:
        weights: float [N], one a sample: finite, not negative, not all 0; N is below 2**31.

    Raises:
        OrderError: The weights are not so; the message names the first that is not.
    """

    def __init__(self, weights: NDArray[Any] | Sequence[float]) -> None:
        self.weights = _checked_weights(_numbers(weights))
        self._table = alias_table(integer_masses(self.weights))

    def describe(self) -> Parameters:
        """Return a digest of the weights."""
        return {"kind": "weighted", "weights": digest(self.weights)}

    def at(self, size: int, seed: int, epoch: int, budget: Budget) -> EpochOrder:
        """Return the draws of one epoch."""
        check_length(self.weights.size, size, "Weighted(weights)")
        return _WeightedOrder(self._table, stream_key(seed, epoch, "weighted order"))


class ClassBalanced:
    """N draws with replacement: a class uniformly, then a sample of it uniformly.

    Args:
        labels: Numbers, booleans or texts [N], the class of each sample; classes without a sample are not
            drawn.

    Raises:
        OrderError: There are none, or one of them is NaN or of another kind.
    """

    def __init__(self, labels: NDArray[Any] | Sequence[int]) -> None:
        array = array_of("ClassBalanced(labels)", labels, "biufUS", _LABELS)
        if array.size == 0:
            raise OrderError(f"ClassBalanced(labels): there are none; {_LABELS}.")
        if array.dtype.kind == "f" and np.isnan(array).any():
            place = int(np.isnan(array).argmax())
            raise OrderError(f"ClassBalanced(labels): label {place} is nan, which is no class; {_LABELS}.")
        self._members = np.argsort(array, kind="stable").astype(np.int64)
        starts = np.unique(array[self._members], return_index=True)[1]
        self._offsets = np.append(starts, array.size).astype(np.int64)
        self._digest = digest(np.concatenate([self._members, self._offsets]))

    def describe(self) -> Parameters:
        """Return a digest of the labels."""
        return {"kind": "class-balanced", "labels": self._digest}

    def at(self, size: int, seed: int, epoch: int, budget: Budget) -> EpochOrder:
        """Return the draws of one epoch."""
        check_length(self._members.size, size, "ClassBalanced(labels)")
        return _GroupedOrder(self._members, self._offsets, stream_key(seed, epoch, "class-balanced order"))


class _WeightedOrder(PositionOrder):
    def __init__(self, table: NDArray[np.uint64], key: np.uint64) -> None:
        super().__init__(table.size)
        self._table, self._key = table, key

    def look_up(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return draw_weighted(positions, self._table, self._key)


class _GroupedOrder(PositionOrder):
    def __init__(self, members: NDArray[np.int64], offsets: NDArray[np.int64], key: np.uint64) -> None:
        super().__init__(members.size)
        self._members, self._offsets, self._key = members, offsets, key

    def look_up(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return draw_grouped(positions, self._members, self._offsets, self._key)


def check_length(found: int, size: int, what: str) -> None:
    """Refuse per-sample numbers that are not one a sample."""
    if found != size:
        raise OrderError(
            f"{what} has {found} entries, and there are {size} samples; there must be one for each."
        )


def _numbers(weights: Any) -> NDArray[np.float64]:
    array = array_of("Weighted(weights)", weights, "biuf", "weights are numbers, one a sample")
    return array.astype(np.float64)


def _checked_weights(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    if not 1 <= weights.size <= LARGEST_TABLE:
        raise OrderError(
            f"Weighted(weights): there are {weights.size:,}; there must be one a sample, "
            f"and from 1 to {LARGEST_TABLE:,} of them."
        )
    wrong = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if wrong.size:
        place = int(wrong[0])
        raise OrderError(
            f"Weighted(weights): weight {place} is {weights[place]}; weights are finite and not negative."
        )
    if not weights.any():
        raise OrderError("Weighted(weights): all weights are 0; at least one must be above.")
    return weights
