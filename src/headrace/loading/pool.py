"""Output memory that is used again once the consumer has let go of it.

A fresh array of a megabyte costs as much as filling it: the kernel hands it out
page by page. The pool keeps the memory of arrays that it gave, and gives it again
when nothing else refers to it: no array, view, tensor or DLPack capsule. What the
consumer keeps is never written again.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

_OWN_REFERENCES = 3
"""The pool's deque, a local name, the argument of ``getrefcount``; every view refers to the block itself."""
_LOOKS = 4
_SMALLEST = 4096
_LINE = 64


class Pool:
    """Recycles the memory of arrays by size; safe to use from several threads.

    Args:
        keep: Most blocks of one size that are remembered; a consumer that keeps more owns them alone.
    """

    def __init__(self, keep: int = 64) -> None:
        self._keep = keep
        self._blocks: dict[int, deque[NDArray[np.uint8]]] = {}
        self._lock = threading.Lock()

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an uninitialised C-contiguous array, at a cache line, that nothing else refers to."""
        size = dtype.itemsize
        for length in shape:
            size *= length
        if size < _SMALLEST:
            return np.empty(shape, dtype)
        block = self._block(-(-size // _SMALLEST) * _SMALLEST)
        return np.ndarray(shape, dtype, block, -block.__array_interface__["data"][0] % _LINE)

    def _block(self, size: int) -> NDArray[np.uint8]:
        with self._lock:
            blocks = self._blocks.setdefault(size, deque())
            for _ in range(min(_LOOKS, len(blocks))):
                block = blocks.popleft()
                blocks.append(block)
                if sys.getrefcount(block) == _OWN_REFERENCES:
                    return block
            block = np.empty(size + _LINE, np.uint8)
            blocks.append(block)
            if len(blocks) > self._keep:
                blocks.popleft()
            return block
