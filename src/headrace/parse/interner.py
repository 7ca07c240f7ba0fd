"""Codes for values in order of first sight, in memory that grows with the different values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import ALL_VALID, Texts, large_strings, numbers_of, texts_of, validity
from headrace.kernels import lookup
from headrace.kernels.hashing import LONGEST_INTEGER

_FIRST_SLOTS = 1 << 10
_FIRST_ARENA = 1 << 12


class Interner:
    """Gives each different id text a code 0, 1, 2, ...; the decimal text of an integer is that integer."""

    def __init__(self, slots: int = _FIRST_SLOTS) -> None:
        self._size = 0
        self._used = 0
        self._slots = np.full(slots, -1, np.int32)
        self._keys = np.empty(slots // 2, np.int64)
        self._starts = np.empty(slots // 2, np.int64)
        self._lengths = np.empty(slots // 2, np.int32)
        self._arena = np.empty(_FIRST_ARENA, np.uint8)

    def __len__(self) -> int:
        return self._size

    def intern(self, array: pa.Array) -> NDArray[np.uint32]:
        """Return the code of each element, uint32 [n]; ``NULL_CODE`` where it is null.

        Args:
            array: string, large_string, binary, int64 or uint64.
        """
        if pa.types.is_integer(array.type):
            return self.integers(numbers_of(array), validity(array))
        if pa.types.is_null(array.type):
            return np.full(len(array), lookup.NULL_CODE, np.uint32)
        return self.texts(texts_of(array))

    def texts(self, texts: Texts) -> NDArray[np.uint32]:
        """Return the code of each text, uint32 [n]."""
        codes = np.empty(len(texts), np.uint32)
        row = 0
        while True:
            row, self._size, self._used = lookup.intern_texts(
                texts.data,
                texts.begins,
                texts.ends,
                texts.valid,
                codes,
                row,
                self._size,
                self._used,
                *self._table,
            )
            if row == len(codes):
                return codes
            self._make_room(int(texts.ends[row] - texts.begins[row]))

    def integers(
        self, values: NDArray[np.integer[Any]], valid: NDArray[np.bool_] = ALL_VALID
    ) -> NDArray[np.uint32]:
        """Return the code of each int64 or uint64, uint32 [n]."""
        codes = np.empty(len(values), np.uint32)
        row = 0
        while True:
            row, self._size, self._used = lookup.intern_integers(
                values, valid, codes, row, self._size, self._used, *self._table
            )
            if row == len(codes):
                return codes
            self._make_room(LONGEST_INTEGER)

    def values(self) -> pa.Array:
        """Return the texts by code, large_string [len(self)]."""
        offsets = np.empty(self._size + 1, np.int64)
        lookup.text_bytes(self._keys, self._starts, self._lengths, self._size, offsets)
        data = np.empty(offsets[-1], np.uint8)
        lookup.copy_texts(self._keys, self._starts, self._lengths, self._arena, self._size, offsets, data)
        return large_strings(data, offsets)

    @property
    def _table(self) -> tuple[NDArray[Any], ...]:
        return self._slots, self._keys, self._starts, self._lengths, self._arena

    def _make_room(self, text_bytes: int) -> None:
        if self._used + text_bytes > len(self._arena):
            self._arena = _longer(self._arena, max(2 * len(self._arena), self._used + text_bytes))
        if self._size == len(self._keys):
            room = len(self._slots)
            self._slots = np.full(2 * room, -1, np.int32)
            self._keys, self._starts, self._lengths = (
                _longer(array, room) for array in (self._keys, self._starts, self._lengths)
            )
            lookup.fill_slots(self._slots, self._keys, self._size)


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    longer = np.empty(size, array.dtype)
    longer[: len(array)] = array
    return longer
