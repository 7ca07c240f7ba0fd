"""Ids in memory or, where they outgrow it, in unnamed files of a folder: they go with the last reference."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

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
        return Scratch(None if folder is None else Path(folder)).empty(size, dtype)


def spooled(arrays: Iterable[NDArray[np.uint32]], folder: Path | str | None) -> NDArray[np.uint32]:
    """Return the arrays as one, in a file of the folder; ``None``: in memory.

    Raises:
        CorpusError: The folder has no room for them, or cannot be written.
    """
    if folder is None:
        held = io.BytesIO()
        for array in arrays:
            held.write(array.data)
        return np.frombuffer(held.getbuffer(), np.uint32)
    with _open_spool(Path(folder)) as file:
        for array in arrays:
            with _refusals_of(folder):
                _write_whole(file, array.data.cast("B"))
        return np.memmap(file, np.uint32, "r+") if file.tell() else np.empty(0, np.uint32)


def _open_spool(folder: Path) -> io.FileIO:
    with _refusals_of(folder):
        folder.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=folder, buffering=0)


def _write_whole(file: io.FileIO, content: memoryview) -> None:
    """Write all of it: an unbuffered file may take less at a time."""
    while content:
        content = content[file.write(content) :]


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
