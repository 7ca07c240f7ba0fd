"""Nested objects and pairs of plain JSON: their places first, then one pass over what stands there.

{"t": 7, "ad": {"industry": "x"}, "w": {"1": 0.5}}
               ^^^^^^^^^^^^^^^^^        ^^^^^^^^^^
               rows of their own        keys and values
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headrace.kernels.json_pairs import read_plain_pairs
from headrace.kernels.json_plain import NULL
from headrace.sources.batch import Column
from headrace.sources.json_plain import Found, PlainJson, room_for, strings_of, values_of
from headrace.sources.values import EXACT_FLOAT, as_text

_SHORTEST_PAIR = len(b'"":0,')


class NestedJson:
    """Reads the wanted columns of plain rows, dotted paths and pairs among them.

    Args:
        columns: The wanted columns.
        literal: A key of a dotted path's very name wins over nesting; so it is at the top level.
    """

    def __init__(self, columns: Sequence[Column], literal: bool = True) -> None:
        self.columns = tuple(columns)
        here = [column for column in columns if literal or "." not in column.path]
        self._flat = [column for column in here if column.kind != "pairs"]
        self._pairs = [column for column in here if column.kind == "pairs"]
        self._inner = {
            first: NestedJson(inner, literal=False) for first, inner in _by_first_name(columns).items()
        }
        self._plain = PlainJson(self._flat, [*(column.path for column in self._pairs), *self._inner])

    def read(
        self, data: bytes | memoryview, starts: NDArray[Any], ends: NDArray[Any]
    ) -> tuple[list[pa.Array], NDArray[np.bool_]]:
        """Read rows as ``PlainJson.read`` does; what stands in the spans is read too."""
        flat, plain, spans = self._plain.read(data, starts, ends)
        good = np.ones(int(plain.sum()), np.bool_)
        found = {column.path: array for column, array in zip(self._flat, flat, strict=True)}
        for number, column in enumerate(self._pairs):
            found[column.path] = _pairs_array(np.frombuffer(data, np.uint8), spans.at(number), good)
        for number, (first, inner) in enumerate(self._inner.items(), len(self._pairs)):
            for path, array in _inner_arrays(data, spans.at(number), first, inner, good).items():
                found[path] = _first_present(found[path], array) if path in found else array
        arrays = [found[column.path] for column in self.columns]
        if not good.all():
            arrays = [array.filter(pa.array(good)) for array in arrays]
            plain[plain] = good
        return arrays, plain


def can_be_nested(columns: Sequence[Column]) -> bool:
    """Return whether each key has one meaning: no name is both a value and an object on a path."""
    leaves, inner = {column.path for column in columns}, set()
    for column in columns:
        names = column.path.split(".")
        inner |= {".".join(names[:depth]) for depth in range(1, len(names))}
    return not leaves & inner


def _by_first_name(columns: Sequence[Column]) -> dict[str, list[Column]]:
    inner: dict[str, list[Column]] = {}
    for column in columns:
        first, dot, rest = column.path.partition(".")
        if dot:
            inner.setdefault(first, []).append(replace(column, path=rest))
    return inner


def _inner_arrays(
    data: bytes | memoryview, spans: Found, first: str, inner: NestedJson, good: NDArray[np.bool_]
) -> dict[str, pa.Array]:
    """Return the columns inside one object, null where it is absent; unmark rows that are not plain."""
    there = spans.tags != NULL
    arrays, plain = inner.read(data, spans.begins[there], spans.stops[there])
    places = np.flatnonzero(there)
    good[places[~plain]] = False
    indices = np.zeros(there.size, np.int64)
    absent = np.ones(there.size, np.bool_)
    indices[places[plain]] = np.arange(int(plain.sum()))
    absent[places[plain]] = False
    order = pa.array(indices, mask=absent)
    return {
        f"{first}.{column.path}": array.take(order)
        for column, array in zip(inner.columns, arrays, strict=True)
    }


def _pairs_array(view: NDArray[np.uint8], spans: Found, good: NDArray[np.bool_]) -> pa.Array:
    """Return a column of pairs; unmark rows whose pairs are not plain."""
    there = spans.tags != NULL
    starts = np.where(there, spans.begins, 0)
    stops = np.where(there, spans.stops, 0)
    room = int((stops - starts).sum()) // _SHORTEST_PAIR + 1
    keys, values = room_for(room), room_for(room)
    borders = np.empty(there.size + 1, np.int64)
    plain = np.empty(there.size, np.bool_)
    read_plain_pairs(view, starts, stops, keys.begins, keys.stops, *values, borders, plain)
    good &= plain
    keys, values = keys.at(slice(borders[-1])), values.at(slice(borders[-1]))
    texts = strings_of(view, keys, np.ones(keys.tags.size, np.bool_))
    pairs = pa.StructArray.from_arrays(
        [texts, _as_floats(values_of(view, values, as_text=False))], ["key", "value"]
    )
    return pa.ListArray.from_arrays(pa.array(borders.astype(np.int32)), pairs, mask=pa.array(~there))


def _as_floats(numbers: pa.Array) -> pa.Array:
    """Return integers as float64 where that loses nothing, else as text."""
    if not pa.types.is_integer(numbers.type):
        return numbers
    small = pc.max(pc.abs(numbers)).as_py()
    return numbers.cast(pa.float64() if small is None or small < EXACT_FLOAT else pa.string())


def _first_present(literal: pa.Array, nested: pa.Array) -> pa.Array:
    """Return the literal key's values, and the nested ones where it is null."""
    if literal.null_count == len(literal):
        return nested
    if nested.null_count == len(nested):
        return literal
    if literal.type != nested.type:
        literal, nested = as_text(literal), as_text(nested)
    return pc.coalesce(literal, nested)
