"""Stored bytes -> decompressed bytes -> UTF-8, a piece at a time."""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, Protocol

import zstandard

from headrace.errors import SourceError
from headrace.sources.files import SourceFile

_STORED_PIECE = 1 << 18
_COMPRESSED_PIECE = 1 << 14
_LONGEST_MAGIC = 10
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_XZ = b"\xfd7zXZ\x00"
_ZSTD_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18", re.DOTALL)
"""Begins a frame that holds no data; tools that compress in parallel or for seeking write such ones."""
_BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")
"""The head of a stream, and of its first block or, in an empty one, its end."""


class CutOff(Exception):  # noqa: N818 (not an error of ours: the reader makes a bad row of it)
    """A compressed stream ends before its end; what came before it was handed over."""


class _Decompressor(Protocol):
    """One member or frame; ``eof`` once it is complete, ``unused_data`` what follows it."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, /) -> bytes: ...


def compression_of(head: bytes) -> str:
    """Return ``"gzip"``, ``"zstd"``, ``"bzip2"``, ``"xz"`` or ``""`` from a file's first bytes.

    The content decides, not the name: a log that a server has unpacked on the way keeps its ``.gz``.
    """
    if head.startswith(_GZIP):
        return "gzip"
    if head.startswith(_ZSTD) or _ZSTD_SKIPPABLE.match(head):
        return "zstd"
    if head.startswith(_XZ):
        return "xz"
    return "bzip2" if _BZIP2.match(head) else ""


def _new_decompressor(compression: str) -> _Decompressor:
    makers: dict[str, Callable[[], Any]] = {
        "gzip": lambda: zlib.decompressobj(wbits=31),
        "zstd": lambda: zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj(),
        "bzip2": bz2.BZ2Decompressor,
        "xz": lzma.LZMADecompressor,
    }
    made: _Decompressor = makers[compression]()
    return made


def decompressed(file: SourceFile) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file, in pieces that are not empty.

    Raises:
        SourceError: The compressed bytes are damaged.
        CutOff: The compressed bytes end too early; every byte before that was yielded.
    """
    with file.open() as stored:
        head = file.read(stored, _LONGEST_MAGIC)
        compression = compression_of(head)
        if compression:
            yield from _members(file, stored, head, compression)
        else:
            yield from _plain(file, stored, head)


def _plain(file: SourceFile, stored: IO[bytes], head: bytes) -> Iterator[bytes]:
    piece = head
    while piece:
        yield piece
        piece = file.read(stored, _STORED_PIECE)


def _members(file: SourceFile, stored: IO[bytes], head: bytes, compression: str) -> Iterator[bytes]:
    place = 0
    member: _Decompressor | None = None
    piece = head
    while piece:
        place += len(piece)
        while piece:
            if member is None:
                piece = piece.lstrip(b"\0") if compression in ("gzip", "xz") else piece
                if not piece:
                    break
                member = _new_decompressor(compression)
            if out := _decompress(file, member, piece, compression, place - len(piece)):
                yield out
            piece = member.unused_data if member.eof else b""
            member = None if member.eof else member
        piece = file.read(stored, _COMPRESSED_PIECE)
    if member is not None:
        raise CutOff(f"the {compression} stream breaks off after {place} compressed bytes")


def _decompress(file: SourceFile, member: _Decompressor, piece: bytes, compression: str, place: int) -> bytes:
    try:
        return member.decompress(piece)
    except (zlib.error, zstandard.ZstdError, OSError, lzma.LZMAError, EOFError) as error:
        raise SourceError(
            f"{file.name}: damaged {compression} data after {place} compressed bytes ({error}). "
            "Fetch the file again; rows before the damage cannot be told from rows inside it."
        ) from error
