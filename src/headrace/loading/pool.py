"""Output memory that is used again once the consumer has let go of it.

A fresh array of a megabyte costs as much as filling it: the kernel hands it out
page by page. The pool keeps the memory of arrays that it gave, and gives it again
when nothing else refers to it: no array, view, tensor or DLPack capsule. What the
consumer keeps is never written again. Every array has a block of its own, so that
one that is kept holds nothing else in memory.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Sequence
from sys import getrefcount
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_LOOKS = 4
_PAGE = 4096
_LINE = 64
_KEPT_BYTES = 64 << 20
_MOST_KEPT = 1024

Shape: TypeAlias = tuple[int, ...]
Block: TypeAlias = tuple[NDArray[np.uint8], int, int]
"""Memory that arrays refer to, where in it a cache line begins, and the address of that."""


def address_of(array: NDArray[Any]) -> int:
    """Return where an array begins in memory."""
    return int(array.__array_interface__["data"][0])


def _new_block(size: int) -> Block:
    memory = np.empty(size + _LINE, np.uint8)
    address = address_of(memory)
    return memory, -address % _LINE, address + -address % _LINE


class _Blocks:
    """The blocks of one size: those that were given, oldest first, and those that are known to be free.

    Batches are let go of in the order in which they were made, so that it is enough to look at the
    oldest; of the free ones the last that was found is given, which is most likely still in a cache.

    Args:
        size: Bytes of a block.
        most: Most blocks that are remembered as given; they are free when those were let go of.
    """

    def __init__(self, size: int, most: int) -> None:
        self._size = size
        self._given: deque[Block] = deque(maxlen=most)
        self._free: list[Block] = []

    def take(self, shapes: Sequence[Shape], dtype: np.dtype[Any]) -> tuple[list[NDArray[Any]], list[int]]:
        """Return arrays in blocks that nobody uses, and their addresses; who asks holds the lock."""
        free = self._free
        self._collect(len(shapes))
        blocks = [free.pop() if free else _new_block(self._size) for _ in shapes]
        self._given.extend(blocks)
        arrays: list[NDArray[Any]] = [
            np.ndarray(shape, dtype, memory, offset)
            for shape, (memory, offset, _) in zip(shapes, blocks, strict=True)
        ]
        return arrays, [address for _, _, address in blocks]

    def _collect(self, wanted: int) -> None:
        """Find blocks that were let go of; those that the consumer keeps are put behind the others."""
        given, free = self._given, self._free
        kept = 0
        while given and kept < _LOOKS * wanted:
            if getrefcount(given[0][0]) == _UNUSED:
                free.append(given.popleft())
            elif len(free) >= wanted:
                return
            else:
                given.rotate(-1)
                kept += 1


def _users(blocks: deque[Block]) -> int:
    """Return how many refer to the memory of the first block, the call's own reference included."""
    return getrefcount(blocks[0][0])


_UNUSED = _users(deque([_new_block(1)]))
"""The references to memory that nobody uses."""


def _room(size: int) -> int:
    """Return the bytes of the block for so many: in pages, one of eight sizes between powers of two.

    Batches of jagged or tightly padded rows are each of another size, and memory of one size is
    used again for that size alone. What a block has too much is never written, and so never there.
    """
    step = max(_PAGE, 1 << (size.bit_length() - 4))
    return -(-size // step) * step


class Pool:
    """Recycles the memory of arrays by size; safe to use from several threads.

    Args:
        keep: Most blocks of one size that are remembered; a consumer that keeps more owns them alone.
            None: as many as make 64 MiB, but from 64 to 1,024.
    """

    def __init__(self, keep: int | None = None) -> None:
        self._keep = keep
        self._blocks: dict[int, _Blocks] = {}
        self._lock = threading.Lock()

    def allocate(self, shapes: Sequence[Shape], dtype: np.dtype[Any]) -> tuple[list[NDArray[Any]], list[int]]:
        """Return uninitialised C-contiguous arrays to which nothing else refers, and their addresses.

        Args:
            shapes: The shape of each array; those of a page or more begin at a cache line.
            dtype: Their dtype.
        """
        if len(set(shapes)) != 1:
            return self._allocate_each(shapes, dtype)
        with self._lock:
            blocks = self._blocks_for(dtype.itemsize * math.prod(shapes[0]))
            return Fresh().allocate(shapes, dtype) if blocks is None else blocks.take(shapes, dtype)

    def _allocate_each(
        self, shapes: Sequence[Shape], dtype: np.dtype[Any]
    ) -> tuple[list[NDArray[Any]], list[int]]:
        """Do the same for arrays of several shapes."""
        made = [self.allocate([shape], dtype) for shape in shapes]
        return [arrays[0] for arrays, _ in made], [addresses[0] for _, addresses in made]

    def _blocks_for(self, size: int) -> _Blocks | None:
        """Return the blocks that hold so many bytes; None where it is less than a page."""
        if size < _PAGE:
            return None
        size = _room(size)
        blocks = self._blocks.get(size)
        if blocks is None:
            blocks = self._blocks[size] = _Blocks(size, self._most(size))
        return blocks

    def _most(self, size: int) -> int:
        """Return how many blocks of a size are remembered; the oldest is forgotten for one more."""
        if self._keep is not None:
            return self._keep
        return max(64, min(_MOST_KEPT, _KEPT_BYTES // size))


class Fresh:
    """Memory that is new each time: what a gather outside of a loader writes into."""

    def allocate(self, shapes: Sequence[Shape], dtype: np.dtype[Any]) -> tuple[list[NDArray[Any]], list[int]]:
        """Return new arrays and their addresses."""
        arrays = [np.empty(shape, dtype) for shape in shapes]
        return arrays, [address_of(array) for array in arrays]
