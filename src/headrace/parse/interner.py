"""Codes for values in order of first sight, in memory that grows with the different values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import ALL_VALID, Texts, large_strings, numbers_of, texts_of, validity
from headrace.kernels import interning, lookup
from headrace.kernels.hashing import LONGEST_INTEGER
from headrace.parse.lists import cut_texts
from headrace.scratch import IN_MEMORY, Scratch

_FIRST_SLOTS = 1 << 10
_FIRST_ARENA = 1 << 12
_FULL = 0.6
"""Share of slots that may be taken."""
_GROWTH = 4
_FIRST_MEMO = 1 << 8
_LARGEST_MEMO = 1 << 13
"""Values that the memo holds: 256 KiB, a part of a core's own cache."""
_GIVEN, _INTEGERS, _TEXTS, _USED = range(4)


class Interner:
    """Gives each different id text a code 0, 1, 2, ...; the decimal text of an integer is that integer."""

    def __init__(self, slots: int = _FIRST_SLOTS, scratch: Scratch = IN_MEMORY) -> None:
        self._scratch = scratch
        self._state = np.zeros(4, np.int64)
        self._integers = np.full(slots, lookup.FREE, np.int64)
        self._integer_codes = np.empty(slots, np.int32)
        self._texts = np.zeros(slots, np.int64)
        self._starts = np.empty(slots, np.int64)
        self._lengths = np.empty(slots, np.int32)
        self._arena = np.empty(_FIRST_ARENA, np.uint8)
        self._pending = np.empty(interning.PENDING, np.int64)
        self._text = np.empty(LONGEST_INTEGER, np.uint8)
        self._memo = np.zeros(interning.MEMO_WORDS * min(slots, _FIRST_MEMO), np.uint64)

    def __len__(self) -> int:
        return int(self._state[_GIVEN])

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
            row = interning.intern_texts(
                texts.data,
                texts.begins,
                texts.ends,
                texts.valid,
                codes,
                row,
                self._pending,
                self._state,
                self._limits,
                *self._table,
            )
            if row == len(codes):
                return codes
            self._make_room(int(texts.ends[row] - texts.begins[row]))

    def lists(self, texts: Texts, separator: str) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return the codes of the elements of lists that are written as text.

        Args:
            texts: One list each; an empty or invalid one has no element.
            separator: What stands between two elements.

        Returns:
            ``(offsets int64 [n + 1], codes uint32)``.
        """
        pattern = separator.encode()
        if len(pattern) == 1:
            return self._lists(texts, np.uint8(pattern[0]))
        offsets, elements = cut_texts(texts, separator)
        return offsets, self.texts(elements)

    def _lists(self, texts: Texts, separator: np.uint8) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Cut and look up in one pass."""
        most = int((texts.ends - texts.begins).sum()) + len(texts)
        offsets, codes = np.zeros(len(texts) + 1, np.int64), np.empty(most, np.uint32)
        cursor = np.array([0, -1, 0])
        while True:
            row = interning.intern_lists(
                texts.data,
                texts.begins,
                texts.ends,
                texts.valid,
                separator,
                offsets,
                codes,
                cursor,
                self._pending,
                self._state,
                self._limits,
                *self._table,
            )
            if row == len(texts):
                return offsets, codes[: offsets[-1]].copy()
            self._make_room(int(texts.ends[row] - texts.begins[row]))

    def integers(
        self, values: NDArray[np.integer[Any]], valid: NDArray[np.bool_] = ALL_VALID
    ) -> NDArray[np.uint32]:
        """Return the code of each int64 or uint64, uint32 [n]."""
        codes = np.empty(len(values), np.uint32)
        row = 0
        while True:
            row = interning.intern_integers(
                values,
                valid,
                codes,
                row,
                self._pending,
                self._text,
                self._state,
                self._limits,
                *self._table,
            )
            if row == len(codes):
                return codes
            self._make_room(LONGEST_INTEGER)

    def values(self) -> pa.Array:
        """Return the texts by code, large_string [len(self)]."""
        size = len(self)
        integers = self._scratch.empty(size, np.int64)
        lookup.integers_by_code(self._integers, self._integer_codes, integers)
        offsets = self._scratch.empty(size + 1, np.int64)
        lookup.text_borders(size, integers, self._lengths, offsets)
        data = self._scratch.empty(int(offsets[-1]), np.uint8)
        lookup.copy_texts(size, integers, self._starts, self._lengths, self._arena, offsets, data)
        return large_strings(data, offsets)

    @property
    def _table(self) -> tuple[NDArray[Any], ...]:
        return (
            self._memo,
            self._integers,
            self._integer_codes,
            self._texts,
            self._starts,
            self._lengths,
            self._arena,
        )

    @property
    def _limits(self) -> NDArray[np.int64]:
        return np.array([int(_FULL * len(self._integers)), int(_FULL * len(self._texts))], np.int64)

    def _make_room(self, text_bytes: int) -> None:
        """Enlarge whatever is full."""
        limits = self._limits
        if len(self._memo) < interning.MEMO_WORDS * _LARGEST_MEMO:
            self._memo = np.zeros(
                min(_GROWTH * len(self._memo), interning.MEMO_WORDS * _LARGEST_MEMO), np.uint64
            )
        if self._state[_USED] + text_bytes > len(self._arena):
            self._arena = self._scratch.longer(
                self._arena, max(2 * len(self._arena), int(self._state[_USED]) + text_bytes)
            )
        if len(self) == len(self._starts):
            self._starts = self._scratch.longer(self._starts, 2 * len(self._starts))
            self._lengths = self._scratch.longer(self._lengths, len(self._starts))
        if self._state[_INTEGERS] >= limits[0]:
            old, old_codes = self._integers, self._integer_codes
            self._integers = self._scratch.full(_GROWTH * len(old), lookup.FREE, np.int64)
            self._integer_codes = self._scratch.empty(_GROWTH * len(old), np.int32)
            lookup.move_integers(old, old_codes, self._integers, self._integer_codes)
        if self._state[_TEXTS] >= limits[1]:
            self._texts = self._scratch.zeros(_GROWTH * len(self._texts), np.int64)
            lookup.move_texts(len(self), self._starts, self._lengths, self._arena, self._texts)
