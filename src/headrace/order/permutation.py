"""A shuffle that is never made: the index at any position, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from headrace.errors import OrderError
from headrace.kernels.permute import permute, permute_back, round_keys, shuffled
from headrace.kernels.rng import stream_key
from headrace.order.integers import integer

_TABLE = 1 << 12
_LARGEST = 1 << 62
_ITERATION_BLOCK = 1 << 14


class Permutation:
    """A bijection on ``[0, size)`` that is a pure function of size, seed and epoch.

    ``permutation[position]`` is the index of the sample at that place of the
    epoch's order. Sizes up to 4,096 use a uniformly drawn table; larger ones
    compute each index with a keyed network, so that ten billion samples cost
    nothing to start and nothing to keep.

        >>> permutation = Permutation(10, seed=7, epoch=0)
        >>> sorted(permutation) == list(range(10))
        True
        >>> permutation.inverse(permutation[3])
        3

    Args:
        size: Number of samples, from 0 to 2**62.
        seed: Any integer.
        epoch: Any integer; other epochs and other seeds give unrelated orders.
        stream: Name of the draw; two shuffles of one run that must differ take two names.

    Raises:
        OrderError: ``size`` is negative or beyond 2**62, or something is no integer.
    """

    def __init__(self, size: int, seed: int = 0, epoch: int = 0, stream: str = "shuffle") -> None:
        self.size = integer("size", size)
        if not 0 <= self.size <= _LARGEST:
            raise OrderError(f"size is {size}; a permutation has between 0 and 2**62 samples.")
        self.seed = integer("seed", seed)
        self.epoch = integer("epoch", epoch)
        if not isinstance(stream, str):
            raise OrderError(f"stream={stream!r}; it is the name of a draw, a text.")
        key = stream_key(self.seed, self.epoch, stream)
        self._table = shuffled(self.size, key) if self.size <= _TABLE else None
        self._keys = round_keys(key)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"Permutation({self.size}, seed={self.seed}, epoch={self.epoch})"

    def __iter__(self) -> Iterator[int]:
        for start in range(0, self.size, _ITERATION_BLOCK):
            block = np.arange(start, min(start + _ITERATION_BLOCK, self.size), dtype=np.int64)
            yield from self.at(block).tolist()

    @overload
    def __getitem__(self, position: int) -> int: ...
    @overload
    def __getitem__(self, position: NDArray[Any] | list[int] | slice) -> NDArray[np.int64]: ...
    def __getitem__(self, position: int | NDArray[Any] | list[int] | slice) -> int | NDArray[np.int64]:
        """Return the index at a position, or int64 indices at an array or a slice of them.

        Raises:
            OrderError: A position is not in ``[0, size)``; negative ones do not count from the end.
        """
        if isinstance(position, slice):
            return self.at(np.arange(*position.indices(self.size), dtype=np.int64))
        if isinstance(position, np.ndarray | list):
            return self.at(self._checked(position, "position"))
        return int(self.at(self._checked([integer("position", position)], "position"))[0])

    @overload
    def inverse(self, index: int) -> int: ...
    @overload
    def inverse(self, index: NDArray[Any] | list[int]) -> NDArray[np.int64]: ...
    def inverse(self, index: int | NDArray[Any] | list[int]) -> int | NDArray[np.int64]:
        """Return the position of an index, or int64 positions of an array of them."""
        if isinstance(index, np.ndarray | list):
            return self._backward(self._checked(index, "index"))
        return int(self._backward(self._checked([integer("index", index)], "index"))[0])

    def at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the indices at int64 positions that are known to be in ``[0, size)``."""
        if self._table is not None:
            return self._table[positions]
        flat = permute(positions.reshape(-1), self.size, (self.size - 1).bit_length(), self._keys)
        return flat.reshape(positions.shape)

    def _backward(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._table is not None:
            return np.argsort(self._table)[indices]
        return permute_back(indices.reshape(-1), self.size, self._keys).reshape(indices.shape)

    def _checked(self, values: NDArray[Any] | list[int], name: str) -> NDArray[np.int64]:
        try:
            array = np.asarray(values)
        except ValueError:
            raise OrderError(f"{name}s are lists of unlike lengths; give an array of integers.") from None
        if array.size == 0:
            return np.empty(array.shape, np.int64)
        if array.dtype.kind not in "iu":
            raise OrderError(f"a {name} is {array.dtype}; it must be an integer.")
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= self.size:
            wrong = low if low < 0 else high
            raise OrderError(f"{name} {wrong} is not in [0, {self.size}), the samples of this permutation.")
        return np.ascontiguousarray(array, np.int64)
