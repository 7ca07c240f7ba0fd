"""Who gets what: the steps of an epoch, cut into global batches and dealt to ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from headrace.errors import OrderError

Last: TypeAlias = Literal["keep", "pad", "drop"]


class Part(NamedTuple):
    """One rank's part of one global batch."""

    start: int
    """First position of the global batch."""
    stop: int
    """Position after the last of the global batch."""
    first: int
    """First position of the rank's part."""
    last: int
    """Position after the last of the rank's part; ``last - first`` samples are its own."""
    filling: int
    """Rows that stand after the samples so that every rank has as many (``last="pad"``)."""

    @property
    def positions(self) -> NDArray[np.int64]:
        """The epoch positions of the rank's samples: int64 [B]."""
        return np.arange(self.first, self.last, dtype=np.int64)


@dataclass(frozen=True)
class Plan:
    """The steps of an epoch from position ``begin`` on, as one rank sees them.

        size = 10, global_batch = 6, world_size = 3
        step      0              1, keep        1, pad           1, drop
        rank 0    0 1            6 7            6 7              -
        rank 1    2 3            8              8 9              -
        rank 2    4 5            9              filling × 2      -

    Every rank has the same number of steps.

    Args:
        size: Positions in the epoch.
        global_batch: Samples in a global batch; ignored where there are ``cuts``.
        rank: This process, in ``[0, world_size)``.
        world_size: Number of processes that share the epoch.
        last: What becomes of an incomplete global batch.
        begin: Position at which this pass began: not 0 after a resume.
        cuts: Where global batches of different size start, and the end: int64 [steps + 1].

    Raises:
        OrderError: These numbers do not fit together.
    """

    size: int
    global_batch: int
    rank: int = 0
    world_size: int = 1
    last: Last = "keep"
    begin: int = 0
    cuts: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        check_ranks(self.rank, self.world_size)
        if self.last not in get_args(Last):
            raise OrderError(f"last='{self.last}'; it is 'keep', 'pad' or 'drop'.")
        if self.cuts is not None:
            self._check_cuts(self.cuts)
        elif self.global_batch < 1:
            raise OrderError(f"a global batch of {self.global_batch} samples; it must hold at least 1.")
        elif self.last == "pad" and self.global_batch % self.world_size:
            raise OrderError(
                f"a global batch of {self.global_batch} samples is not divisible by "
                f"world_size={self.world_size}, and last='pad' gives every rank as many rows; "
                "choose another size, or last='keep'."
            )

    def _check_cuts(self, cuts: NDArray[np.int64]) -> None:
        if self.last == "drop":
            raise OrderError(
                "last='drop': with max_tokens=, several window lengths or separate_documents=True "
                "batches have no common size, and each is whole; use 'keep' or 'pad'."
            )
        if cuts[np.searchsorted(cuts, self.begin)] != self.begin:
            raise OrderError(
                f"position {self.begin} is inside a batch of this plan; a pass begins between two."
            )

    def __len__(self) -> int:
        """Return the number of steps, the same on every rank."""
        if self.cuts is not None:
            return len(self.cuts) - 1 - self._first_cut
        left = max(self.size - self.begin, 0)
        return left // self.global_batch if self.last == "drop" else -(-left // self.global_batch)

    @cached_property
    def _first_cut(self) -> int:
        """Which of the cuts the pass begins at."""
        return 0 if self.cuts is None else int(np.searchsorted(self.cuts, self.begin))

    @property
    def left_out(self) -> int:
        """Samples that ``last="drop"`` leaves out."""
        return max(self.size - self.begin, 0) % self.global_batch if self.last == "drop" else 0

    def bounds(self, step: int) -> tuple[int, int]:
        """Return the first position of a step's global batch, and the one after its last."""
        if self.cuts is not None:
            place = self._first_cut + step
            return int(self.cuts[place]), int(self.cuts[place + 1])
        start = self.begin + step * self.global_batch
        return start, min(start + self.global_batch, self.size)

    def part(self, step: int) -> Part:
        """Return this rank's part of a step."""
        start, stop = self.bounds(step)
        if self.world_size == 1 and self.last != "pad":
            return Part(start, stop, start, stop, 0)
        if self.last != "pad":
            first, last = share(stop - start, self.rank, self.world_size)
            return Part(start, stop, start + first, start + last, 0)
        rows = self._padded_rows(stop - start)
        first = min(start + self.rank * rows, stop)
        last = min(first + rows, stop)
        return Part(start, stop, first, last, rows - (last - first))

    def parts(self, first: int, count: int) -> list[Part]:
        """Return this rank's parts of ``count`` steps, 1 or more, from ``first`` on."""
        if self.cuts is not None or self.world_size > 1 or self.last == "pad":
            return [self.part(step) for step in range(first, first + count)]
        size, begin = self.global_batch, self.begin + first * self.global_batch
        starts = range(begin, begin + (count - 1) * size, size)  # the last part may be shorter
        return [
            *(Part(start, start + size, start, start + size, 0) for start in starts),
            self.part(first + count - 1),
        ]

    def _padded_rows(self, count: int) -> int:
        """Return the rows that each rank gets with ``last="pad"``."""
        samples = count if self.cuts is not None else self.global_batch
        return -(-samples // self.world_size)


def share(count: int, rank: int, world_size: int) -> tuple[int, int]:
    """Return where a rank's contiguous share of ``count`` samples starts and ends.

    Shares differ by one at most, the larger ones first: 7 over 3 ranks are 3, 2, 2.
    """
    each, more = divmod(count, world_size)
    first = rank * each + min(rank, more)
    return first, first + each + (rank < more)


def check_ranks(rank: int, world_size: int) -> None:
    """Refuse a rank that is not of this world.

    Raises:
        OrderError: ``world_size`` is below 1, or ``rank`` is not in ``[0, world_size)``.
    """
    if world_size < 1:
        raise OrderError(f"world_size is {world_size}; it must be at least 1.")
    if not 0 <= rank < world_size:
        raise OrderError(f"rank is {rank}; with world_size={world_size} it must be in [0, {world_size}).")
