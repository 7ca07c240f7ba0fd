"""Other encodings as UTF-8 and back, so that every byte that cannot be decoded is kept.

A byte that does not decode becomes the lone surrogate U+DC00 + byte, written as
UTF-8 would write it. That is not valid UTF-8, so that the row is found bad by the
same check as any other, and its own bytes can be given back.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from headrace.errors import SourceError

_MARK = 0xDC00
_MARKED = re.compile("([\udc00-\udcff]+)")
_HANDLER = "headrace.keep-bytes"
_UTF8 = ("utf-8", "utf-8-sig")
_UTF8_BOM = b"\xef\xbb\xbf"
_NOT_FOR_FILES = ("unicode_escape", "raw_unicode_escape", "idna", "punycode", "undefined")
_WITH_MEMORY = ("iso2022", "hz", "utf-7")


def _keep_bytes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(_MARK + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(_HANDLER, _keep_bytes)


class Transcoder:
    """Turns one file's encoding into UTF-8 and back.

    Args:
        encoding: A name that Python knows; ``utf-16`` and ``utf-32`` take the byte order of
            the byte-order mark, little-endian where there is none.
        head: The first bytes of the file, at least 4 where it has so many.

    Raises:
        SourceError: No such encoding, or one that is not for files.
    """

    def __init__(self, encoding: str, head: bytes) -> None:
        self.encoding, self.mark_length = _resolved(encoding, head)
        self._decoder = codecs.getincrementaldecoder(self.encoding)(_HANDLER)

    def decode(self, data: bytes, final: bool) -> bytes:
        """Return the next bytes as UTF-8."""
        return self._decoder.decode(data, final).encode("utf-8", "surrogatepass")

    def original(self, data: bytes) -> bytes:
        """Return UTF-8 that ``decode`` made as the file's own bytes."""
        return b"".join(self._pieces(data.decode("utf-8", "surrogatepass")))

    def _pieces(self, text: str) -> Iterator[bytes]:
        for number, piece in enumerate(_MARKED.split(text)):
            if number % 2:
                yield bytes(ord(character) - _MARK for character in piece)
            else:
                yield piece.encode(self.encoding)


def is_utf8(encoding: str) -> bool:
    """Return whether an encoding is UTF-8, with or without a byte-order mark."""
    return _canonical(encoding) in _UTF8


def utf8_mark_length(head: bytes) -> int:
    """Return 3 where a UTF-8 file begins with a byte-order mark, else 0."""
    return len(_UTF8_BOM) if head.startswith(_UTF8_BOM) else 0


def wide_mark(head: bytes) -> str:
    """Return the encoding whose byte-order mark begins a file that should be UTF-8, or ``""``."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    return "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else ""


def _canonical(encoding: str) -> str:
    try:
        info = codecs.lookup(encoding)
    except (LookupError, TypeError, ValueError):
        raise SourceError(
            f"source.encoding: {encoding!r} is not an encoding that Python knows. "
            "Write one such as utf-8, latin-1, utf-16 or gb18030."
        ) from None
    if not getattr(info, "_is_text_encoding", True) or info.name.replace("-", "_") in _NOT_FOR_FILES:
        raise SourceError(f"source.encoding: {encoding!r} is no encoding of text files.")
    if info.name.startswith(_WITH_MEMORY):
        raise SourceError(
            f"source.encoding: in {encoding!r} the meaning of a byte depends on what came before, "
            "so that rows have no bytes of their own. Convert the files to UTF-8 first."
        )
    return info.name


def _resolved(encoding: str, head: bytes) -> tuple[str, int]:
    name = _canonical(encoding)
    for wide, little, big in (
        ("utf-16", codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
        ("utf-32", codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    ):
        if name.startswith(wide):
            if name == wide:
                name = f"{wide}-be" if head.startswith(big) else f"{wide}-le"
            mark = big if name.endswith("be") else little
            return name, len(mark) if head.startswith(mark) else 0
    return name, 0
