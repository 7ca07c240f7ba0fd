"""Exact JSON values as arrays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headrace.sources.batch import Column
from headrace.sources.values import lossless

_PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.float64())]))
_PAIRS_OF_TEXT = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))


def exact_array(values: list[Any], column: Column, hint: pa.DataType) -> pa.Array:
    """Return exact values in the hinted type where that loses nothing, else as text."""
    if column.kind == "pairs":
        hint = _PAIRS
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
    return _PAIRS_OF_TEXT if pa.types.is_struct(hint.value_type) else pa.list_(pa.string())
