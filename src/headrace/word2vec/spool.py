"""Ids in memory or, where they outgrow it, in unnamed files of a folder: they go with the last reference."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headrace.errors import CorpusError
from headrace.scratch import Scratch


def take_room(size: int, dtype: DTypeLike, folder: Path | str | None) -> NDArray[Any]:
    """Return an array [size] with any content, in a file of the folder; ``None``: in memory.

    Raises:
        CorpusError: The folder has no room for it, or cannot be written.
    """
    with _refusals_of(folder):
        return Scratch(_folder(folder)).empty(size, dtype)


class Spool:
    """Arrays that become one: each is written behind the others, in memory or in a file of a folder.

        with Spool(np.uint32, folder) as spool:
            spool.append(ids)
            whole = spool.array()

    Args:
        dtype: Of all arrays.
        folder: Where the file is made; ``None``: in memory.

    Raises:
        CorpusError: The folder cannot be written.
    """

    def __init__(self, dtype: DTypeLike, folder: Path | str | None) -> None:
        self._dtype = np.dtype(dtype)
        self._folder = _folder(folder)
        self._file: IO[bytes] = io.BytesIO() if self._folder is None else self._open(self._folder)

    def append(self, array: NDArray[Any]) -> None:
        """Write an array behind the others.

        Raises:
            CorpusError: The folder has no room for it.
        """
        content = array.astype(self._dtype, copy=False).data.cast("B")
        with _refusals_of(self._folder):
            while content:  # an unbuffered file may take less at a time
                content = content[self._file.write(content) :]

    def array(self) -> NDArray[Any]:
        """Return all of them as one array, which may be written, and outlives the spool."""
        if isinstance(self._file, io.BytesIO):
            return np.frombuffer(self._file.getbuffer(), self._dtype)
        return np.memmap(self._file, self._dtype, "r+")[:] if self._file.tell() else np.empty(0, self._dtype)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._folder is not None:
            self._file.close()

    def _open(self, folder: Path) -> IO[bytes]:
        with _refusals_of(folder):
            folder.mkdir(parents=True, exist_ok=True)
            return tempfile.TemporaryFile(dir=folder, buffering=0)


def _folder(given: Path | str | None) -> Path | None:
    if given is not None and not isinstance(given, str | Path):
        raise CorpusError(f"scratch={given!r}: expected the path of a folder, or None for memory.")
    return None if given is None else Path(given)


@contextlib.contextmanager
def _refusals_of(folder: Path | str | None) -> Iterator[None]:
    """Turn what the system refuses in the folder into an error with words."""
    try:
        yield
    except OSError as error:
        raise CorpusError(
            f"scratch={str(folder)!r}: {error.strerror or error}. It must be a folder that can be written, "
            "with room for 4 bytes a token: free some space, or give another one."
        ) from error
