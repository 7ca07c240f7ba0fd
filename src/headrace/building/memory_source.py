"""Rows in memory as a batch of a source: the same values as if they stood in a file of the store's format."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import SourceError
from headrace.parse.texts import id_text
from headrace.sources import Batch, Column
from headrace.sources.tables import parse_table, row_as_json
from headrace.spec import SourceOptions

NAME = "rows in memory"
MemoryRows: TypeAlias = Sequence[Mapping[str, Any]] | pa.Table | pa.RecordBatch
_DELIMITED = ("csv", "tsv")
_INT64 = 1 << 63
_TEXTS = {str, type(None)}
_INTEGERS = {int}
_PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
_LISTS = {"texts": pa.list_(pa.string()), "numbers": pa.list_(pa.string()), "pairs": _PAIRS}


class MemorySource:
    """Turns rows in memory into batches; safe to use from many threads.

    Rows may hold what JSON gives: texts, numbers, lists and dicts. Where the store was built from CSV or TSV
    they may as well hold what such a file gives: a list as one text, and text that means missing there.

    Args:
        columns: What is wanted; a column that is nowhere is null.
        source: How the store's own files are read.
    """

    def __init__(self, columns: Sequence[Column], source: SourceOptions) -> None:
        self._columns = tuple(columns)
        written = source.format in _DELIMITED
        self._missing = frozenset(source.missing_values if written else ())
        self._readers = [_ColumnReader(column, self._missing, written) for column in columns]

    def batch(self, rows: MemoryRows) -> Batch:
        """Return rows as a batch.

        Args:
            rows: A list of dicts, or an Arrow table.

        Raises:
            SourceError: A value cannot be what its column needs, with row and column.
        """
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        return self._from_table(rows) if isinstance(rows, pa.Table) else self._from_dicts(rows)

    def _from_table(self, table: pa.Table) -> Batch:
        parsed = parse_table(table, self._columns, NAME)
        if parsed.bad:
            row, reason = min(parsed.bad.items())
            raise SourceError(f"row {row}: {reason}.")
        named = zip(self._columns, parsed.arrays, strict=True)
        arrays = {column.path: self._without_missing(array) for column, array in named}
        return _batch(arrays, table.num_rows, lambda row: row_as_json(table, row))

    def _without_missing(self, array: pa.Array) -> pa.Array:
        """Return a column with nulls for the texts that mean missing."""
        if not self._missing or not pa.types.is_string(array.type):
            return array
        missing = pc.is_in(array, pa.array(self._missing, pa.string()))
        return pc.if_else(missing, pa.scalar(None, array.type), array)

    def _from_dicts(self, rows: Sequence[Mapping[str, Any]]) -> Batch:
        given: object = rows
        if not isinstance(given, Sequence) or isinstance(given, str | bytes):
            raise SourceError(f"expected a list of dicts or an Arrow table, found {type(rows).__name__}.")
        wrong = next((number for number, row in enumerate(given) if not isinstance(row, Mapping)), None)
        if wrong is not None:
            raise SourceError(f"row {wrong}: expected a dict, found {type(given[wrong]).__name__}.")
        arrays = {reader.path: reader.read(rows) for reader in self._readers}
        return _batch(arrays, len(rows), lambda row: json.dumps(rows[row], default=str).encode())


def _batch(arrays: dict[str, pa.Array], size: int, raw: Callable[[int], bytes]) -> Batch:
    places = np.arange(size, dtype=np.int64)
    return Batch(arrays, 0, places, places + 1, np.full(size, -1, np.int64), [], raw)


class _ColumnReader:
    """Reads one column of rows that are dicts."""

    def __init__(self, column: Column, missing: frozenset[str], written: bool) -> None:
        self.path = column.path
        self._dotted = "." in column.path
        self._column = column
        self._list = _LISTS.get(column.kind)
        self._missing = missing
        self._written = written and self._list is not None

    def read(self, rows: Sequence[Mapping[str, Any]]) -> pa.Array:
        """Return the column of the rows."""
        path = self.path
        values = self._nested(rows) if self._dotted else [row.get(path) for row in rows]
        if self._missing:
            values = [None if type(one) is str and one in self._missing else one for one in values]
        if self._list is None:
            numbers = _plain_numbers(values) if self._column.kind == "number" else None
            return self._array(values, _text, pa.string()) if numbers is None else numbers
        if self._written:
            texts = [type(one) is str for one in values if one is not None]
            if texts and all(texts):
                return self._array(values, _text, pa.string())
        return self._array(values, self._pairs if self._list is _PAIRS else self._texts, self._list)

    def _nested(self, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        values: list[Any] = []
        try:
            for row in rows:
                values.append(_at(row, self.path))  # noqa: PERF401 - counted below
        except TypeError as error:
            raise self._refused(len(values), str(error)) from None
        return values

    def _array(self, values: Sequence[Any], convert: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
        converted = _plain_texts(values) if convert is _text else None
        if converted is None:
            converted = self._converted(values, convert)
        try:
            return pa.array(converted, kind)
        except UnicodeEncodeError as error:
            row = next(row for row, value in enumerate(converted) if not _is_utf8(value))
            raise self._refused(row, f"a text is not valid Unicode ({error.reason})") from None

    def _converted(self, values: Sequence[Any], convert: Callable[[Any], Any]) -> list[Any]:
        converted: list[Any] = []
        try:
            for value in values:
                converted.append(None if value is None else convert(value))  # noqa: PERF401 - counted below
        except (TypeError, UnicodeDecodeError) as error:
            raise self._refused(len(converted), str(error)) from None
        return converted

    def _refused(self, row: int, reason: str) -> SourceError:
        return SourceError(f"row {row}: {self.path}: {reason.rstrip('.')}.")

    def _texts(self, value: Any) -> list[str | None]:
        if self._written and isinstance(value, str):
            return list(value.split(self._column.separator)) if value else []
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise TypeError(f"expected a list, found {value!r}")
        elements = value if isinstance(value, list) else list(value)
        texts = _plain_texts(elements)
        return [_text(element) for element in elements] if texts is None else texts

    def _pairs(self, value: Any) -> list[tuple[str | None, str | None]]:
        if self._written and isinstance(value, str):
            elements = value.split(self._column.separator) if value else []
            return [_cut_pair(element, self._column.pair_separator) for element in elements]
        if not isinstance(value, Mapping):
            raise TypeError(f"expected a dict of values and weights, found {value!r}")
        return [(_text(key), _text(weight)) for key, weight in value.items()]


def _at(row: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path; a key of that very name wins where it is not null."""
    value = row.get(path)
    if value is not None:
        return value
    value = row
    for name in path.split("."):
        if not isinstance(value, Mapping):
            raise TypeError(f"an object is expected around {name!r}, found {value!r}")
        value = value.get(name)
        if value is None:
            return None
    return value


def _plain_numbers(values: Sequence[Any]) -> pa.Array | None:
    """Return integers as int64, or numbers with a fraction as double; None where there are others.

    An integral float goes the way of its text: to ids and to times it is that integer.
    """
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int} and all(value is None or -_INT64 <= value < _INT64 for value in values):
        return pa.array(values, pa.int64())
    if kinds == {float} and not any(value is not None and value.is_integer() for value in values):
        return pa.array(values, pa.float64())
    return None


def _plain_texts(values: Sequence[Any]) -> list[str | None] | None:
    """Return the id texts of texts and None, or of integers; None: there are other values among them."""
    kinds = set(map(type, values))
    if kinds <= _TEXTS:
        return list(values)
    return list(map(str, values)) if kinds == _INTEGERS else None


def _text(value: Any) -> str | None:
    if type(value) is str or type(value) is int:
        return str(value)
    return value.isoformat() if isinstance(value, datetime.datetime) else id_text(value)


def _cut_pair(element: str, separator: str) -> tuple[str, str]:
    """Cut at the last separator; an element without one is all value, and its weight no number."""
    value, found, weight = element.rpartition(separator)
    return (value, weight) if found else (element, "")


def _is_utf8(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
