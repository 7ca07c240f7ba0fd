"""A shuffle for data that is larger than memory, or far away: whole blocks are read, and mixed in windows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.errors import OrderError
from headrace.kernels.blocks import block_order, windows_begun
from headrace.kernels.permute import round_keys
from headrace.kernels.rng import stream_key
from headrace.order.integers import integer
from headrace.order.sampler import Budget, EpochOrder, Parameters

_MOST_BLOCKS = 1 << 24
_LARGEST_BLOCK = 1 << 32


class Block:
    """Permuted blocks, dealt to lanes; inside a lane a window of blocks is shuffled sample by sample.

    A global batch takes equal parts of each lane (where the lanes divide it; else parts
    that differ by one), and stands lane by lane: where the world size divides the lanes, a
    rank reads only its own. The lanes are part of the order, the world size is not.

    ``lanes × window × block`` samples are in use at any time: choose them so that these fit into memory.

    Args:
        block: Samples in a block: what is read in one go.
        window: Blocks of a lane that are shuffled together; a larger one shuffles better.
        lanes: Places in the stream of blocks that are read at the same time.

    Raises:
        OrderError: One of them is below 1, or they are larger than any data and memory.
    """

    def __init__(self, block: int = 512, window: int = 32, lanes: int = 64) -> None:
        self.block, self.window, self.lanes = (
            _at_least_one(name, value)
            for name, value in (("block", block), ("window", window), ("lanes", lanes))
        )
        if self.lanes * self.window > _MOST_BLOCKS or self.block > _LARGEST_BLOCK:
            raise OrderError(
                f"block={block}, window={window}, lanes={lanes}; there are at most {_MOST_BLOCKS:,} "
                f"blocks in use (window × lanes), of at most {_LARGEST_BLOCK:,} samples each."
            )

    def describe(self) -> Parameters:
        """Return block, window and lanes."""
        return {"kind": "block", "block": self.block, "window": self.window, "lanes": self.lanes}

    def at(self, size: int, seed: int, epoch: int, budget: Budget) -> EpochOrder:
        """Return the block order of one epoch."""
        return _BlockOrder(self, size, seed, epoch)


def _at_least_one(name: str, value: int) -> int:
    number = integer(name, value)
    if number < 1:
        raise OrderError(f"{name}={value}; a block order needs {name} of at least 1.")
    return number


class _BlockOrder:
    cuts: NDArray[np.int64] | None = None

    def __init__(self, parameters: Block, size: int, seed: int, epoch: int) -> None:
        self.parameters = parameters
        self.size = size
        self._key = stream_key(seed, epoch, "windows of blocks")
        self._keys = round_keys(stream_key(seed, epoch, "blocks"))

    def __len__(self) -> int:
        return self.size

    def indices(self, positions: NDArray[np.int64], start: int, stop: int) -> NDArray[np.int64]:
        p = self.parameters
        return block_order(
            positions, start, stop, self.size, p.block, p.window, p.lanes, self._key, self._keys
        )

    def read_ahead(self, start: int, stop: int, open_too: bool) -> NDArray[np.int64]:
        """Return the samples of windows that begin between two positions: int64 [ranges, 2], first and end.

        Args:
            start: First position.
            stop: Position after the last.
            open_too: Whether to return the windows that are in use at ``start`` as well.
        """
        p = self.parameters
        stop = min(stop, self.size)
        if start >= stop:
            return np.empty((0, 2), np.int64)
        return windows_begun(start, stop, open_too, self.size, p.block, p.window, p.lanes, self._keys)
