"""Where the fields of delimited records begin and end, and wanted fields as text columns.

A field that begins with a quote ends at the quote that is not doubled, and neither is part of it::

    record   1,"a""b",x
    field    0 1       2
    mark     0 2       0
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import bare_inline, bare_kernel
from headrace.kernels.words import (
    WORD,
    address_of,
    byte_at,
    copy_bytes,
    equal_bytes,
    first_bit,
    spread,
    word_at,
)

PLAIN = 0
"""The field stands there as it is."""
QUOTED = 1
"""The field stands between quotes."""
DOUBLED = 2
"""The field stands between quotes, and each quote inside it is written twice."""


@bare_inline
def _next_of(address, size, place, end, byte):  # type: ignore[no-untyped-def]
    """Return the first place in ``[place, end)`` that holds ``byte``, or ``end``."""
    wide = spread(byte)
    found = np.uint64(0)
    while place < end and place + WORD <= size:
        found = equal_bytes(word_at(address, place), wide)
        if found:
            break
        place += WORD
    if found:
        return min(place + (first_bit(found) >> 3), end)
    while place < end and byte_at(address, place) != byte:
        place += 1
    return min(place, end)


@bare_inline
def _closing_quote(address, size, place, end, quote):  # type: ignore[no-untyped-def]
    """Return the place of the quote that closes a field, and whether quotes inside it are doubled."""
    mark = QUOTED
    place = _next_of(address, size, place, end, quote)
    while place + 1 < end and byte_at(address, place + 1) == quote:
        mark = DOUBLED
        place = _next_of(address, size, place + 2, end, quote)
    return place, mark


@bare_kernel
def split_fields(data, starts, ends, rows, delimiter, quote, wanted, begins, stops, marks, counts):  # type: ignore[no-untyped-def]
    """Find the wanted fields of records.

    Args:
        data: uint8, the bytes that ``starts`` and ``ends`` (int32) point into.
        starts: Where each record begins.
        ends: Where each record ends.
        rows: int64 [K], which records; their quotes are closed, and a delimiter follows.
        delimiter: The byte between fields.
        quote: The byte that quotes a field, or -1 for none.
        wanted: int64 [W], numbers of the wanted fields, ascending.
        begins: int32 [W, K], where each field begins; of one that is not there, nothing is written.
        stops: int32 [W, K], where it ends.
        marks: uint8 [W, K], ``PLAIN``, ``QUOTED`` or ``DOUBLED``.
        counts: int32 [K], how many fields each record has.
    """
    address, size = address_of(data), len(data)
    for at in range(len(rows)):
        place, end = np.int64(starts[rows[at]]), np.int64(ends[rows[at]])
        count = 0
        next_wanted = 0
        while place <= end:
            begin, mark = place, PLAIN
            if quote >= 0 and place < end and byte_at(address, place) == quote:
                begin += 1
                stop, mark = _closing_quote(address, size, begin, end, quote)
                place = min(stop + 1, end)
            else:
                stop = _next_of(address, size, place, end, delimiter)
                place = stop
            if next_wanted < len(wanted) and wanted[next_wanted] == count:
                begins[next_wanted, at] = begin
                stops[next_wanted, at] = stop
                marks[next_wanted, at] = mark
                next_wanted += 1
            count += 1
            place += 1
        counts[at] = count


@bare_inline
def _is_one_of(address, begin, length, texts, borders):  # type: ignore[no-untyped-def]
    """Return whether the bytes from ``begin`` on are one of the texts that ``borders`` cut."""
    for number in range(len(borders) - 1):
        if borders[number + 1] - borders[number] == length:
            same = True
            for place in range(length):
                same &= byte_at(address, begin + place) == texts[borders[number] + place]
            if same:
                return True
    return False


@bare_kernel
def mark_missing(data, begins, stops, marks, texts, borders, valid):  # type: ignore[no-untyped-def]
    """Write which fields are not missing into ``valid`` (bool [K]).

    Args:
        data: uint8, the block.
        begins: int32 [K], where each field begins.
        stops: int32 [K], where it ends.
        marks: uint8 [K]; a quoted field is never missing.
        texts: uint8, what a missing field looks like, one text after the other.
        borders: int64 [M + 1], where each of these texts begins.
        valid: bool [K].

    Returns:
        How many fields are missing.
    """
    address = address_of(data)
    missing = 0
    for at in range(len(begins)):
        length = np.int64(stops[at]) - begins[at]
        valid[at] = marks[at] != PLAIN or not _is_one_of(
            address, np.int64(begins[at]), length, texts, borders
        )
        missing += not valid[at]
    return missing


@bare_kernel
def field_borders(data, begins, stops, marks, quote, offsets):  # type: ignore[no-untyped-def]
    """Write the borders of the fields' texts, one after the other, into ``offsets`` (int32 [K + 1])."""
    address, size = address_of(data), len(data)
    total = np.int64(0)
    offsets[0] = 0
    for at in range(len(begins)):
        place, stop = np.int64(begins[at]), np.int64(stops[at])
        total += stop - place
        if marks[at] == DOUBLED:
            place = _next_of(address, size, place, stop, quote)
            while place < stop:
                total -= 1
                place = _next_of(address, size, place + 2, stop, quote)
        offsets[at + 1] = total


@bare_kernel
def copy_fields(data, begins, stops, marks, quote, offsets, out):  # type: ignore[no-untyped-def]
    """Write the fields' texts into ``out`` (uint8) at ``offsets``; of two quotes one is left."""
    source, target = address_of(data), address_of(out)
    for at in range(len(begins)):
        begin, length = np.int64(begins[at]), np.int64(offsets[at + 1]) - offsets[at]
        if marks[at] != DOUBLED:
            copy_bytes(target + np.uint64(offsets[at]), source + np.uint64(begin), length)
            continue
        place = begin
        for written in range(length):
            out[offsets[at] + written] = data[place]
            place += 2 if data[place] == quote else 1
