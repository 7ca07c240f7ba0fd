"""Rows of plain JSON read in one compiled pass; the rest is told, to be read exactly.

What is read here is exactly what ``json_exact`` reads: see ``headrace.kernels.json_plain``
for what is plain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headrace.kernels import json_plain as kernel
from headrace.kernels.fields import copy_ranges
from headrace.sources.batch import Column
from headrace.sources.values import EXACT_FLOAT, floats_as_text

_LISTS = ("texts", "numbers")

_COMMA = 44


class Found(NamedTuple):
    """What stands in a column: one entry for each row, or for each element."""

    tags: NDArray[np.uint8]
    values: NDArray[np.int64]
    begins: NDArray[np.int32]
    stops: NDArray[np.int32]

    def at(self, key: Any) -> Found:
        """Return the entries that an index gives."""
        return Found(self.tags[key], self.values[key], self.begins[key], self.stops[key])


class PlainJson:
    """Reads the wanted columns of plain rows.

    Args:
        columns: The wanted columns, none of kind ``pairs``; their paths are keys, dots and all.
        spans: Keys of which only the place of the value is wanted.
    """

    def __init__(self, columns: Sequence[Column], spans: Sequence[str] = ()) -> None:
        self.columns = tuple(columns)
        keys = [name.encode() for name in (*(column.path for column in columns), *spans)]
        self._names = np.frombuffer(b"".join(keys), np.uint8)
        self._borders = np.cumsum([0, *map(len, keys)]).astype(np.int64)
        is_list = np.array([*(column.kind in _LISTS for column in columns), *(False for _ in spans)], bool)
        self._kinds = np.where(is_list, kernel.LIST, kernel.SCALAR).astype(np.uint8)
        self._kinds[len(self.columns) :] = kernel.SPAN
        self._slots = np.where(is_list, np.cumsum(is_list), np.cumsum(~is_list)).astype(np.int64) - 1
        self._lists = int(is_list.sum())
        self._scalars = len(keys) - self._lists
        self._spans = len(spans)

    def read(
        self, data: bytes | memoryview, starts: NDArray[Any], ends: NDArray[Any]
    ) -> tuple[list[pa.Array], NDArray[np.bool_], Found]:
        """Read rows that are valid UTF-8.

        Args:
            data: The block.
            starts: Where each row begins, [n].
            ends: Where each row ends, [n].

        Returns:
            An array for each column, with the plain rows only; bool [n], which they are; and where the
            values of ``spans`` stand in the plain rows, [spans, plain rows].
        """
        view = np.frombuffer(data, np.uint8)
        scalars, lists, borders, known, plain = self._run(view, starts, ends)
        scalars.tags[:, ~plain] = kernel.NULL
        arrays = []
        for column, slot in zip(self.columns, self._slots, strict=False):
            if column.kind in _LISTS:
                found = lists.at(slot).at(slice(borders[slot, -1]))
                arrays.append(_list_array(view, found, borders[slot], known[slot], column))
            else:
                arrays.append(values_of(view, scalars.at(slot), as_text=column.kind == "text"))
        if not plain.all():
            kept = pa.array(plain)
            arrays = [array.filter(kept) for array in arrays]
        return arrays, plain, scalars.at((slice(self._scalars - self._spans, None), plain))

    def _run(
        self, view: NDArray[np.uint8], starts: NDArray[Any], ends: NDArray[Any]
    ) -> tuple[Found, Found, NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        count = len(starts)
        room = int(np.count_nonzero(view == _COMMA)) + count if self._lists else 0
        scalars = room_for(self._scalars, count)
        scalars.tags.fill(kernel.NULL)
        lists = room_for(self._lists, room)
        borders = np.empty((self._lists, count + 1), np.int64)
        known = np.zeros((self._lists, count), bool)
        plain = np.empty(count, bool)
        wanted = (self._names, self._borders, self._kinds, self._slots)
        kernel.read_plain_rows(view, starts, ends, *wanted, *scalars, *lists, borders, known, plain)
        return scalars, lists, borders, known, plain


def room_for(*shape: int) -> Found:
    """Return arrays of a shape, not filled."""
    return Found(
        np.empty(shape, np.uint8),
        np.empty(shape, np.int64),
        np.empty(shape, np.int32),
        np.empty(shape, np.int32),
    )


def values_of(view: NDArray[np.uint8], found: Found, *, as_text: bool) -> pa.Array:
    """Return int64 where all values are integers, else string; or double where all are numbers, if wanted."""
    there = found.tags != kernel.NULL
    integers = found.tags == kernel.INTEGER
    absent = None if there.all() else ~there
    if np.array_equal(there, integers):
        return pa.array(found.values, mask=absent)
    numbers = found.tags == kernel.NUMBER
    if not numbers.any():
        return _texts(strings_of(view, found, there & ~integers), found, integers, absent)
    floats = _floats(view, found, numbers)
    exact = not (np.abs(found.values[integers]) >= EXACT_FLOAT).any()
    if not as_text and exact and np.array_equal(there, integers | numbers):
        return pa.array(np.where(integers, found.values, floats), mask=absent)
    texts = strings_of(view, found, there & ~integers & ~numbers)
    texts = pc.if_else(pa.array(numbers), floats_as_text(pa.array(floats)), texts)
    return _texts(texts, found, integers, absent)


def _texts(
    texts: pa.Array, found: Found, integers: NDArray[np.bool_], absent: NDArray[np.bool_] | None
) -> pa.Array:
    """Return texts with the decimals of integers among them, and nulls."""
    if integers.any():
        decimals = pa.array(np.where(integers, found.values, 0)).cast(pa.string())
        texts = pc.if_else(pa.array(integers), decimals, texts)
    return texts if absent is None else pc.if_else(pa.array(absent), pa.scalar(None, pa.string()), texts)


def _floats(view: NDArray[np.uint8], found: Found, numbers: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the values of the numbers, 0 elsewhere."""
    values = np.zeros(len(found.tags))
    chosen = found.at(numbers)
    values[numbers] = strings_of(view, chosen, np.ones(len(chosen.tags), bool)).cast(pa.float64()).to_numpy()
    return values


def strings_of(view: NDArray[np.uint8], found: Found, chosen: NDArray[np.bool_]) -> pa.Array:
    """Return the texts of the chosen entries, empty ones elsewhere."""
    begins = np.where(chosen, found.begins, 0).astype(np.int64)
    stops = np.where(chosen, found.stops, 0).astype(np.int64)
    offsets = np.zeros(len(begins) + 1, np.int32)
    np.cumsum(stops - begins, out=offsets[1:])
    data = np.empty(offsets[-1], np.uint8)
    copy_ranges(view, begins, stops, offsets, data)
    return pa.StringArray.from_buffers(len(begins), pa.py_buffer(offsets), pa.py_buffer(data))


def _list_array(
    view: NDArray[np.uint8],
    found: Found,
    borders: NDArray[np.int64],
    known: NDArray[np.bool_],
    column: Column,
) -> pa.Array:
    offsets = pa.array(borders.astype(np.int32))
    return pa.ListArray.from_arrays(
        offsets,
        values_of(view, found, as_text=column.kind == "texts"),
        mask=pa.array(~known) if not known.all() else None,
    )
