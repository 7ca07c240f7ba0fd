"""Objects of plain keys and plain values, such as ``{"1001": 0.7, "2302": 0.1}``, read in one pass.

An object is plain when no key has an escape or stands twice, every value is a plain
scalar (see ``json_plain``), and it has at most 64 pairs; everything else is left to a
JSON library.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import inline, kernel
from headrace.kernels.json_plain import at, plain_string, plain_value, skip_blanks

_MOST_PAIRS = 64
_OPEN, _CLOSE, _COLON, _COMMA, _QUOTE = 123, 125, 58, 44, 34
_FAILED = np.int64(-1)


@inline
def _is_repeated(data, begins, stops, first, last):  # type: ignore[no-untyped-def]
    """Return whether the key number ``last`` equals one of those from ``first`` on."""
    length = stops[last] - begins[last]
    for other in range(first, last):
        if stops[other] - begins[other] == length:
            same = True
            for i in range(length):
                same = same and at(data, begins[other] + i) == at(data, begins[last] + i)
            if same:
                return True
    return False


@kernel
def _read_object(  # type: ignore[no-untyped-def]
    data, place, end, key_begins, key_stops, tags, values, begins, stops, first
):
    """Read one object that stands in ``[place, end)``; return how many pairs are known now, or -1."""
    count = first
    if at(data, place) != _OPEN:
        return _FAILED
    place = skip_blanks(data, place + 1, end)
    if place < end and at(data, place) == _CLOSE:
        return np.int64(count) if place + 1 == end else _FAILED
    while place < end and at(data, place) == _QUOTE and count - first < _MOST_PAIRS:
        close = plain_string(data, place + 1, end)
        if close < 0:
            return _FAILED
        key_begins[count] = place + 1
        key_stops[count] = close
        place = skip_blanks(data, close + 1, end)
        if place >= end or at(data, place) != _COLON:
            return _FAILED
        place = skip_blanks(data, place + 1, end)
        if place >= end or _is_repeated(data, key_begins, key_stops, first, count):
            return _FAILED
        place, tag, value, begin, stop = plain_value(data, place, end)
        if place < 0:
            return _FAILED
        tags[count], values[count], begins[count], stops[count] = tag, value, begin, stop
        count += 1
        place = skip_blanks(data, place, end)
        if place < end and at(data, place) == _CLOSE:
            return np.int64(count) if place + 1 == end else _FAILED
        if place >= end or at(data, place) != _COMMA:
            return _FAILED
        place = skip_blanks(data, place + 1, end)
    return _FAILED


@kernel
def read_plain_pairs(  # type: ignore[no-untyped-def]
    data, starts, ends, key_begins, key_stops, tags, values, begins, stops, borders, plain
):
    """Read the objects of many rows.

    Args:
        data: uint8, the block.
        starts: Where each object begins; int [n]; equal to its end where there is none.
        ends: Where each object ends.
        key_begins: int32 [room], where each key begins; ``key_stops`` likewise.
        tags: uint8 [room]; ``values`` int64, ``begins`` and ``stops`` int32 likewise, as in ``json_plain``.
        borders: int64 [n + 1], where the pairs of each row begin.
        plain: bool [n]: the object was read, or there is none.
    """
    used = np.int64(0)
    for row in range(len(starts)):
        borders[row] = used
        plain[row] = True
        if starts[row] < ends[row]:
            count = _read_object(
                data,
                np.int64(starts[row]),
                np.int64(ends[row]),
                key_begins,
                key_stops,
                tags,
                values,
                begins,
                stops,
                used,
            )
            plain[row] = count >= 0
            used = max(used, count)
    borders[len(starts)] = used
