"""CSV and TSV: every field is text, as it is written; Arrow's reader parses."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from headrace.kernels.lines import (
    CUT_OFF,
    MALFORMED_QUOTE,
    SPANS_LINES,
    UNCLOSED_QUOTE,
    gather_lines,
    lines_with,
)
from headrace.sources.batch import Column, TextBlock
from headrace.sources.checks import invalid_utf8
from headrace.sources.jsonl import Parsed

_BOM = b"\xef\xbb\xbf"
_SMALLEST_BLOCK = 64


class DelimitedParser:
    """Parses blocks of CSV or TSV; safe to call from many threads.

    Args:
        columns: The wanted columns.
        delimiter: One ASCII character.
        quote: One ASCII character, or "".
        missing_values: Unquoted fields that mean missing.
    """

    def __init__(
        self, columns: Sequence[Column], delimiter: str, quote: str, missing_values: Sequence[str]
    ) -> None:
        self.columns = tuple(columns)
        self._delimiter = delimiter
        self._quote = quote
        self._missing = list(missing_values)

    def parse(self, block: TextBlock) -> Parsed:
        """Return the block's rows."""
        bad = self._known_bad(block)
        rows = np.setdiff1d(np.arange(block.row_count), np.array(list(bad), np.int64), assume_unique=True)
        arrays, ragged = self._read(block, rows)
        bad.update((int(rows[place]), reason) for place, reason in ragged.items())
        kept = np.delete(rows, np.array(list(ragged), np.int64))
        if any(len(array) != kept.size for array in arrays):
            raise AssertionError(f"{len(arrays[0])} rows came out of {kept.size} records")
        return Parsed(arrays, kept, dict(sorted(bad.items())))

    def _known_bad(self, block: TextBlock) -> dict[int, str]:
        data, records = block.data, block.records
        bad = {int(row): "not valid UTF-8" for row in np.flatnonzero(invalid_utf8(data, records))}
        if block.original is not None:
            bad = dict.fromkeys(bad, "bytes that are not of the declared encoding")
        if b"\0" in data:
            bad |= {int(row): "holds a NUL byte" for row in np.flatnonzero(lines_with(data, records, 0))}
        for flag, reason in (
            (MALFORMED_QUOTE, self._malformed()),
            (UNCLOSED_QUOTE, self._unclosed()),
            (CUT_OFF, block.cut_off),
        ):
            bad |= {int(row): reason for row in np.flatnonzero(records.flags & flag)}
        return bad

    def _malformed(self) -> str:
        return f'text after a closing {self._quote}; where it is an ordinary character, set quote = ""'

    def _unclosed(self) -> str:
        return f"the {self._quote} that opens a field is never closed; reading goes on with the next line"

    def _read(self, block: TextBlock, rows: NDArray[np.int64]) -> tuple[list[pa.Array], dict[int, str]]:
        if not rows.size:
            return [pa.nulls(0, pa.string()) for _ in self.columns], {}
        names = [str(i) for i in range(len(block.names))]
        places = {name: str(i) for i, name in enumerate(block.names)}
        wanted = sorted({places[column.path] for column in self.columns if column.path in places}, key=int)
        table, ragged = self._read_table(_lines(block, rows), names, wanted or names[:1])
        reasons = {
            row: _ragged(len(names), found, bool(block.records.flags[rows[row]] & SPANS_LINES))
            for row, found in ragged.items()
        }
        return [self._column(table, places.get(column.path)) for column in self.columns], reasons

    @staticmethod
    def _column(table: pa.Table, name: str | None) -> pa.Array:
        if name is None:
            return pa.nulls(table.num_rows, pa.string())
        chunks = table.column(name).chunks
        return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks or [pa.nulls(0, pa.string())])

    def _read_table(self, data: Any, names: list[str], wanted: list[str]) -> tuple[pa.Table, dict[int, int]]:
        """Return the table, and for each ragged row its place and how many fields it has."""
        ragged: dict[int, int] = {}

        def note(row: Any) -> str:
            ragged[row.number - 1] = row.actual_columns
            return "skip"

        buffer = pa.py_buffer(data)
        options = pa.csv.ReadOptions(
            use_threads=False, block_size=max(buffer.size + 1, _SMALLEST_BLOCK), column_names=names
        )
        table = pa.csv.read_csv(
            pa.BufferReader(buffer), options, self._parse_options(note), self._convert_options(wanted)
        )
        return table, ragged

    def _parse_options(self, note: Callable[[Any], str]) -> pa.csv.ParseOptions:
        return pa.csv.ParseOptions(
            delimiter=self._delimiter,
            quote_char=self._quote or False,
            double_quote=True,
            escape_char=False,
            newlines_in_values=False,  # only asked where a block is cut, and here the block is whole
            ignore_empty_lines=True,
            invalid_row_handler=note,
        )

    def _convert_options(self, wanted: list[str]) -> pa.csv.ConvertOptions:
        return pa.csv.ConvertOptions(
            check_utf8=False,  # checked before
            column_types=dict.fromkeys(wanted, pa.string()),
            include_columns=wanted,
            null_values=self._missing,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )


def read_header(record: str, delimiter: str, quote: str) -> list[str]:
    """Return the fields of a header.

    Raises:
        ValueError: A field has more than 128 KiB.
    """
    quoting: Any = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    text = io.StringIO(record, newline="")
    try:
        return next(csv.reader(text, delimiter=delimiter, quotechar=quote or None, quoting=quoting))
    except csv.Error as error:
        raise ValueError(str(error)) from None


def _ragged(expected: int, found: int, spans_lines: bool) -> str:
    reason = f"{expected} fields expected, {found} found"
    return reason + "; its quotes join several lines: one may be unclosed" if spans_lines else reason


def _lines(block: TextBlock, rows: NDArray[np.int64]) -> Any:
    """Return the bytes of the rows, each ending in a line end; never beginning with a byte-order mark."""
    data, records = block.data, block.records
    whole = memoryview(data)[: records.consumed]
    if rows.size == records.starts.size and bytes(whole[-1:]) in (b"\n", b"\r") and not data.startswith(_BOM):
        return whole
    lines: Any = gather_lines(data, records, rows, newline=True)[1]
    return b"\n" + lines.tobytes() if bytes(lines[:3]) == _BOM else lines
