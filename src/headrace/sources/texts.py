"""Text files as samples: lines, paragraphs or whole files, a piece in memory at a time."""

from __future__ import annotations

import codecs
import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from headrace.errors import SourceError, did_you_mean
from headrace.sources.files import SourceFile
from headrace.sources.streams import CutOff, decompressed

SampleBy = Literal["line", "paragraph", "document"]
_CHOICES = ("line", "paragraph", "document")
_BETWEEN_PARAGRAPHS = "\n\n"


@dataclass(frozen=True)
class TextFormat:
    r"""How a text file is read; ``\r\n`` and ``\r`` end a line as ``\n`` does.

    file            a \n b \n \n c \n
    line            "a"  "b"  ""  "c"
    paragraph       "a\nb"  "c\n"        empty ones are left out
    document        "a\nb\n\nc\n"
    """

    sample_by: SampleBy = "line"
    encoding: str = "utf-8"
    """A codec of Python; ``"utf-8-sig"`` takes a byte order mark off."""
    encoding_errors: str | None = None
    """What becomes of bytes that are not of the encoding: ``"replace"``, ``"ignore"``; None: an error."""
    keep_linebreaks: bool = False
    r"""Whether a line keeps its ``\n``."""

    def __post_init__(self) -> None:
        if self.sample_by not in _CHOICES:
            raise SourceError(
                f"sample_by={self.sample_by!r}: expected one of {', '.join(map(repr, _CHOICES))}."
                + did_you_mean(str(self.sample_by), _CHOICES)
            )
        try:
            _try_names(self.encoding, self.encoding_errors or "strict")
        except (LookupError, TypeError, ValueError) as error:
            raise SourceError(
                f"encoding={self.encoding!r}, encoding_errors={self.encoding_errors!r}: {error}. "
                "Give the name of a text encoding and of an error handler of Python's codecs."
            ) from None


def _try_names(encoding: str, encoding_errors: str) -> None:
    """Fail where Python knows no such text encoding, or no such handler of bytes that are not of it."""
    codecs.lookup(encoding)
    io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    with contextlib.suppress(UnicodeDecodeError):  # what "strict" does
        codecs.lookup_error(encoding_errors)(UnicodeDecodeError(encoding, b"\xff", 0, 1, "not of it"))


def read_texts(file: SourceFile, how: TextFormat) -> Iterator[list[str]]:
    """Yield the samples of a file, some at a time.

    Args:
        file: Plain, gzip, zstd, bzip2 or xz; its content says which.
        how: What is a sample.

    Raises:
        SourceError: The file is damaged, or not of the encoding.
    """
    pieces = _decoded(file, how)
    if how.sample_by == "document":
        yield ["".join(pieces)]
    elif how.sample_by == "line":
        yield from _split(pieces, "\n", "\n" if how.keep_linebreaks else "")
    else:
        for paragraphs in _split(pieces, _BETWEEN_PARAGRAPHS, ""):
            yield [paragraph for paragraph in paragraphs if paragraph]


def _split(pieces: Iterator[str], separator: str, end: str) -> Iterator[list[str]]:
    """Yield what stands between separators; no more than one piece and an unfinished part is kept."""
    unfinished: list[str] = []
    for piece in filter(None, pieces):
        before = unfinished[-1][-1] if unfinished else ""
        unfinished.append(piece)
        if separator in before + piece:
            *whole, rest = "".join(unfinished).split(separator)
            unfinished = [rest] if rest else []
            yield [part + end for part in whole] if end else whole
    if unfinished:
        yield ["".join(unfinished)]


def _decoded(file: SourceFile, how: TextFormat) -> Iterator[str]:
    """Yield a file's text, its line ends made one."""
    decoder = codecs.getincrementaldecoder(how.encoding)(how.encoding_errors or "strict")
    line_ends = io.IncrementalNewlineDecoder(None, translate=True)
    before = 0
    try:
        for piece in decompressed(file):
            waiting = len(decoder.getstate()[0])
            yield line_ends.decode(_decode(decoder, piece, file, before - waiting))
            before += len(piece)
        waiting = len(decoder.getstate()[0])
        yield line_ends.decode(_decode(decoder, b"", file, before - waiting, final=True), final=True)
    except CutOff as error:
        raise SourceError(f"{file.name}: {error}. Restore the file, or leave it out.") from None


def _decode(
    decoder: codecs.IncrementalDecoder, piece: bytes, file: SourceFile, begin: int, final: bool = False
) -> str:
    try:
        return decoder.decode(piece, final)
    except UnicodeDecodeError as error:
        place = begin + error.start
        raise SourceError(
            f"{file.name}: not {error.encoding} (byte {place} is 0x{error.object[error.start]:02x}: "
            f"{error.reason}). Give its true encoding=, or encoding_errors='replace'."
        ) from None
    except UnicodeError as error:  # UTF-16 or UTF-32 that does not say its byte order
        raise SourceError(f"{file.name}: {error}. Give its true encoding=, such as 'utf-16-le'.") from None
