"""CSV and TSV: every field is text, as it is written."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import bitmap
from headrace.kernels import delimited as kernel
from headrace.kernels.lines import (
    CUT_OFF,
    MALFORMED_QUOTE,
    SPANS_LINES,
    UNCLOSED_QUOTE,
    lines_with,
)
from headrace.sources.batch import Column, TextBlock
from headrace.sources.checks import invalid_utf8
from headrace.sources.jsonl import Parsed


class _Fields(NamedTuple):
    """Where fields stand in a block; the arrays are those of ``headrace.kernels.delimited``."""

    begins: NDArray[np.int32]
    stops: NDArray[np.int32]
    marks: NDArray[np.uint8]

    def at(self, key: Any) -> _Fields:
        """Return the fields that an index gives."""
        return _Fields(self.begins[key], self.stops[key], self.marks[key])


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
        self._delimiter = ord(delimiter)
        self._quote = quote
        self._quote_byte = ord(quote) if quote else -1
        self._known: tuple[tuple[str, ...], _Wanted] | None = None
        missing = [text.encode() for text in missing_values]
        self._missing = np.frombuffer(b"".join(missing), np.uint8)
        self._missing_borders = np.cumsum([0, *map(len, missing)]).astype(np.int64)

    def parse(self, block: TextBlock) -> Parsed:
        """Return the block's rows."""
        bad = self._known_bad(block)
        rows = np.delete(np.arange(block.row_count), np.array(list(bad), np.int64))
        wanted = self._wanted_of(block.names)
        fields, counts = self._split(block, rows, wanted)
        whole = counts == len(block.names)
        for row, found in zip(rows[~whole].tolist(), counts[~whole].tolist(), strict=True):
            bad[row] = _ragged(len(block.names), found, bool(block.records.flags[row] & SPANS_LINES))
        if not whole.all():
            fields, rows = fields.at((slice(None), whole)), rows[whole]
        data = np.frombuffer(block.data, np.uint8)
        arrays = [
            pa.nulls(rows.size, pa.string())
            if place is None
            else self._column(data, fields.at(int(np.searchsorted(wanted.numbers, place))))
            for place in wanted.by_column
        ]
        return Parsed(arrays, rows, dict(sorted(bad.items())))

    def _wanted_of(self, names: tuple[str, ...]) -> _Wanted:
        """Return which fields are wanted; blocks of one file share their names."""
        known = self._known
        if known is None or known[0] is not names:
            known = self._known = names, _wanted(names, self.columns)
        return known[1]

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

    def _split(
        self, block: TextBlock, rows: NDArray[np.int64], wanted: _Wanted
    ) -> tuple[_Fields, NDArray[np.int32]]:
        """Return the wanted fields of chosen rows, [W, K] each, and how many fields each row has, [K]."""
        shape = (len(wanted.numbers), rows.size)
        fields = _Fields(np.empty(shape, np.int32), np.empty(shape, np.int32), np.empty(shape, np.uint8))
        counts = np.empty(rows.size, np.int32)
        data, records = np.frombuffer(block.data, np.uint8), block.records
        kernel.split_fields(
            data,
            records.starts,
            records.ends,
            rows,
            self._delimiter,
            self._quote_byte,
            wanted.numbers,
            *fields,
            counts,
        )
        return fields, counts

    def _column(self, data: NDArray[np.uint8], fields: _Fields) -> pa.Array:
        """Return fields as a string array, null where they are missing."""
        size = fields.begins.size
        offsets = np.empty(size + 1, np.int32)
        kernel.field_borders(data, *fields, self._quote_byte, offsets)
        out = np.empty(offsets[-1], np.uint8)
        kernel.copy_fields(data, *fields, self._quote_byte, offsets, out)
        valid = np.empty(size, np.bool_)
        missing = kernel.mark_missing(data, *fields, self._missing, self._missing_borders, valid)
        buffers = [bitmap(valid) if missing else None, pa.py_buffer(offsets), pa.py_buffer(out)]
        return pa.Array.from_buffers(pa.string(), size, buffers, missing)


class _Wanted(NamedTuple):
    """Which fields of a file are wanted."""

    numbers: NDArray[np.int64]
    """int64 [W], ascending."""

    by_column: tuple[int | None, ...]
    """The number of each wanted column's field; None where the file has none of that name."""


def _wanted(names: tuple[str, ...], columns: tuple[Column, ...]) -> _Wanted:
    """Find the wanted columns among a file's names, of which there may be a million."""
    paths = {column.path for column in columns}
    places = {name: number for number, name in enumerate(names) if name in paths}
    return _Wanted(
        np.array(sorted(places.values()), np.int64), tuple(places.get(column.path) for column in columns)
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
