"""Orders that put samples of like length together, so that a batch holds little padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import OrderError
from headrace.kernels.draws import cut_by_tokens
from headrace.order.integers import array_of, int64_of, integer
from headrace.order.permutation import Permutation
from headrace.order.sampler import Budget, EpochOrder, ListedOrder, Parameters, digest
from headrace.order.weighted import check_length

_MOST = 1 << 62
"""More tokens and samples than there are."""


class LengthBucketed:
    """A shuffle whose global batches hold samples of like length.

    All samples are shuffled; windows of them are sorted by length and cut into global
    batches; the batches are shuffled. What is over of whole batches is the end of the shuffle, of any
    length, and stays last: ``last="drop"`` leaves out other samples each epoch, not the longest. With a
    token budget (``max_tokens=``) a window is cut where count × longest would exceed it. The plan is made
    in one pass from lengths, seed, epoch and the global budget, and takes 8 bytes a sample;
    resuming once it is made is O(1). Every sample comes once an epoch.

    Args:
        lengths: Integers [N], the length of each sample.
        window: Samples that are sorted together: more give less padding, fewer a better shuffle.
        multiple_of: With a token budget: global batches of at least so many samples are cut to a
            multiple of it. With the world size here, no rank's part ever exceeds its ``max_tokens``;
            with 1 (the default) it may do so by one sample where the ranks do not divide the batch.

    Raises:
        OrderError: A length is negative, or ``window`` or ``multiple_of`` is below 1.
    """

    planned = True
    """The plan depends on the global batch, which is therefore part of a state."""

    def __init__(
        self, lengths: NDArray[Any] | Sequence[int], window: int = 65_536, multiple_of: int = 1
    ) -> None:
        self.lengths = checked_lengths(lengths)
        self.window = integer("window", window)
        self.multiple_of = integer("multiple_of", multiple_of)
        if self.window < 1 or self.multiple_of < 1:
            raise OrderError(f"window={window}, multiple_of={multiple_of}; both must be at least 1.")
        self._digest = digest(self.lengths)

    def describe(self) -> Parameters:
        """Return window, multiple_of and a digest of the lengths."""
        return {
            "kind": "length-bucketed",
            "lengths": self._digest,
            "window": self.window,
            "multiple_of": self.multiple_of,
        }

    def at(self, size: int, seed: int, epoch: int, budget: Budget) -> EpochOrder:
        """Return the plan of one epoch."""
        check_length(self.lengths.size, size, "LengthBucketed(lengths)")
        shuffled = Permutation(size, seed, epoch, "bucketed order")[:]
        if budget.tokens is not None:
            order = _sorted_windows(shuffled, self.lengths, self.window)
            tokens, multiple_of = min(budget.tokens, _MOST), min(self.multiple_of, _MOST)
            return _token_batches(order, self.lengths, tokens, multiple_of, seed, epoch)
        batch = min(budget.samples or 1, max(size, 1))
        window = max(batch, self.window - self.window % batch)
        body, rest = np.split(shuffled, [size - size % batch])
        body = _sorted_windows(body, self.lengths, window)
        return ListedOrder(np.concatenate([_shuffled_batches(body, batch, seed, epoch), rest]))


def cut_order(
    order: EpochOrder, lengths: NDArray[np.int64], tokens: int, multiple_of: int = 1
) -> ListedOrder:
    """Return an order of another kind, cut into global batches by a token budget."""
    positions = np.arange(len(order), dtype=np.int64)
    indices = order.indices(positions, 0, positions.size)
    _check_budget(lengths, tokens)
    return ListedOrder(indices, cut_by_tokens(lengths[indices], min(tokens, _MOST), multiple_of))


def checked_lengths(lengths: NDArray[Any] | Sequence[int]) -> NDArray[np.int64]:
    """Return int64 [N] lengths, none of them negative."""
    array = int64_of("lengths", array_of("lengths", lengths, "iu", "they are integers, one a sample"))
    if array.size and array.min() < 0:
        place = int(array.argmin())
        raise OrderError(f"length {place} is {array[place]}; a length is not negative.")
    return array


def _sorted_windows(order: NDArray[np.int64], lengths: NDArray[np.int64], window: int) -> NDArray[np.int64]:
    windows = np.arange(order.size) // min(window, _MOST)
    return order[np.lexsort((lengths[order], windows))]


def _shuffled_batches(order: NDArray[np.int64], batch: int, seed: int, epoch: int) -> NDArray[np.int64]:
    places = Permutation(order.size // batch, seed, epoch, "bucketed batches")[:]
    return order.reshape(-1, batch)[places].reshape(-1)


def _token_batches(
    order: NDArray[np.int64], lengths: NDArray[np.int64], tokens: int, multiple_of: int, seed: int, epoch: int
) -> ListedOrder:
    _check_budget(lengths, tokens)
    cuts = cut_by_tokens(lengths[order], tokens, multiple_of)
    places = Permutation(cuts.size - 1, seed, epoch, "bucketed batches")[:]
    counts = np.diff(cuts)[places]
    new_cuts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    shift = np.repeat(cuts[:-1][places] - new_cuts[:-1], counts)
    return ListedOrder(order[np.arange(order.size) + shift], new_cuts)


def _check_budget(lengths: NDArray[np.int64], tokens: int) -> None:
    if lengths.size and int(lengths.max()) > tokens:
        place = int(lengths.argmax())
        raise OrderError(
            f"sample {place} has {lengths[place]} tokens, and a global batch may hold {tokens}; "
            "raise max_tokens, or cut the sample."
        )
