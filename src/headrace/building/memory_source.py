"""Rows in memory as a batch of a source: the same values as if they stood in a JSON Lines file."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.errors import SourceError
from headrace.parse.texts import id_text
from headrace.sources import Batch, Column
from headrace.sources.tables import parse_table, row_as_json

NAME = "rows in memory"
_PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))


def memory_batch(
    rows: Sequence[Mapping[str, Any]] | pa.Table | pa.RecordBatch, columns: Sequence[Column]
) -> Batch:
    """Return rows as a batch.

    Args:
        rows: A list of dicts as JSON would give them, or an Arrow table.
        columns: What is wanted; a column that is nowhere is null.

    Raises:
        SourceError: A value cannot be what its column needs, with row and column.
    """
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    return _from_table(rows, columns) if isinstance(rows, pa.Table) else _from_dicts(rows, columns)


def _from_table(table: pa.Table, columns: Sequence[Column]) -> Batch:
    parsed = parse_table(table, columns, NAME)
    if parsed.bad:
        row, reason = min(parsed.bad.items())
        raise SourceError(f"row {row}: {reason}.")
    arrays = {column.path: array for column, array in zip(columns, parsed.arrays, strict=True)}
    return _batch(arrays, table.num_rows, lambda row: row_as_json(table, row))


def _from_dicts(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> Batch:
    if not all(isinstance(row, Mapping) for row in rows):
        raise SourceError(f"expected a list of dicts or an Arrow table, found {type(rows).__name__}.")
    arrays = {column.path: _column(rows, column) for column in columns}
    return _batch(arrays, len(rows), lambda row: json.dumps(rows[row], default=str).encode())


def _batch(arrays: dict[str, pa.Array], size: int, raw: Any) -> Batch:
    places = np.arange(size, dtype=np.int64)
    return Batch(arrays, 0, places, places + 1, np.full(size, -1, np.int64), [], raw)


def _column(rows: Sequence[Mapping[str, Any]], column: Column) -> pa.Array:
    values = []
    for number, row in enumerate(rows):
        try:
            values.append(_value(_at(row, column.path), column))
        except TypeError as error:
            raise SourceError(f"row {number}: {column.path}: {str(error).rstrip('.')}.") from None
    return pa.array(values, _TYPES[column.kind])


_TYPES = {
    "text": pa.string(),
    "number": pa.string(),
    "texts": pa.list_(pa.string()),
    "numbers": pa.list_(pa.string()),
    "pairs": _PAIRS,
}


def _at(row: Mapping[str, Any], path: str) -> Any:
    if path in row or "." not in path:
        return row.get(path)
    value: Any = row
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _value(value: Any, column: Column) -> Any:
    if value is None:
        return None
    if column.kind == "pairs":
        return [(_text(key), _text(weight)) for key, weight in _items(value)]
    if column.kind in ("texts", "numbers"):
        return [_text(element) for element in _elements(value)]
    return _text(value)


def _text(value: Any) -> str | None:
    return value.isoformat() if isinstance(value, datetime.datetime) else id_text(value)


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    if not isinstance(value, Mapping):
        raise TypeError(f"expected a dict of values and weights, found {value!r}")
    return value.items()


def _elements(value: Any) -> Iterable[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"expected a list, found {value!r}")
    return value
