"""Which files a source means: globs, lists, fsspec URLs; in byte order of their names."""

from __future__ import annotations

import contextlib
import functools
import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import fsspec
import xxhash

from headrace.disk import as_path
from headrace.errors import SourceError, did_you_mean

_CHECKSUM_BLOCK = 1 << 20
_MAGIC = "*?["


@dataclass(frozen=True)
class SourceFile:
    """One raw file, as it was when the source was opened."""

    name: str
    """As people wrote it: relative where the glob was relative; other than UTF-8 is escaped."""

    path: str
    """The local path, or the URL."""

    size: int
    """Bytes as stored, compressed ones where it is compressed; -1 where the store does not tell."""

    modified: int
    """Modification time in ns since 1970, or 0 where the store does not tell."""

    version: str = ""
    """The object store's version or ETag, where it has one."""

    @property
    def is_local(self) -> bool:
        """Whether the operating system opens it."""
        return "://" not in self.path

    @contextlib.contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the stored bytes for reading.

        Raises:
            SourceError: The file has vanished or may not be read.
        """
        with contextlib.ExitStack() as stack:
            try:
                file: IO[bytes] = stack.enter_context(self._handle())
            except (OSError, ValueError, ImportError) as error:
                raise SourceError(f"{self.name}: cannot be opened: {reason_of(error)}") from error
            yield file

    def _handle(self) -> contextlib.AbstractContextManager[IO[bytes]]:
        if self.is_local:
            return Path(self.path).open("rb")
        handle: contextlib.AbstractContextManager[IO[bytes]] = fsspec.open(self.path, "rb")
        return handle

    def checksum(self) -> str:
        """Return the XXH3-64 of the stored bytes as 16 hexadecimal digits."""
        digest = xxhash.xxh3_64()
        with self.open() as file:
            while block := self.read(file, _CHECKSUM_BLOCK):
                digest.update(block)
        return digest.hexdigest()

    def read(self, file: IO[bytes], size: int) -> bytes:
        """Read at most ``size`` stored bytes.

        Raises:
            SourceError: The device or the network fails.
        """
        try:
            return file.read(size)
        except OSError as error:
            raise SourceError(f"{self.name}: reading failed: {reason_of(error)}") from error

    def check_unchanged(self) -> None:
        """Look at the file again.

        Raises:
            SourceError: Its size or modification time is no longer what it was.
        """
        if not self.is_local:
            _remote_system(self.path)[0].invalidate_cache()
        now = _local_file(self.name, self.path) if self.is_local else _remote_file(self.path)
        if (now.size, now.modified, now.version) != (self.size, self.modified, self.version):
            raise SourceError(
                f"{self.name}: changed while it was read ({self.size} bytes before, {now.size} now). "
                "Run again when nothing writes to it any more."
            )


def reason_of(error: BaseException) -> str:
    """Return an operating system's or a library's message as one short clause."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).strip().split("\n")[0] or type(error).__name__


def patterns_of(given: Any, name: str) -> list[str | Path]:
    """Return the paths, globs and URLs that somebody gave, one or many, as a list.

    Args:
        given: What was given.
        name: What the user calls it, for messages.

    Raises:
        SourceError: It holds something else.
    """
    is_one = isinstance(given, str | Path) or not isinstance(given, Iterable)
    several: list[str | Path] = [given] if is_one else list(given)
    if all(isinstance(pattern, str | Path) for pattern in several):
        return several
    raise SourceError(f"{name}: found {given!r}, expected a path, a glob or a URL, or several in a list.")


def find_files(
    patterns: str | Path | Iterable[str | Path], base: str | Path | None = None
) -> list[SourceFile]:
    """Return the files that globs, paths and fsspec URLs mean, each once, in byte order of name.

    Args:
        patterns: One or many; a path that exists is taken as it stands, whatever characters it has.
        base: The folder from which relative ones start; None is the current one.

    Raises:
        SourceError: One of them matches nothing, is a folder or cannot be looked at.
    """
    several = patterns_of(patterns, "source.files")
    base = None if base is None or base == "" else as_path("base", base, SourceError)
    if not several:
        raise SourceError("source.files is empty. Name at least one file, glob or URL.")
    found = [file for pattern in several for file in _matching(str(pattern), base)]
    found.sort(key=lambda file: os.fsencode(file.name))
    unique = {_identity(file): file for file in reversed(found)}
    return list(reversed(unique.values()))


def _identity(file: SourceFile) -> str:
    return os.path.realpath(file.path) if file.is_local else file.path


def _matching(pattern: str, base: Path | None) -> list[SourceFile]:
    if "://" in pattern and not pattern.startswith("file://"):
        return _remote_matching(pattern)
    return _local_matching(pattern.removeprefix("file://"), base)


def _local_matching(pattern: str, base: Path | None) -> list[SourceFile]:
    path = os.path.join(base, pattern) if base is not None else pattern
    if os.path.isdir(path):
        raise SourceError(
            f"source.files: {pattern!r} is a folder, files are expected. "
            f"Write {pattern.rstrip('/')}/* or a narrower glob."
        )
    if os.path.lexists(path) or not any(sign in pattern for sign in _MAGIC):
        return [_local_file(pattern, path)]
    names = glob.glob(path, recursive=True)
    prefix = path[: len(path) - len(pattern)]
    files = [_local_file(name[len(prefix) :], name) for name in names if not os.path.isdir(name)]
    if not files:
        raise SourceError(f"source.files: the glob {pattern!r} matches no file below {_folder(base)}.")
    return files


def _folder(base: Path | None) -> str:
    return str(base) if base is not None and str(base) != "." else "the current folder"


def _local_file(name: str, path: str) -> SourceFile:
    try:
        status = os.stat(path)
        if not os.access(path, os.R_OK):
            raise PermissionError(13, "Permission denied")
    except FileNotFoundError:
        raise SourceError(f"source.files: there is no file {name!r}.{_nearest(path)}") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"source.files: {name!r} cannot be read: {reason_of(error)}.") from error
    return SourceFile(_printable(name), path, status.st_size, status.st_mtime_ns)


def _printable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _nearest(path: str) -> str:
    folder, name = os.path.split(path)
    try:
        return did_you_mean(name, os.listdir(folder or "."))
    except OSError:
        return f" There is no folder {folder!r} either." if folder else ""


def _remote_matching(pattern: str) -> list[SourceFile]:
    system, path = _remote_system(pattern)
    try:
        paths = system.glob(path) if any(sign in path for sign in _MAGIC) else [path]
        files = [_remote_file(system.unstrip_protocol(one)) for one in sorted(paths)]
    except FileNotFoundError:
        files = []
    except (OSError, ValueError) as error:
        raise SourceError(f"source.files: {pattern!r} cannot be read: {reason_of(error)}.") from error
    if not files:
        raise SourceError(f"source.files: {pattern!r} matches no file.")
    return files


@functools.lru_cache(maxsize=32)
def _remote_system(url: str) -> tuple[Any, str]:
    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise SourceError(
            f"source.files: {url!r}: {reason_of(error)}. "
            "Install the fsspec driver of this kind of URL (for s3:// the extra headrace[s3])."
        ) from error
    return system, path


def _remote_file(url: str) -> SourceFile:
    system, path = _remote_system(url)
    status = system.info(path)
    if status.get("type") == "directory":
        raise SourceError(f"source.files: {url!r} is a folder. Write {url.rstrip('/')}/*.")
    size = status.get("size")
    versions = (status.get(key) for key in ("ETag", "etag", "LastModified", "mtime", "created"))
    version = next((str(found) for found in versions if found), "")
    return SourceFile(url, url, -1 if size is None else int(size), 0, version)
