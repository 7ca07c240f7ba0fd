"""Arrays that are too large for memory lie in files without a name, and go when they are no longer used."""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray


class Scratch:
    """Makes arrays in memory, or in a file where they are larger than a limit.

    Args:
        folder: Where the files are made; ``None``: everything stays in memory.
        limit: Bytes of the largest array in memory.
    """

    def __init__(self, folder: Path | None = None, limit: int = 0) -> None:
        self._folder = folder
        self.limit = limit

    @property
    def folder(self) -> Path | None:
        """Where the files are made."""
        return self._folder

    def is_large(self, size: int) -> bool:
        """Return whether so many bytes go to a file."""
        return self._folder is not None and size > self.limit

    def empty(self, size: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return an array [size] with any content.

        Raises:
            OSError: The disk has no room for it. The room is taken at once: a map over a file
                with holes would kill the process at the first write that finds the disk full.
        """
        nbytes = size * np.dtype(dtype).itemsize
        if self._folder is None or not self.is_large(nbytes):
            return np.empty(size, dtype)
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            os.posix_fallocate(file.fileno(), 0, nbytes)
            return np.memmap(file, dtype=dtype, mode="w+", shape=(size,))[:]

    def zeros(self, size: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return an array [size] of zeros; a new file is one already."""
        if self.is_large(size * np.dtype(dtype).itemsize):
            return self.empty(size, dtype)
        return np.zeros(size, dtype)

    def full(self, size: int, value: Any, dtype: DTypeLike) -> NDArray[Any]:
        """Return an array [size] of one value."""
        array = self.empty(size, dtype)
        array.fill(value)
        return array

    def longer(self, array: NDArray[Any], size: int) -> NDArray[Any]:
        """Return an array [size] that begins with ``array``; the rest has any content."""
        longer = self.empty(size, array.dtype)
        longer[: len(array)] = array
        return longer


IN_MEMORY = Scratch()


def give_back() -> None:
    """Return to the system what was freed, and is kept for later by Arrow and by the C library."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
