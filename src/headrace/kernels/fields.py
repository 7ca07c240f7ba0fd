"""Texts cut into elements, and texts that are numbers."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import inline, kernel
from headrace.kernels.words import address_of, copy_bytes

NUMBER = 0
"""Digits, perhaps with a sign, a point and an exponent."""
INTEGER = 1
"""Digits, perhaps with a minus, at most 18 of them: its value is in ``values``."""
UNUSUAL = 2
"""A plus, surrounding blanks, or a long integer: to be judged by a library."""
NOT_FINITE = 3
"""NaN or infinity in one of their usual spellings."""
NO_NUMBER = 4
"""Anything else."""
_MOST_DIGITS = 18
_NAN, _INF, _INFINITY = (np.frombuffer(word, np.uint8) for word in (b"nan", b"inf", b"infinity"))


@inline
def _matches(data, place, end, separator):  # type: ignore[no-untyped-def]
    if place + len(separator) > end:
        return False
    for offset in range(len(separator)):
        if data[place + offset] != separator[offset]:
            return False
    return True


@kernel
def count_elements(data, begins, ends, valid, separator, offsets):  # type: ignore[no-untyped-def]
    """Write the borders of each text's elements into ``offsets`` (int64 [n + 1]).

    An empty or invalid text has no element; another has one more than separators.
    """
    total = np.int64(0)
    offsets[0] = 0
    for row in range(len(begins)):
        start, end = np.int64(begins[row]), np.int64(ends[row])
        if end > start and (len(valid) == 0 or valid[row]):
            total += 1
            place = start
            while place < end:
                if _matches(data, place, end, separator):
                    total += 1
                    place += len(separator)
                else:
                    place += 1
        offsets[row + 1] = total


@kernel
def cut_elements(data, begins, ends, separator, offsets, element_begins, element_ends):  # type: ignore[no-untyped-def]
    """Write where each element begins and ends (int64), in the order of ``count_elements``."""
    for row in range(len(begins)):
        at = offsets[row]
        if offsets[row + 1] == at:
            continue
        place, end = np.int64(begins[row]), np.int64(ends[row])
        element_begins[at] = place
        while place < end:
            if _matches(data, place, end, separator):
                element_ends[at] = place
                at += 1
                place += len(separator)
                element_begins[at] = place
            else:
                place += 1
        element_ends[at] = end


@kernel
def last_separators(data, begins, ends, separator, places):  # type: ignore[no-untyped-def]
    """Write where the last separator of each element begins (int64 [n]), -1 where there is none."""
    for at in range(len(begins)):
        places[at] = -1
        for place in range(ends[at] - len(separator), begins[at] - 1, -1):
            if _matches(data, place, ends[at], separator):
                places[at] = place
                break


@inline
def _lower(byte):  # type: ignore[no-untyped-def]
    return byte | 32 if 65 <= byte <= 90 else byte


@inline
def _is_word(data, start, end, word):  # type: ignore[no-untyped-def]
    if end - start != len(word):
        return False
    for place in range(len(word)):
        if _lower(data[start + place]) != word[place]:
            return False
    return True


@inline
def _is_not_finite(data, start, end):  # type: ignore[no-untyped-def]
    if start < end and (data[start] == 43 or data[start] == 45):
        start += 1
    return (
        _is_word(data, start, end, _NAN)
        or _is_word(data, start, end, _INF)
        or _is_word(data, start, end, _INFINITY)
    )


@inline
def _is_blank(byte):  # type: ignore[no-untyped-def]
    return byte == 32 or byte == 9


@inline
def _digits(data, place, end):  # type: ignore[no-untyped-def]
    while place < end and 48 <= data[place] <= 57:
        place += 1
    return place


@inline
def _number_kind(data, start, end):  # type: ignore[no-untyped-def]
    """Return ``(kind, value)``; the value of an INTEGER, 0 for other kinds."""
    unusual = False
    while start < end and _is_blank(data[start]):
        start += 1
        unusual = True
    while end > start and _is_blank(data[end - 1]):
        end -= 1
        unusual = True
    if _is_not_finite(data, start, end):
        return NOT_FINITE, np.int64(0)
    place = start
    if place < end and (data[place] == 43 or data[place] == 45):
        unusual = unusual or data[place] == 43
        place += 1
    first = place
    place = _digits(data, place, end)
    whole = place - first
    fraction = 0
    if place < end and data[place] == 46:
        after = _digits(data, place + 1, end)
        fraction = after - place
        place = after
    if whole + fraction <= (1 if fraction else 0):
        return NO_NUMBER, np.int64(0)
    exponent = place < end and (data[place] == 101 or data[place] == 69)
    if exponent:
        place += 1
        if place < end and (data[place] == 43 or data[place] == 45):
            place += 1
        after = _digits(data, place, end)
        if after == place:
            return NO_NUMBER, np.int64(0)
        place = after
    if place != end:
        return NO_NUMBER, np.int64(0)
    if unusual or (fraction == 0 and not exponent and whole > _MOST_DIGITS):
        return UNUSUAL, np.int64(0)
    if fraction or exponent:
        return NUMBER, np.int64(0)
    value = np.int64(0)
    for at in range(first, end):
        value = value * 10 + (np.int64(data[at]) - 48)
    return INTEGER, -value if data[start] == 45 else value


@kernel
def number_kinds(data, begins, ends, valid, kinds, values):  # type: ignore[no-untyped-def]
    """Judge each text as a number: its kind into ``kinds`` (uint8 [n]), integers into ``values`` (int64 [n]).

    A text that is not valid is an INTEGER of value 0.
    """
    for row in range(len(begins)):
        if len(valid) and not valid[row]:
            kinds[row] = INTEGER
            values[row] = 0
        else:
            kind, value = _number_kind(data, np.int64(begins[row]), np.int64(ends[row]))
            kinds[row] = kind
            values[row] = value


@kernel
def mark_whole_floats(data, begins, ends, found):  # type: ignore[no-untyped-def]
    """Write which texts are integers with ``.0`` behind them, as ``-7.00``, into ``found`` (bool [n])."""
    for row in range(len(begins)):
        start, end = np.int64(begins[row]), np.int64(ends[row])
        place = end
        while place > start and data[place - 1] == 48:
            place -= 1
        found[row] = place < end and place > start and data[place - 1] == 46
        if found[row]:
            first = start + (data[start] == 45)
            found[row] = first < place - 1 and _digits(data, first, place - 1) == place - 1


@kernel
def copy_ranges(data, begins, ends, offsets, out):  # type: ignore[no-untyped-def]
    """Copy each text into ``out`` (uint8) from ``offsets[i]`` on."""
    source, target = address_of(data), address_of(out)
    for at in range(len(begins)):
        begin, length = np.uint64(begins[at]), np.int64(ends[at]) - np.int64(begins[at])
        copy_bytes(target + np.uint64(offsets[at]), source + begin, length)
