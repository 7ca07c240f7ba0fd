"""Which lines of JSON need a closer look than a fast parser gives them.

Nothing is parsed here. A line is flagged where it is surely no object, and where it
may hold what fast parsers wrongly accept: ``NaN``, ``Infinity``, very deep nesting.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.compile import inline, kernel
from headrace.kernels.lines import Records, next_of

NOT_AN_OBJECT = 16
"""The line does not begin with ``{`` and end with ``}``; a flag beside those of ``lines``."""
NEEDS_EXACT = 32
"""The line may hold what fast parsers wrongly accept."""

_SHORT_LINE = 512
_WORD = 8
_SPACE, _TAB = 32, 9
_QUOTE, _BACKSLASH = 34, 92
_COMMA, _MINUS, _COLON = 44, 45, 58
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = 91, 93, 123, 125
_LETTER_N, _LETTER_I = 78, 73


@inline
def _looks_like_a_value(data, start, i):  # type: ignore[no-untyped-def]
    """Return whether the word at ``i`` stands where a JSON value may begin."""
    i -= 1
    while i > start and (data[i] == _SPACE or data[i] == _TAB or data[i] == _MINUS):
        i -= 1
    return data[i] == _COLON or data[i] == _COMMA or data[i] == _OPEN_LIST


@inline
def _has_constant(data, words, start, end):  # type: ignore[no-untyped-def]
    """Return whether ``NaN`` or ``Inf`` stands in ``[start, end)`` where a value may begin."""
    i = start
    while True:
        i = next_of(data, words, i, end, _LETTER_N, _LETTER_I, _LETTER_I)
        if i + 2 >= end:
            return False
        nan = data[i] == _LETTER_N and data[i + 1] == 97 and data[i + 2] == _LETTER_N
        infinity = data[i] == _LETTER_I and data[i + 1] == 110 and data[i + 2] == 102
        if (nan or infinity) and _looks_like_a_value(data, start, i):
            return True
        i += 1


@inline
def _openings(data, start, end):  # type: ignore[no-untyped-def]
    """Return how many ``[`` and ``{`` stand in ``[start, end)``, strings included."""
    count = 0
    for i in range(start, end):
        count += (data[i] | np.uint8(32)) == np.uint8(_OPEN_OBJECT)  # [ and { differ in this bit
    return count


@kernel
def _check_objects(data, words, starts, ends, most_openings, flags):  # type: ignore[no-untyped-def]
    """Add the flags of each line."""
    for row in range(starts.size):
        start = starts[row]
        end = ends[row]
        while start < end and (data[start] == _SPACE or data[start] == _TAB):
            start += 1
        while end > start and (data[end - 1] == _SPACE or data[end - 1] == _TAB):
            end -= 1
        if end - start < 2 or data[start] != _OPEN_OBJECT or data[end - 1] != _CLOSE_OBJECT:
            flags[row] |= NOT_AN_OBJECT
        elif _has_constant(data, words, start, end) or (
            end - start > _SHORT_LINE and _openings(data, start, end) > most_openings
        ):
            flags[row] |= NEEDS_EXACT


def check_objects(data: bytes, records: Records, most_openings: int) -> NDArray[np.uint8]:
    """Flag the lines that must not go to a fast JSON parser unseen.

    Args:
        data: The bytes in which ``records`` were found.
        records: From ``scan_records`` without quotes.
        most_openings: Lines of more than 512 bytes with more ``[`` and ``{`` are flagged, since they may
            be nested deeply; shorter lines can be nested 256 deep at most.

    Returns:
        uint8 ``[R]``, the records' flags with ``NOT_AN_OBJECT`` and ``NEEDS_EXACT`` added.
    """
    array = np.frombuffer(data, np.uint8)
    words = np.frombuffer(data, np.uint64, count=array.size // _WORD)
    flags = records.flags.copy()
    _check_objects(array, words, records.starts, records.ends, most_openings, flags)
    return flags


@kernel
def _nesting(data):  # type: ignore[no-untyped-def]
    """Return the largest number of open brackets, those in strings left out."""
    depth = 0
    deepest = 0
    quoted = False
    i = 0
    while i < data.size:
        byte = data[i]
        if quoted:
            if byte == _BACKSLASH:
                i += 1
            elif byte == _QUOTE:
                quoted = False
        elif byte == _QUOTE:
            quoted = True
        elif byte in (_OPEN_LIST, _OPEN_OBJECT):
            depth += 1
            deepest = max(deepest, depth)
        elif byte in (_CLOSE_LIST, _CLOSE_OBJECT):
            depth -= 1
        i += 1
    return deepest


def nesting_depth(data: bytes) -> int:
    """Return how many ``[`` and ``{`` of a JSON text are open at once at most, strings left out."""
    return int(_nesting(np.frombuffer(data, np.uint8)))
