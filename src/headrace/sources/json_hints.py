"""How the values of a JSON column are probably held: a guess for speed that changes no value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from headrace.sources.batch import Column
from headrace.sources.json_exact import Boolean, Float, Integer
from headrace.sources.values import EXACT_FLOAT

_INT64_END = 1 << 63
_MANY_DIGITS = 18


def learn_hints(columns: Sequence[Column], values: Sequence[Sequence[Any]]) -> dict[str, pa.DataType]:
    """Return the Arrow type that most likely reads each column.

    Args:
        columns: The wanted columns.
        values: For each column, the exact values of some rows.
    """
    return {column.path: _hint(column, some) for column, some in zip(columns, values, strict=True)}


def _hint(column: Column, values: Iterable[Any]) -> pa.DataType:
    number = column.kind in ("number", "numbers")
    if column.kind in ("texts", "numbers"):
        return pa.list_(_scalar_hint((one for some in values if some for one in some), number))
    return _scalar_hint(values, number)


def _scalar_hint(values: Iterable[Any], number: bool) -> pa.DataType:
    found = [value for value in values if value is not None]
    kinds = {type(value) for value in found}
    if not kinds:
        return pa.int64() if number else pa.string()
    if kinds == {Integer}:
        return _integer_hint(found)
    if kinds <= {Integer, Float}:
        return pa.float64() if all(abs(float(value)) < EXACT_FLOAT for value in found) else pa.string()
    return pa.bool_() if kinds == {Boolean} else pa.string()


def _integer_hint(values: list[str]) -> pa.DataType:
    longest = max(values, key=len)
    if len(longest) <= _MANY_DIGITS:
        return pa.int64()
    numbers = [int(value) for value in values if len(value) <= _MANY_DIGITS + 2]
    if len(numbers) < len(values):
        return pa.string()
    if min(numbers) >= -_INT64_END and max(numbers) < _INT64_END:
        return pa.int64()
    return pa.uint64() if min(numbers) >= 0 and max(numbers) < 2 * _INT64_END else pa.string()
