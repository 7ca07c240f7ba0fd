"""JSON Lines: nearly all rows in compiled code, the others one by one; the same values either way.

Plain rows are read in one pass (``json_nested``, ``json_plain``). Where many are left, as with text
full of escapes, Arrow's reader takes runs of them (``json_fast``). The rest is read exactly (``json_exact``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.kernels.json_checks import check_objects
from headrace.kernels.lines import CUT_OFF, Records
from headrace.sources.batch import Column, TextBlock
from headrace.sources.checks import invalid_utf8
from headrace.sources.json_arrays import exact_array
from headrace.sources.json_exact import DEEPEST, BadValue, read_line
from headrace.sources.json_fast import FastJson, Refused, can_be_fast
from headrace.sources.json_hints import learn_hints
from headrace.sources.json_nested import NestedJson, can_be_nested
from headrace.sources.values import joined

_RUN_BYTES = 1 << 19
_FEW_ROWS = 64
_MOST_REFUSALS = 6


@dataclass
class Parsed:
    """Rows of one block: arrays of the kept ones, and why the others are not kept."""

    arrays: list[pa.Array]
    """One for each column."""

    rows: NDArray[np.int64]
    """int64 ``[N]``, numbers in the block of the kept rows, ascending."""

    bad: dict[int, str] = field(default_factory=dict)
    """Number in the block -> reason."""


class JsonParser:
    """Parses blocks of JSON Lines; safe to call from many threads.

    Args:
        columns: The wanted columns.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)
        self._plain = NestedJson(self.columns) if can_be_nested(self.columns) else None
        self._may_be_fast = can_be_fast(self.columns)
        self._fast: FastJson | None = None

    def parse(self, block: TextBlock) -> Parsed:
        """Return the block's rows."""
        data, records = block.data, block.records
        bad = {int(row): block.cut_off for row in np.flatnonzero(records.flags & CUT_OFF)}
        readable = ~invalid_utf8(data, records)
        readable[list(bad)] = False
        left = np.flatnonzero(readable)
        pieces: list[Parsed] = []
        if self._plain is not None:
            arrays, plain = self._plain.read(data, records.starts[left], records.ends[left])
            pieces.append(Parsed(arrays, left[plain]))
            left = left[~plain]
        if self._may_be_fast and left.size > _FEW_ROWS:
            pieces += self._by_arrow(data, records, left, bad)
        pieces.append(self._one_by_one(data, records, pieces, bad))
        merged = _merged([piece for piece in pieces if piece.rows.size] or pieces[-1:])
        return Parsed(merged.arrays, merged.rows, dict(sorted(bad.items())))

    def _by_arrow(
        self, data: bytes, records: Records, rows: NDArray[np.int64], bad: dict[int, str]
    ) -> Iterator[Parsed]:
        """Yield what Arrow's reader takes of the rows, half a megabyte at a time: a refusal costs little.

        A run that it refuses is read exactly, and what it is guessed to hold is learned from it.
        """
        rows = rows[check_objects(data, records, DEEPEST)[rows] == 0]
        sizes = np.cumsum(records.ends[rows].astype(np.int64) - records.starts[rows])
        for run in np.split(rows, np.flatnonzero(np.diff(sizes // _RUN_BYTES)) + 1):
            fast = self._fast or self._learn(data, records, run[:_FEW_ROWS])
            self._fast = fast
            kept, arrays = _read_fast(fast, data, records, run)
            if arrays is not None:
                yield Parsed(arrays, kept)
                continue
            kept, values = _exact_values(self.columns, data, records, run, bad)
            hints = learn_hints(self.columns, values)
            self._fast = FastJson(self.columns, hints)
            yield self._exact(kept, values, hints)

    def _learn(self, data: bytes, records: Records, rows: NDArray[np.int64]) -> FastJson:
        _, values = _exact_values(self.columns, data, records, rows, {})
        return FastJson(self.columns, learn_hints(self.columns, values))

    def _exact(
        self, rows: NDArray[np.int64], values: list[list[Any]], hints: Mapping[str, pa.DataType]
    ) -> Parsed:
        """Return rows whose values were read exactly."""
        pairs = zip(values, self.columns, strict=True)
        return Parsed([exact_array(some, column, hints[column.path]) for some, column in pairs], rows)

    def _one_by_one(
        self, data: bytes, records: Records, pieces: Sequence[Parsed], bad: dict[int, str]
    ) -> Parsed:
        """Read the rows that are in none of the pieces; those that cannot be read become bad."""
        wanted = np.ones(records.starts.size, np.bool_)
        wanted[list(bad)] = False
        for piece in pieces:
            wanted[piece.rows] = False
        rows, values = _exact_values(self.columns, data, records, np.flatnonzero(wanted), bad)
        hints = learn_hints(self.columns, values)
        for piece in pieces[:1]:
            if piece.rows.size:
                hints |= {
                    column.path: array.type for column, array in zip(self.columns, piece.arrays, strict=True)
                }
        return self._exact(rows, values, hints)


def _merged(pieces: Sequence[Parsed]) -> Parsed:
    """Return rows of several pieces in the order of the file."""
    if len(pieces) == 1:
        return pieces[0]
    rows = np.concatenate([piece.rows for piece in pieces])
    order = np.argsort(rows, kind="stable")
    columns = zip(*(piece.arrays for piece in pieces), strict=True)
    return Parsed([joined(column).take(pa.array(order)) for column in columns], rows[order])


def _read_fast(
    fast: FastJson, data: bytes, records: Records, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[pa.Array] | None]:
    """Return the rows that Arrow read, and their arrays; None where it refuses too many."""
    for _ in range(_MOST_REFUSALS):
        if not rows.size:
            return rows, None
        try:
            arrays, doubtful = fast.read(data, records, rows)
        except Refused as refused:
            if not 0 <= refused.row < rows.size:
                break
            rows = np.delete(rows, refused.row)
            continue
        if not doubtful.any():
            return rows, arrays
        sure = pa.array(~doubtful)
        return rows[~doubtful], [array.filter(sure) for array in arrays]
    return rows, None


def _exact_values(
    columns: Sequence[Column], data: bytes, records: Records, rows: NDArray[np.int64], bad: dict[int, str]
) -> tuple[NDArray[np.int64], list[list[Any]]]:
    """Return the rows that could be read, and the values of each column; the others become bad."""
    kept: list[int] = []
    values: list[list[Any]] = []
    for row in rows.tolist():
        try:
            values.append(read_line(data[records.starts[row] : records.ends[row]], columns))
            kept.append(row)
        except BadValue as reason:
            bad[row] = str(reason)
    return np.array(kept, np.int64), [list(column) for column in zip(*values, strict=True)] or [
        [] for _ in columns
    ]
