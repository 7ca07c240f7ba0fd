"""Opening a source and reading it: blocks in order, parsed by as many threads as one likes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headrace.errors import SourceError, did_you_mean
from headrace.kernels.lines import (
    KEEP_BLANK,
    MALFORMED_QUOTE,
    SKIP_BLANK,
    SKIP_EMPTY,
    SPANS_LINES,
    UNCLOSED_QUOTE,
)
from headrace.sources.batch import BadRow, Batch, Block, Column, TableBlock, TextBlock
from headrace.sources.cutter import LONGEST_RECORD, Syntax, TextStream
from headrace.sources.delimited import DelimitedParser, read_header
from headrace.sources.files import SourceFile, find_files
from headrace.sources.json_exact import BadValue, names_in, parse_line
from headrace.sources.jsonl import JsonParser, Parsed
from headrace.sources.lines_of_text import NAME as TEXT_COLUMN
from headrace.sources.lines_of_text import LineParser
from headrace.sources.tables import TableFile, column_paths, has_column, parse_table, row_as_json

BLOCK_BYTES = 8 << 20
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_ROWS_LOOKED_AT = 1000
_MOST_CANDIDATES = 2000
_NEAR = 2
_LINE_END = re.compile(rb"\r\n|\r|\n")


class SourceLike(Protocol):
    """What is read of a declared source; ``headrace.spec.Source`` has it all."""

    @property
    def format(self) -> str: ...  # noqa: D102
    @property
    def files(self) -> Any: ...  # noqa: D102
    @property
    def delimiter(self) -> str | None: ...  # noqa: D102
    @property
    def quote(self) -> str: ...  # noqa: D102
    @property
    def header(self) -> bool: ...  # noqa: D102
    @property
    def columns(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def encoding(self) -> str: ...  # noqa: D102
    @property
    def missing_values(self) -> Sequence[str]: ...  # noqa: D102


def open_source(source: SourceLike, base: str | Path | None, columns: Sequence[Column]) -> Reader:
    """Find a source's files and make ready to read the wanted columns.

    Args:
        source: Format, files and how to read them.
        base: The folder from which relative files start; None is the current one.
        columns: What is wanted; several wishes for one path are an error of the caller.

    Raises:
        SourceError: A file is missing, a glob matches nothing, or an option is impossible.
    """
    return Reader(source, find_files(source.files, base), columns)


class Reader:
    """Reads the wanted columns of a source.

    ``blocks`` cuts the files into whole records, in byte order of file name and then by row; it is
    cheap and sequential. ``parse`` turns one block into arrays; it is pure but for guesses that change
    no value, and meant to be called from many threads.

    Args:
        source: Format and how to read it.
        files: In the order in which they are read.
        columns: What is wanted.
    """

    def __init__(self, source: SourceLike, files: Sequence[SourceFile], columns: Sequence[Column]) -> None:
        self.format = source.format
        self.files = list(files)
        self.columns = tuple(columns)
        self._source = source
        self._syntax = _syntax(source)
        self._parse_text = self._text_parser()
        self._table_files: dict[int, TableFile] = {}

    def check(self) -> None:
        """Look at every file's header or schema.

        JSON Lines and text have none: there a column is missing when it was null in every row.

        Raises:
            SourceError: A column is missing, a name stands twice, or a file is damaged.
        """
        if self.format == "jsonl":
            return
        found = [self.names(number) for number in range(len(self.files))]
        for column in self.columns:
            for number, names in enumerate(found):
                if not column.optional and column.path not in names:
                    raise self.missing(column.path, number, names)

    def missing(self, path: str, number: int, names: Iterable[str] | None = None) -> SourceError:
        """Return the error that says that a file has no column ``path``."""
        known = [name for name in (self.names(number) if names is None else names) if name]
        hint = did_you_mean(path, _candidates(path, known))
        hint = hint or (f" It has {', '.join(known[:5])}." if known else " It has none.")
        return SourceError(f"{self.files[number].name}: there is no column '{path}'.{hint}")

    def names(self, number: int) -> list[str]:
        """Return the columns of one file: of its header, its schema or its first rows."""
        if self.format in ("parquet", "arrow"):
            return column_paths(self._table_file(number).schema())
        if self.format == "text":
            return [TEXT_COLUMN]
        stream = TextStream(self.files[number], number, self._syntax)
        return self._json_names(stream) if self.format == "jsonl" else list(self._header(stream))

    @staticmethod
    def _json_names(stream: TextStream) -> list[str]:
        names: dict[str, None] = {}
        for line, _ in stream.take_records(_ROWS_LOOKED_AT):
            try:
                names |= dict.fromkeys(names_in(parse_line(line)))
            except BadValue:
                continue
        return list(names)

    def blocks(
        self,
        block_bytes: int = BLOCK_BYTES,
        files: Collection[int] | None = None,
        longest: int = LONGEST_RECORD,
    ) -> Iterator[Block]:
        """Yield the records in order, whole ones only.

        Args:
            block_bytes: About how many bytes a block shall have; results do not depend on it.
            files: Numbers of the files to read; None is all.
            longest: Most bytes that a record of a text format may have.

        Raises:
            SourceError: A file is damaged, has vanished or changes while it is read; a record is too long.
        """
        for number in range(len(self.files)):
            if files is None or number in files:
                yield from self._file_blocks(number, block_bytes, longest)
                self.files[number].check_unchanged()

    def _file_blocks(self, number: int, block_bytes: int, longest: int) -> Iterator[Block]:
        if self.format in ("parquet", "arrow"):
            table = self._table_file(number)
            self._check_names(number, table.schema())
            yield from table.blocks(self.columns, block_bytes)
            return
        stream = TextStream(self.files[number], number, self._syntax)
        names: tuple[str, ...] = ()
        if self.format in _DELIMITERS:
            names = self._header(stream)
            self._check_names(number, names)
        yield from stream.blocks(block_bytes, names, longest)

    def _check_names(self, number: int, names: pa.Schema | tuple[str, ...]) -> None:
        for column in self.columns:
            there = has_column(names, column.path) if isinstance(names, pa.Schema) else column.path in names
            if not there and not column.optional:
                known = column_paths(names) if isinstance(names, pa.Schema) else names
                raise self.missing(column.path, number, known)

    def parse(self, block: Block) -> Batch:
        """Return a block's rows as arrays, with the rows that cannot be read beside them.

        Raises:
            SourceError: A Parquet or Arrow file is damaged, or a column's type does not fit.
        """
        if isinstance(block, TextBlock):
            return _text_batch(block, self._parse_text(block), self.columns)
        if not isinstance(block, TableBlock):
            raise TypeError(f"a block of this reader is expected, found {type(block).__name__}")
        table = block.table
        if table is None:
            table = self._table_file(block.file).read_group(block.group, self.columns)
        parsed = parse_table(table, self.columns, self.files[block.file].name)
        return _table_batch(block, table, parsed, self.columns)

    def _table_file(self, number: int) -> TableFile:
        if number not in self._table_files:
            self._table_files[number] = TableFile(self.files[number], number, self.format)
        return self._table_files[number]

    def _text_parser(self) -> Callable[[TextBlock], Parsed]:
        if self.format == "jsonl":
            return JsonParser(self.columns).parse
        if self.format in _DELIMITERS:
            source = self._source
            parser = DelimitedParser(self.columns, _delimiter(source), source.quote, source.missing_values)
            return parser.parse
        return LineParser(self.columns).parse

    def _header(self, stream: TextStream) -> tuple[str, ...]:
        declared = tuple(self._source.columns or ())
        if not self._source.header:
            return declared
        taken = stream.take_records(1)
        if not taken:
            return declared or tuple(column.path for column in self.columns)
        names = declared or self._read_header(stream.file, *taken[0])
        if len(set(names)) < len(names):
            repeated = next(name for place, name in enumerate(names) if name in names[:place])
            raise SourceError(
                f"{stream.file.name}:1: two columns are named '{repeated}'. Rename one of them, "
                "or name all of them with columns = [...]."
            )
        return names

    def _read_header(self, file: SourceFile, record: bytes, flags: int) -> tuple[str, ...]:
        fault = _header_fault(record, flags)
        if fault:
            raise SourceError(f"{file.name}:1: the header {fault}")
        try:
            return tuple(read_header(record.decode(), _delimiter(self._source), self._source.quote))
        except ValueError as error:
            raise SourceError(f"{file.name}:1: the header cannot be read: {error}.") from None


def _header_fault(record: bytes, flags: int) -> str:
    """Return what is wrong with a header, or ``""``."""
    if flags & (UNCLOSED_QUOTE | MALFORMED_QUOTE):
        return 'has a quote that is not closed where its field ends. Mend it, or set quote = "".'
    if b"\0" in record:
        return "holds a NUL byte. Is this file really of the declared format and encoding?"
    try:
        record.decode()
    except UnicodeDecodeError as error:
        return (
            f"is not valid UTF-8 at byte {error.start}. "
            'Write the encoding of the file in [source], such as encoding = "latin-1".'
        )
    return ""


def _candidates(path: str, known: list[str]) -> list[str]:
    """Return the names that may be meant; of very many those of about the same length and beginning."""
    if len(known) > _MOST_CANDIDATES:
        known = [name for name in known if name[:1] == path[:1] and abs(len(name) - len(path)) < _NEAR]
    return known[:_MOST_CANDIDATES]


def _delimiter(source: SourceLike) -> str:
    delimiter = _DELIMITERS[source.format] if source.format == "tsv" else source.delimiter or ","
    if len(delimiter) != 1 or not delimiter.isascii():
        raise SourceError(f"source.delimiter is {delimiter!r}; one ASCII character is expected.")
    return delimiter


def _syntax(source: SourceLike) -> Syntax:
    encoding = getattr(source, "encoding", None) or "utf-8"
    if source.format == "jsonl":
        return Syntax(skip=SKIP_BLANK, encoding=encoding)
    if source.format not in _DELIMITERS:
        return Syntax(skip=KEEP_BLANK, encoding=encoding)
    if source.quote and (len(source.quote) != 1 or not source.quote.isascii()):
        raise SourceError(f'source.quote is {source.quote!r}; one ASCII character or "" is expected.')
    quote = ord(source.quote) if source.quote else -1
    return Syntax(ord(_delimiter(source)), quote, SKIP_EMPTY, encoding)


def _text_batch(block: TextBlock, parsed: Parsed, columns: Sequence[Column]) -> Batch:
    offsets = _byte_offsets(block)
    lines = block.first_line + block.records.lines.astype(np.int64)
    kept = parsed.rows

    def raw(i: int) -> bytes:
        return _raw(block, int(kept[i]))

    bad = [
        bad_row
        for row, reason in parsed.bad.items()
        for bad_row in _bad_rows(block, row, int(lines[row]), int(offsets[row]), reason)
    ]
    by_path = {column.path: array for column, array in zip(columns, parsed.arrays, strict=True)}
    return Batch(by_path, block.file, block.first_row + kept, lines[kept], offsets[kept], bad, raw)


def _raw(block: TextBlock, row: int) -> bytes:
    raw = block.data[block.records.starts[row] : block.records.ends[row]]
    return block.original(raw) if block.original else raw


def _bad_rows(block: TextBlock, row: int, line: int, offset: int, reason: str) -> list[BadRow]:
    """Return one bad row; of a record whose quotes join lines one for each line, so that none hides."""
    raw = _raw(block, row)
    number = block.first_row + row
    if block.original or not block.records.flags[row] & SPANS_LINES:
        return [BadRow(block.file, number, line, offset, reason, raw)]
    starts = [0, *(found.end() for found in _LINE_END.finditer(raw))]
    ends = [*(found.start() for found in _LINE_END.finditer(raw)), len(raw)]
    return [
        BadRow(block.file, number, line + i, offset + start, reason, raw[start:end])
        for i, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]


def _byte_offsets(block: TextBlock) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return where each record begins in the decompressed stream, in the file's own encoding."""
    starts = block.records.starts.astype(np.int64)
    if block.original is None:
        return block.first_byte + starts
    borders = itertools.pairwise([0, *starts.tolist()])
    sizes = [len(block.original(block.data[a:b])) for a, b in borders]
    return block.first_byte + np.cumsum(np.array(sizes, np.int64))


def _table_batch(block: TableBlock, table: pa.Table, parsed: Parsed, columns: Sequence[Column]) -> Batch:
    kept = parsed.rows

    def raw(i: int) -> bytes:
        return row_as_json(table, int(kept[i]))

    bad = [_bad_table_row(block, table, row, reason) for row, reason in parsed.bad.items()]
    by_path = {column.path: array for column, array in zip(columns, parsed.arrays, strict=True)}
    rows = block.first_row + kept
    return Batch(by_path, block.file, rows, rows + 1, np.full(rows.size, -1, np.int64), bad, raw)


def _bad_table_row(block: TableBlock, table: pa.Table, row: int, reason: str) -> BadRow:
    number = block.first_row + row
    return BadRow(block.file, number, number + 1, -1, reason, row_as_json(table, row))
