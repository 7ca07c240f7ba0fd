"""A stream of text cut into blocks of whole records, each knowing its place in the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headrace.errors import SourceError
from headrace.kernels.lines import CUT_OFF, SKIP_EMPTY, Records, scan_records
from headrace.sources.batch import TextBlock
from headrace.sources.encodings import Transcoder, is_utf8, utf8_mark_length, wide_mark
from headrace.sources.files import SourceFile
from headrace.sources.streams import CutOff, decompressed

LONGEST_QUOTED = 1 << 24
"""A record that is still inside quotes after 16 MiB, line ends among them, has a quote without a partner."""
MOST_ROWS = 1 << 17
"""Records in one block at most."""
LONGEST_RECORD = (1 << 31) - (1 << 20)
"""Bytes of the longest record that can be read: places in a block are int32."""
_LONGEST_MARK = 4
_SLACK = 8
"""A block may be an eighth larger than asked for, where that spares a copy."""


@dataclass(frozen=True)
class Syntax:
    """What separates the records of a text format."""

    delimiter: int = ord(",")
    """The byte between fields."""

    quote: int = -1
    """The byte that quotes a field, or -1."""

    skip: int = SKIP_EMPTY
    """Which lines are no records: one of the constants of ``kernels.lines``."""

    encoding: str = "utf-8"
    """How the file writes characters."""

    def scan(self, data: bytes, final: bool) -> Records:
        """Find the records of ``data``."""
        return scan_records(
            data,
            delimiter=self.delimiter,
            quote=self.quote,
            skip=self.skip,
            final=final,
            limit=LONGEST_QUOTED,
        )


class TextStream:
    """The records of one file in blocks.

    Args:
        file: What to read.
        number: Its number in ``Reader.files``.
        syntax: What separates records.
    """

    def __init__(self, file: SourceFile, number: int, syntax: Syntax) -> None:
        self.file = file
        self.number = number
        self.syntax = syntax
        self._pieces = decompressed(file)
        self._pending = b""
        self._ended = False
        self._cut_off = ""
        self._transcoder: Transcoder | None = None
        self._byte = 0
        self._line = 1
        self._row = 0
        self._begin()

    def take_records(self, count: int) -> list[tuple[bytes, int]]:
        """Take the first records away from the rows, such as a header, each with its flags.

        Fewer come where the file ends before.
        """
        found = self.syntax.scan(self._pending, self._ended)
        while found.starts.size <= count and not self._ended:
            self._fill(2 * len(self._pending) + 1)
            found = self.syntax.scan(self._pending, self._ended)
        taken = min(count, found.starts.size)
        more = taken < found.starts.size
        end = int(found.starts[taken]) if more else found.consumed
        raw = [(self._pending[found.starts[i] : found.ends[i]], int(found.flags[i])) for i in range(taken)]
        self._advance(self._pending, end, int(found.lines[taken]) if more else found.line_count)
        self._pending = self._pending[end:]
        return raw

    def blocks(
        self, block_bytes: int, names: tuple[str, ...] = (), longest: int = LONGEST_RECORD
    ) -> Iterator[TextBlock]:
        """Yield the remaining records in blocks of about ``block_bytes``; at least one record each.

        Raises:
            SourceError: A record has more than ``longest`` bytes.
        """
        wanted = block_bytes
        while True:
            self._fill(wanted)
            pending = self._pending
            near = len(pending) <= wanted + wanted // _SLACK
            last = self._ended and near
            data = pending if near else pending[:wanted]
            records = self.syntax.scan(data, last)
            if not records.consumed and not last:
                wanted = self._more_than(len(data), longest)
                continue
            wanted = block_bytes
            self._pending = pending[records.consumed :]
            yield from self._cut(data, records, names, last)
            if last:
                return

    def _more_than(self, size: int, longest: int) -> int:
        """Return how many bytes to look at where a record does not end within ``size``."""
        if size > longest:
            raise SourceError(
                f"{self.file.name}:{self._line} (byte {self._byte}): a row of more than {longest:,} bytes, "
                "for which there is no memory. Mend the row, or give more memory. "
                "Is this file really of the declared format?"
            )
        return min(2 * size + 1, longest + 1)

    def _cut(self, data: bytes, records: Records, names: tuple[str, ...], last: bool) -> Iterator[TextBlock]:
        if last and self._cut_off:
            records = _with_cut_off(data, records)
        for piece, rows in _divided(data, records):
            if rows.starts.size:
                yield self._block(piece, rows, names)
            self._row += rows.starts.size
            self._advance(piece, rows.consumed, rows.line_count)

    def _block(self, data: bytes, records: Records, names: tuple[str, ...]) -> TextBlock:
        return TextBlock(
            file=self.number,
            first_row=self._row,
            first_line=self._line,
            first_byte=self._byte,
            row_count=records.starts.size,
            data=data,
            records=records,
            names=names,
            original=self._transcoder.original if self._transcoder else None,
            cut_off=self._cut_off,
        )

    def _advance(self, data: bytes, size: int, line_count: int) -> None:
        """Go on behind the first ``size`` bytes of ``data``."""
        self._byte += len(self._transcoder.original(data[:size])) if self._transcoder else size
        self._line += line_count

    def _begin(self) -> None:
        head = b""
        while len(head) < _LONGEST_MARK and (piece := self._next_piece()):
            head += piece
        if is_utf8(self.syntax.encoding):
            if wide := wide_mark(head):
                raise SourceError(
                    f"{self.file.name}: begins with the byte-order mark of {wide}, but is read as UTF-8. "
                    f'Write encoding = "{wide}" in [source].'
                )
            skipped = utf8_mark_length(head)
        else:
            self._transcoder = Transcoder(self.syntax.encoding, head)
            skipped = self._transcoder.mark_length
        self._byte = skipped
        self._pending = self._decoded(head[skipped:])

    def _decoded(self, piece: bytes) -> bytes:
        return self._transcoder.decode(piece, self._ended) if self._transcoder else piece

    def _next_piece(self) -> bytes:
        try:
            return next(self._pieces, b"") if not self._ended else b""
        except CutOff as cut:
            self._cut_off = str(cut)
            return b""

    def _fill(self, wanted: int) -> None:
        pieces = [self._pending]
        size = len(self._pending)
        while size < wanted and not self._ended:
            piece = self._next_piece()
            self._ended = not piece
            pieces.append(self._decoded(piece))
            size += len(pieces[-1])
        self._pending = b"".join(pieces)


def _divided(data: bytes, records: Records) -> Iterator[tuple[bytes, Records]]:
    """Divide a block of very short rows, so that what is noted of each row stays small."""
    count = records.starts.size
    if count <= MOST_ROWS:
        yield data, records
        return
    for first in range(0, count, MOST_ROWS):
        following = first + MOST_ROWS
        start, line = (int(records.starts[first]), int(records.lines[first])) if first else (0, 0)
        more = following < count
        end = int(records.starts[following]) if more else records.consumed
        yield (
            data[start:end],
            Records(
                records.starts[first:following] - np.int32(start),
                records.ends[first:following] - np.int32(start),
                records.lines[first:following] - np.int32(line),
                records.flags[first:following],
                end - start,
                (int(records.lines[following]) if more else records.line_count) - line,
            ),
        )


def _with_cut_off(data: bytes, records: Records) -> Records:
    """Flag the record in which the stream broke off; between two records that is one without a byte."""
    size = len(data)
    if records.starts.size and records.ends[-1] == size:
        records.flags[-1] |= CUT_OFF
        return records
    return records._replace(
        starts=np.append(records.starts, np.int32(size)),
        ends=np.append(records.ends, np.int32(size)),
        lines=np.append(records.lines, np.int32(records.line_count)),
        flags=np.append(records.flags, np.uint8(CUT_OFF)),
    )
