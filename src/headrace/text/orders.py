"""Orders that only windows need: one length a batch, and no document twice in a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headrace.errors import OrderError
from headrace.order.permutation import Permutation
from headrace.order.sampler import Budget, EpochOrder, Parameters, PositionOrder

Integers = NDArray[np.int64]
CountsAt = Callable[[int, int], Integers]
"""From seed and epoch to int64 [K]: how many windows each bucket or document has."""


@dataclass(frozen=True, eq=False)
class OneLength:
    """A shuffle whose global batches hold windows of one length each.

    The windows of each length are shuffled and cut into global batches, whose order is
    shuffled too; each length's last batch may be smaller. With a token budget a batch holds
    as many windows as fit in it. Memory grows with the number of batches, not of windows.
    """

    counts_at: CountsAt
    windows: tuple[int, ...]
    """Tokens in a window of each bucket."""
    planned: bool = True
    """The order depends on the batch size, so that a state of another one is refused."""

    def describe(self) -> Parameters:
        """Return the kind; the lengths are part of the space's own fingerprint."""
        return {"kind": "one-length"}

    def at(self, size: int, seed: int, epoch: int, budget: Budget) -> EpochOrder:
        """Return the order of one epoch."""
        counts = self.counts_at(seed, epoch)
        rows = np.array([_rows(budget, window) for window in self.windows], np.int64)
        return _OneLengthOrder(counts, rows, seed, epoch)


def _rows(budget: Budget, window: int) -> int:
    """Return how many windows a global batch holds."""
    if budget.tokens is None:
        return budget.samples or 1
    if window > budget.tokens:
        raise OrderError(
            f"a window of {window} tokens, and a global batch may hold {budget.tokens}; raise max_tokens."
        )
    return budget.tokens // window


class _OneLengthOrder:
    def __init__(self, counts: Integers, rows: Integers, seed: int, epoch: int) -> None:
        batches = -(-counts // rows)
        shuffled = Permutation(int(batches.sum()), seed, epoch, "window batches")[:]
        before = np.concatenate([[0], np.cumsum(batches)])
        self.bucket = np.searchsorted(before, shuffled, side="right") - 1
        self.first = (shuffled - before[self.bucket]) * rows[self.bucket]
        sizes = np.minimum(rows[self.bucket], counts[self.bucket] - self.first)
        self.cuts: Integers | None = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.base = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.permutations = [
            Permutation(int(count), seed, epoch, f"windows {bucket}") for bucket, count in enumerate(counts)
        ]

    def __len__(self) -> int:
        return int(self.base[-1])

    def indices(self, positions: Integers, start: int, stop: int) -> Integers:
        assert self.cuts is not None
        batch = np.searchsorted(self.cuts, positions, side="right") - 1
        found = np.empty(positions.size, np.int64)
        for bucket in np.unique(self.bucket[batch]).tolist():
            rows = self.bucket[batch] == bucket
            place = self.first[batch[rows]] + positions[rows] - self.cuts[batch[rows]]
            found[rows] = self.base[bucket] + self.permutations[bucket][place]
        return found


@dataclass(frozen=True, eq=False)
class SeparateDocuments:
    """A shuffle in which no global batch holds two windows of one document.

    Documents are shuffled and their windows laid out one document after the other; the
    window at place j goes to global batch j mod n of n batches. A last, smaller batch takes
    part until it is full; where a document has a window for every batch, batches are of
    almost equal size instead, so that the last one takes part to the end.

        3 documents a b c, 6 windows, batches of 2, n = 3
        places       a0 a1 b0 b1 b2 c0
        batch         0  1  2  0  1  2       batches a0 b1, a1 b2, b0 c0

    """

    counts_at: CountsAt
    window: int
    planned: bool = True
    """The order depends on the batch size, so that a state of another one is refused."""

    def describe(self) -> Parameters:
        """Return the kind; documents and windows are part of the space's own fingerprint."""
        return {"kind": "separate-documents"}

    def at(self, size: int, seed: int, epoch: int, budget: Budget) -> EpochOrder:
        """Return the order of one epoch.

        Raises:
            OrderError: A document has more windows than there are batches.
        """
        counts, rows = self.counts_at(seed, epoch), _rows(budget, self.window)
        batches = max(1, -(-int(counts.sum()) // rows))
        _check_separable(counts, batches, rows)
        whole = batches == 1 or int(counts.sum()) == batches * rows
        if whole or counts.max(initial=0) < batches:
            return _SeparateOrder(counts, rows, seed, epoch)
        return _BalancedOrder(counts, rows, seed, epoch)


def _check_separable(counts: Integers, batches: int, rows: int) -> None:
    most = int(counts.argmax()) if counts.size else 0
    if counts.size and counts[most] > batches:
        raise OrderError(
            f"separate_documents=True: document {most} has {counts[most]} windows, and with global batches "
            f"of {rows} there are {batches} to keep them apart in. Take a smaller batch, a larger stride, or "
            "leave the document out."
        )


class _SeparateOrder(PositionOrder):
    def __init__(self, counts: Integers, batch: int, seed: int, epoch: int) -> None:
        super().__init__(int(counts.sum()))
        self.counts, self.batch = counts, batch
        self.batches = max(1, -(-self.size // batch))
        self.in_last = self.size - (self.batches - 1) * batch
        self.shuffled = Permutation(counts.size, seed, epoch, "separate documents")[:]

    @cached_property
    def first(self) -> Integers:
        """int64 [D], the first window of each document."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def places(self) -> Integers:
        """int64 [D+1], the place before each document of the shuffled order."""
        return np.concatenate([[0], np.cumsum(self.counts[self.shuffled])]).astype(np.int64)

    def look_up(self, positions: Integers) -> Integers:
        """Return the window at each position."""
        batch, slot = positions // self.batch, positions % self.batch
        late = np.maximum(0, slot - self.in_last)
        return self.window_at((slot - late) * self.batches + late * (self.batches - 1) + batch)

    def window_at(self, place: Integers) -> Integers:
        """Return the window at each place of the documents' shuffled order."""
        document = np.searchsorted(self.places, place, side="right") - 1
        window: Integers = self.first[self.shuffled[document]] + place - self.places[document]
        return window


class _BalancedOrder(_SeparateOrder):
    """Batches whose sizes differ by one at most: place j is in batch j mod n, at j // n."""

    def __init__(self, counts: Integers, batch: int, seed: int, epoch: int) -> None:
        super().__init__(counts, batch, seed, epoch)
        sizes = self.size // self.batches + (np.arange(self.batches) < self.size % self.batches)
        self.borders: Integers = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.cuts = self.borders

    def look_up(self, positions: Integers) -> Integers:
        """Return the window at each position."""
        batch = np.searchsorted(self.borders, positions, side="right") - 1
        return self.window_at((positions - self.borders[batch]) * self.batches + batch)
