"""JSON Lines: nearly all rows in compiled code, the others one by one; the same values either way.

Plain rows are read in one pass (``json_plain``). Where columns are nested or pairs, Arrow's reader
takes whole runs (``json_fast``). Whatever neither takes is read exactly (``json_exact``).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.kernels.json_checks import check_objects
from headrace.kernels.lines import CUT_OFF, Records
from headrace.sources.batch import Column, TextBlock
from headrace.sources.checks import invalid_utf8
from headrace.sources.json_exact import DEEPEST, BadValue, read_line
from headrace.sources.json_fast import FastJson, Refused, can_be_fast
from headrace.sources.json_hints import learn_hints
from headrace.sources.json_plain import PlainJson, can_be_plain
from headrace.sources.values import joined, lossless

_RUN_BYTES = 1 << 19
_MOST_REFUSALS = 6
_ROWS_TO_LEARN_FROM = 64


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
        self._plain = PlainJson(self.columns) if can_be_plain(self.columns) else None
        self._fast: FastJson | None = None
        self._may_be_fast = can_be_fast(self.columns)

    def parse(self, block: TextBlock) -> Parsed:
        """Return the block's rows."""
        parsed = self._parse_plain(block) if self._plain is not None else self._parse_runs(block)
        return Parsed(parsed.arrays, parsed.rows, dict(sorted(parsed.bad.items())))

    def _parse_plain(self, block: TextBlock) -> Parsed:
        """Read the plain rows in one pass, the others one by one."""
        assert self._plain is not None
        data, records = block.data, block.records
        bad = {int(row): block.cut_off for row in np.flatnonzero(records.flags & CUT_OFF)}
        readable = ~invalid_utf8(data, records)
        readable[list(bad)] = False
        rows = np.flatnonzero(readable)
        arrays, plain = self._plain.read(data, records.starts[rows], records.ends[rows])
        kept = rows[plain]
        rest = np.setdiff1d(np.arange(records.starts.size), kept, assume_unique=True)
        exact = _ExactRows(self.columns, data, records, bad)
        parsed = exact.beside(kept, arrays, rest) if kept.size else exact.alone(rest)
        return Parsed(parsed.arrays, parsed.rows, bad)

    def _parse_runs(self, block: TextBlock) -> Parsed:
        """Read runs of rows by Arrow's reader, what it refuses one by one."""
        data, records = block.data, block.records
        flags = check_objects(data, records, DEEPEST)
        suspect = (flags != 0) | invalid_utf8(data, records)
        bad = {int(row): block.cut_off for row in np.flatnonzero(flags & CUT_OFF)}
        runs = [self._parse_run(data, records, first, end, suspect, bad) for first, end in _runs(records)]
        arrays = [joined([run.arrays[i] for run in runs]) for i in range(len(self.columns))]
        return Parsed(arrays, np.concatenate([run.rows for run in runs]), bad)

    def _parse_run(
        self,
        data: bytes,
        records: Records,
        first: int,
        end: int,
        suspect: NDArray[np.bool_],
        bad: dict[int, str],
    ) -> Parsed:
        rows = np.arange(first, end, dtype=np.int64)
        exact = _ExactRows(self.columns, data, records, bad)
        if not self._may_be_fast:
            return exact.alone(rows)
        if self._fast is None:
            self._fast = self._learn(_ExactRows(self.columns, data, records, {}), rows[:_ROWS_TO_LEARN_FROM])
        fast = self._fast
        kept, arrays = _read_fast(fast, data, records, rows[~suspect[first:end]])
        if arrays is None:
            self._fast = self._learn(_ExactRows(self.columns, data, records, {}), rows)
            return exact.alone(rows)
        rest = np.setdiff1d(rows, kept, assume_unique=True)
        return exact.beside(kept, arrays, rest)

    def _learn(self, exact: _ExactRows, rows: NDArray[np.int64]) -> FastJson:
        _, values = exact.values(rows)
        return FastJson(self.columns, learn_hints(self.columns, values))


def _runs(records: Records) -> list[tuple[int, int]]:
    """Divide the records into runs of about half a megabyte, so that a refusal costs little."""
    count = records.starts.size
    cuts = np.searchsorted(records.starts, np.arange(_RUN_BYTES, int(records.ends[-1]) + 1, _RUN_BYTES))
    borders = np.unique(np.concatenate([[0], cuts, [count]]))
    return [(int(a), int(b)) for a, b in itertools.pairwise(borders)]


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


class _ExactRows:
    """Rows of one block that are read one by one."""

    def __init__(self, columns: Sequence[Column], data: bytes, records: Records, bad: dict[int, str]) -> None:
        self._columns = columns
        self._data = data
        self._records = records
        self._bad = bad

    def values(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[list[Any]]]:
        """Return the rows that could be read, and the values of each column; the others become bad."""
        kept: list[int] = []
        values: list[list[Any]] = []
        for row in rows.tolist():
            if row in self._bad:
                continue
            try:
                line = self._data[self._records.starts[row] : self._records.ends[row]]
                values.append(read_line(line, self._columns))
                kept.append(row)
            except BadValue as reason:
                self._bad[row] = str(reason)
        columns = [list(column) for column in zip(*values, strict=True)] or [[] for _ in self._columns]
        return np.array(kept, np.int64), columns

    def alone(self, rows: NDArray[np.int64]) -> Parsed:
        """Return all rows read exactly."""
        kept, values = self.values(rows)
        hints = learn_hints(self._columns, values)
        pairs = zip(values, self._columns, strict=True)
        return Parsed([_array(some, column, hints[column.path]) for some, column in pairs], kept)

    def beside(self, kept: NDArray[np.int64], arrays: list[pa.Array], rest: NDArray[np.int64]) -> Parsed:
        """Return rows that were read fast together with the rest, which is read exactly."""
        more, values = self.values(rest)
        if not more.size:
            return Parsed(arrays, kept)
        order = np.argsort(np.concatenate([kept, more]), kind="stable")
        whole = [
            joined([array, _array(some, column, array.type)]).take(pa.array(order))
            for array, some, column in zip(arrays, values, self._columns, strict=True)
        ]
        return Parsed(whole, np.concatenate([kept, more])[order])


def _array(values: list[Any], column: Column, hint: pa.DataType) -> pa.Array:
    """Return exact values in the hinted type where that loses nothing, else as text."""
    if column.kind == "pairs":
        hint = pa.list_(pa.struct([("key", pa.string()), ("value", pa.float64())]))
    native = lossless(values, _without_floats(hint, column))
    return native if native is not None else pa.array(values, _texts(hint))


def _without_floats(hint: pa.DataType, column: Column) -> pa.DataType:
    """Return the type that a batch holds for a hint: ids are never floats, truth values are text."""
    if pa.types.is_list(hint) and not pa.types.is_struct(hint.value_type):
        return pa.list_(_without_floats(hint.value_type, column))
    floats_of_ids = pa.types.is_floating(hint) and column.kind in ("text", "texts")
    return pa.string() if floats_of_ids or pa.types.is_boolean(hint) else hint


def _texts(hint: pa.DataType) -> pa.DataType:
    if not pa.types.is_list(hint):
        return pa.string()
    pair = pa.struct([("key", pa.string()), ("value", pa.string())])
    return pa.list_(pair if pa.types.is_struct(hint.value_type) else pa.string())
