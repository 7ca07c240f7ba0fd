"""Files that appear whole: write to a temporary name, fsync, rename; checksums and locks.

A reader never sees half a file, and a process that is killed at any instant
leaves only files whose names end in ``.tmp``, which the next writer removes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import json
import mmap
import os
import reprlib
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import xxhash

from headrace.errors import BuildError, HeadraceError

TEMPORARY_SUFFIX = ".tmp"
BLOCK_BYTES = 2 << 20
"""What is written at once: a huge page, as which Linux then keeps and maps that piece of the file."""
_MOST_BLOCKS = 64
"""Blocks that are written at once, of which the first is still in memory when the last was touched."""
_CHECKSUM_BLOCK = 1 << 20
_MEND = "Mend what the system says"
_ADVICE = {
    errno.ENOSPC: "Free some space",
    errno.EDQUOT: "Free some space, or have the quota raised",
    errno.EFBIG: "Have the limit on the size of files raised (ulimit -f)",
    errno.EACCES: "Change the permissions",
    errno.EROFS: "Make the file system writable",
    errno.EMFILE: "Have the limit on open files raised (ulimit -n)",
}


def as_path(name: str, value: Any, error: type[HeadraceError]) -> Path:
    """Return a path that somebody gave: text, bytes or what has ``__fspath__``.

    Args:
        name: What the user calls it, for the message.
        value: What was given.
        error: What to raise.

    Raises:
        HeadraceError: It is no path, or none that a file can have; of the type ``error``.
    """
    try:
        text = os.fsdecode(value)
    except (TypeError, ValueError):
        raise error(f"{name} is {reprlib.repr(value)}; expected a path, such as 'stores/ads'.") from None
    if not text or "\0" in text:
        raise error(f"{name} is {reprlib.repr(text)}, which no file can be named; expected a path.")
    return Path(text)


class BlockWriter(io.BufferedWriter):
    """Writes a file in blocks of ``BLOCK_BYTES``, each at a multiple of that.

    Random reads of a mapped file take a third less time where the file lies in huge pages.

    Args:
        raw: The file, empty, opened for writing.
    """

    def __init__(self, raw: io.FileIO) -> None:
        super().__init__(raw, BLOCK_BYTES)
        self._room = BLOCK_BYTES

    def write(self, content: Any) -> int:
        """Write contiguous bytes; return how many."""
        rest = memoryview(content)
        size = rest.nbytes
        rest = rest.cast("B") if size else rest  # an empty one of several dimensions cannot be cast
        while rest.nbytes:
            blocks = 0 if self._room < BLOCK_BYTES else min(rest.nbytes // BLOCK_BYTES, _MOST_BLOCKS)
            part = rest[: blocks * BLOCK_BYTES or self._room]
            _touch(part)
            super().write(part)
            rest = rest[part.nbytes :]
            self._room = (self._room - part.nbytes) % BLOCK_BYTES or BLOCK_BYTES
        return size


def _touch(content: memoryview) -> None:
    """Read a byte of each page: where one of a map is not there yet, the system writes in small pieces."""
    bytes(content[:: mmap.PAGESIZE])
    bytes(content[-1:])  # of the last page, where the first begins somewhere in its own


@contextlib.contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a binary file that becomes ``path`` only when the block ends without an error.

    Args:
        path: Where the file shall appear; missing parent folders are made.

    Raises:
        OSError: The disk is full or the folder cannot be written; nothing is left at ``path``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}")
    try:
        with BlockWriter(io.FileIO(temporary, "w")) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries, so that a rename in it survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` so that ``path`` is either absent, old or whole."""
    with writing(path) as file:
        file.write(content)


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as indented JSON; the order of keys is kept."""
    write_bytes(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """Return ``value`` as indented JSON, UTF-8; the order of keys is kept."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def remove_temporaries(folder: Path) -> None:
    """Remove what a killed writer left below ``folder``: files, and folders that were to appear whole."""
    for path in list(folder.rglob(f"*{TEMPORARY_SUFFIX}")):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def checksum(path: Path) -> str:
    """Return the XXH3-64 of a file as 16 hexadecimal digits."""
    digest = xxhash.xxh3_64()
    with path.open("rb") as file:
        while block := file.read(_CHECKSUM_BLOCK):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def locked(path: Path, waiting_for: str) -> Iterator[None]:
    """Hold an exclusive lock on the file ``path``; the kernel drops it when the process ends.

    Args:
        path: The lock file; made where it is missing and left in place.
        waiting_for: What the lock guards, for the message.

    Raises:
        BuildError: Another process holds the lock, or the system refuses to write: a full disk,
            a folder without permission.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise BuildError(
            f"{waiting_for} cannot be written ({error.strerror}). "
            "Choose another --out, or mend its permissions."
        ) from None
    with path.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BuildError(
                f"{waiting_for} is being written by another process (lock file {path}). "
                "Wait for it to end, or choose another --out."
            ) from None
        try:
            yield
        except OSError as error:
            raise _refused(error, waiting_for) from error


def _refused(error: OSError, writing: str) -> BuildError:
    """Return what the system refused while something was written, and what to do."""
    where = f" ({error.filename})" if error.filename and str(error.filename) != writing else ""
    reason = error.strerror or str(error)
    return BuildError(
        f"{writing}: {reason}{where}. {_ADVICE.get(error.errno or 0, _MEND)} and run the same again: "
        "what is finished is kept."
    )
