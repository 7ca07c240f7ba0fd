"""Hash tables from texts and integers to codes 0, 1, 2, ...

A table is plain arrays, so that it can lie in memory or in a file map:

    integers        int64 [2 ** bits]   the integer in each slot, ``FREE`` where there is none
    integer_codes   int32 [2 ** bits]   its code
    texts           int64 [2 ** bits]   high half: of the XXH64 of the text in each slot; low half: its
                                        code plus one, 0 where there is none
    starts          int64 [capacity]    by code: where its text begins in ``arena``
    lengths         int32 [capacity]    by code: bytes of its text
    arena           uint8 [bytes]       the texts, one after the other

A text that is a canonical decimal integer of at most 18 digits *is* that
integer: ``1001`` as text, as int64 and as uint64 are one entry, and the most
common ids need no text, no hash of bytes and no comparison of bytes. Open
addressing with linear probing.

``kernels.interning`` fills tables.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import bare_inline, bare_kernel, kernel
from headrace.kernels.hashing import DECIMAL_LIMIT, LONGEST_INTEGER, decimal_value, write_decimal, xxh64

NULL_CODE = 0xFFFFFFFF
"""The code of a missing element."""
FREE = np.iinfo(np.int64).min
"""Marks a slot without an integer; integers of at most 18 digits are never this."""
_NULL = np.uint32(NULL_CODE)
_FREE = np.int64(FREE)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(0xFFFFFFFF00000000)
_LOW = np.uint64(0xFFFFFFFF)


@bare_inline
def integer_slot(value, slots):  # type: ignore[no-untyped-def]
    """Return the slot at which the search for an integer begins."""
    mixed = np.uint64(value) * _GOLDEN
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(len(slots) - 1))


@bare_inline
def find_integer(value, integers, integer_codes):  # type: ignore[no-untyped-def]
    """Return ``(code, slot)`` of an integer of at most 18 digits; code -1 and the free slot if absent."""
    slot = integer_slot(value, integers)
    while True:
        found = integers[slot]
        if found == value:
            return np.int64(integer_codes[slot]), slot
        if found == _FREE:
            return np.int64(-1), slot
        slot = (slot + 1) & (len(integers) - 1)


@bare_inline
def _same_text(data, start, length, arena, other):  # type: ignore[no-untyped-def]
    for place in range(length):
        if data[start + place] != arena[other + place]:
            return False
    return True


@bare_inline
def find_text(data, start, end, hashed, texts, starts, lengths, arena):  # type: ignore[no-untyped-def]
    """Return ``(code, slot)`` of a text that is no canonical integer; code -1 and the free slot if absent."""
    slot = np.int64(hashed & np.uint64(len(texts) - 1))
    length = end - start
    while True:
        entry = np.uint64(texts[slot])
        if entry == 0:
            return np.int64(-1), slot
        if (entry & _HIGH) == (hashed & _HIGH):
            code = np.int64(entry & _LOW) - 1
            if lengths[code] == length and _same_text(data, start, length, arena, starts[code]):
                return code, slot
        slot = (slot + 1) & (len(texts) - 1)


@bare_inline
def text_entry(hashed, code):  # type: ignore[no-untyped-def]
    """Return what a slot holds of a text with this hash and code."""
    return np.int64((hashed & _HIGH) | np.uint64(code + 1))


@bare_inline
def is_valid(valid, row):  # type: ignore[no-untyped-def]
    """Return whether a row counts; without ``valid`` every one does."""
    return len(valid) == 0 or valid[row]


@bare_kernel
def find_texts(data, begins, ends, valid, codes, integers, integer_codes, texts, starts, lengths, arena):  # type: ignore[no-untyped-def]
    """Write the code of each text into ``codes`` (int64 [n]): -1 where absent, -2 where not valid."""
    for at in range(len(begins)):
        if not is_valid(valid, at):
            codes[at] = -2
            continue
        start = np.int64(begins[at])
        end = np.int64(ends[at])
        whole, value = decimal_value(data, start, end)
        if whole:
            codes[at], _ = find_integer(value, integers, integer_codes)
        else:
            hashed = xxh64(data, start, end, 0)
            codes[at], _ = find_text(data, start, end, hashed, texts, starts, lengths, arena)


@kernel
def find_integers(values, valid, codes, integers, integer_codes, texts, starts, lengths, arena):  # type: ignore[no-untyped-def]
    """Write the code of each int64 or uint64 into ``codes``, as ``find_texts`` does."""
    text = np.empty(LONGEST_INTEGER, np.uint8)
    for at in range(len(values)):
        if not is_valid(valid, at):
            codes[at] = -2
            continue
        value = values[at]
        if value < DECIMAL_LIMIT and value > -DECIMAL_LIMIT:
            codes[at], _ = find_integer(np.int64(value), integers, integer_codes)
        else:
            length = write_decimal(value, text, 0)
            hashed = xxh64(text, 0, length, 0)
            codes[at], _ = find_text(text, 0, length, hashed, texts, starts, lengths, arena)


@bare_kernel
def count_integers(data, begins, ends):  # type: ignore[no-untyped-def]
    """Return how many of the texts are canonical integers."""
    count = 0
    for at in range(len(begins)):
        whole, _ = decimal_value(data, np.int64(begins[at]), np.int64(ends[at]))
        count += whole
    return count


@bare_kernel
def index_texts(data, begins, ends, integers, integer_codes, texts):  # type: ignore[no-untyped-def]
    """Put different texts into empty slots; the code of a text is its place."""
    for at in range(len(begins)):
        start = np.int64(begins[at])
        end = np.int64(ends[at])
        whole, value = decimal_value(data, start, end)
        if whole:
            _, slot = find_integer(value, integers, integer_codes)
            integers[slot] = value
            integer_codes[slot] = at
        else:
            _put_text(xxh64(data, start, end, 0), at, texts)


@bare_inline
def _put_text(hashed, code, texts):  # type: ignore[no-untyped-def]
    slot = np.int64(hashed & np.uint64(len(texts) - 1))
    while texts[slot] != 0:
        slot = (slot + 1) & (len(texts) - 1)
    texts[slot] = text_entry(hashed, code)


@bare_kernel
def move_integers(old, old_codes, integers, integer_codes):  # type: ignore[no-untyped-def]
    """Move the integers of a full table into larger, empty slots."""
    for place in range(len(old)):
        if old[place] != _FREE:
            _, slot = find_integer(old[place], integers, integer_codes)
            integers[slot] = old[place]
            integer_codes[slot] = old_codes[place]


@bare_kernel
def move_texts(size, starts, lengths, arena, texts):  # type: ignore[no-untyped-def]
    """Put the texts of a table into larger, empty slots."""
    for code in range(size):
        if lengths[code] >= 0:
            _put_text(xxh64(arena, starts[code], starts[code] + lengths[code], 0), code, texts)


@bare_kernel
def integers_by_code(integers, integer_codes, values):  # type: ignore[no-untyped-def]
    """Write each integer of a table into ``values`` (int64) at its code."""
    for slot in range(len(integers)):
        if integers[slot] != _FREE:
            values[integer_codes[slot]] = integers[slot]


@kernel
def text_borders(size, values, lengths, offsets):  # type: ignore[no-untyped-def]
    """Write the borders of the entries' texts into ``offsets`` (int64 [size + 1]); integers in decimal."""
    text = np.empty(LONGEST_INTEGER, np.uint8)
    place = np.int64(0)
    offsets[0] = 0
    for code in range(size):
        place += lengths[code] if lengths[code] >= 0 else write_decimal(values[code], text, 0)
        offsets[code + 1] = place


@bare_kernel
def copy_texts(size, values, starts, lengths, arena, offsets, data):  # type: ignore[no-untyped-def]
    """Write the entries' texts into ``data`` at ``offsets``."""
    for code in range(size):
        if lengths[code] < 0:
            write_decimal(values[code], data, offsets[code])
        else:
            for place in range(lengths[code]):
                data[offsets[code] + place] = arena[starts[code] + place]


@bare_kernel
def slots_are_sound(integers, integer_codes, texts, size):  # type: ignore[no-untyped-def]
    """Return whether slots hold ``size`` entries, codes below ``size``, and free slots to end a probe."""
    whole = 0
    for slot in range(len(integers)):
        if integers[slot] != _FREE:
            whole += 1
            if integer_codes[slot] < 0 or integer_codes[slot] >= size:
                return False
    written = 0
    for slot in range(len(texts)):
        if texts[slot] != 0:
            written += 1
            code = np.int64(np.uint64(texts[slot]) & _LOW) - 1
            if code < 0 or code >= size:
                return False
    return whole + written == size and 2 * whole <= len(integers) and 2 * written <= len(texts)
