"""Hash tables from texts and integers to codes 0, 1, 2, ...

A table is five plain arrays, so that it can lie in memory or in a file map:

    slots    int32  [2 ** bits]   code in each slot, -1 where it is free
    keys     int64  [capacity]    by code: the integer itself, or the XXH64 of the text
    starts   int64  [capacity]    by code: where its text begins in ``arena``; -1: ``keys`` is the integer
    lengths  int32  [capacity]    by code: bytes of its text
    arena    uint8  [bytes]       the texts, one after the other

A text that is a canonical decimal integer of at most 18 digits *is* that
integer: ``1001`` as text, as int64 and as uint64 are one entry, and the most
common ids need no text, no hash of bytes and no comparison of bytes. Open
addressing with linear probing; at most half of the slots are used.

The filling kernels stop where a table is full and return how far they came:
``fit.interner.Interner`` makes room and calls again.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import inline, kernel
from headrace.kernels.hashing import DECIMAL_LIMIT, LONGEST_INTEGER, decimal_value, write_decimal, xxh64

NULL_CODE = 0xFFFFFFFF
"""The code of a missing element."""
_NULL = np.uint32(NULL_CODE)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_INTEGER = np.int64(-1)


@inline
def _first_slot(key, slots):  # type: ignore[no-untyped-def]
    mixed = (np.uint64(key) ^ (np.uint64(key) >> np.uint64(32))) * _GOLDEN
    return np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(len(slots) - 1))


@inline
def _same_text(data, start, length, arena, other):  # type: ignore[no-untyped-def]
    for place in range(length):
        if data[start + place] != arena[other + place]:
            return False
    return True


@inline
def find_integer(value, slots, keys, starts):  # type: ignore[no-untyped-def]
    """Return ``(code, slot)`` of an integer of at most 18 digits; code -1 and the free slot if absent."""
    slot = _first_slot(value, slots)
    while True:
        code = slots[slot]
        if code < 0 or (keys[code] == value and starts[code] == _INTEGER):
            return np.int64(code), slot
        slot = (slot + 1) & (len(slots) - 1)


@inline
def find_text(data, start, end, key, slots, keys, starts, lengths, arena):  # type: ignore[no-untyped-def]
    """Return ``(code, slot)`` of a text that is no canonical integer; code -1 and the free slot if absent."""
    slot = _first_slot(key, slots)
    length = end - start
    while True:
        code = slots[slot]
        if code < 0:
            return np.int64(-1), slot
        if keys[code] == key and starts[code] != _INTEGER and lengths[code] == length:  # noqa: SIM102
            if _same_text(data, start, length, arena, starts[code]):
                return np.int64(code), slot
        slot = (slot + 1) & (len(slots) - 1)


@inline
def _is_valid(valid, row):  # type: ignore[no-untyped-def]
    return len(valid) == 0 or valid[row]


@kernel
def intern_texts(data, begins, ends, valid, codes, row, size, used, slots, keys, starts, lengths, arena):  # type: ignore[no-untyped-def]
    """Give each text its code, adding those not seen before.

    Args:
        data: uint8, the bytes that ``begins`` and ``ends`` (int [n]) point into.
        begins: Where each text begins.
        ends: Where each text ends.
        valid: bool [n], or empty: every text counts. A text that does not gets ``NULL_CODE``.
        codes: uint32 [n], filled from ``row`` on.
        row: Where to begin.
        size: Codes given so far.
        used: Bytes of the arena used so far.
        slots: See the module; likewise ``keys``, ``starts``, ``lengths``, ``arena``.

    Returns:
        ``(row, size, used)``; ``row < n`` when there was no room for the text at ``row``.
    """
    for at in range(row, len(begins)):
        if not _is_valid(valid, at):
            codes[at] = _NULL
            continue
        start = np.int64(begins[at])
        end = np.int64(ends[at])
        whole, key = decimal_value(data, start, end)
        if whole:
            code, slot = find_integer(key, slots, keys, starts)
        else:
            key = np.int64(xxh64(data, start, end, 0))
            code, slot = find_text(data, start, end, key, slots, keys, starts, lengths, arena)
        if code < 0:
            if size >= len(keys) or (not whole and used + end - start > len(arena)):
                return at, size, used
            code = size
            slots[slot] = code
            keys[code] = key
            starts[code] = _INTEGER
            lengths[code] = 0
            if not whole:
                starts[code] = used
                lengths[code] = end - start
                for place in range(end - start):
                    arena[used + place] = data[start + place]
                used += end - start
            size += 1
        codes[at] = code
    return len(begins), size, used


@kernel
def intern_integers(values, valid, codes, row, size, used, slots, keys, starts, lengths, arena):  # type: ignore[no-untyped-def]
    """Give each int64 or uint64 its code; arguments and result as in ``intern_texts``."""
    text = np.empty(LONGEST_INTEGER, np.uint8)
    for at in range(row, len(values)):
        if not _is_valid(valid, at):
            codes[at] = _NULL
            continue
        value = values[at]
        whole = value < DECIMAL_LIMIT and value > -DECIMAL_LIMIT
        length = 0
        key = np.int64(value)
        if whole:
            code, slot = find_integer(key, slots, keys, starts)
        else:
            length = write_decimal(value, text, 0)
            key = np.int64(xxh64(text, 0, length, 0))
            code, slot = find_text(text, 0, length, key, slots, keys, starts, lengths, arena)
        if code < 0:
            if size >= len(keys) or used + length > len(arena):
                return at, size, used
            code = size
            slots[slot] = code
            keys[code] = key
            starts[code] = _INTEGER if whole else used
            lengths[code] = length
            for place in range(length):
                arena[used + place] = text[place]
            used += length
            size += 1
        codes[at] = code
    return len(values), size, used


@kernel
def find_texts(data, begins, ends, valid, codes, slots, keys, starts, lengths, arena):  # type: ignore[no-untyped-def]
    """Write the code of each text into ``codes`` (int64 [n]): -1 where absent, -2 where not valid."""
    for at in range(len(begins)):
        if not _is_valid(valid, at):
            codes[at] = -2
            continue
        start = np.int64(begins[at])
        end = np.int64(ends[at])
        whole, key = decimal_value(data, start, end)
        if whole:
            codes[at], _ = find_integer(key, slots, keys, starts)
        else:
            key = np.int64(xxh64(data, start, end, 0))
            codes[at], _ = find_text(data, start, end, key, slots, keys, starts, lengths, arena)


@kernel
def find_integers(values, valid, codes, slots, keys, starts, lengths, arena):  # type: ignore[no-untyped-def]
    """Write the code of each int64 or uint64 into ``codes``, as ``find_texts`` does."""
    text = np.empty(LONGEST_INTEGER, np.uint8)
    for at in range(len(values)):
        if not _is_valid(valid, at):
            codes[at] = -2
            continue
        value = values[at]
        if value < DECIMAL_LIMIT and value > -DECIMAL_LIMIT:
            codes[at], _ = find_integer(np.int64(value), slots, keys, starts)
        else:
            length = write_decimal(value, text, 0)
            key = np.int64(xxh64(text, 0, length, 0))
            codes[at], _ = find_text(text, 0, length, key, slots, keys, starts, lengths, arena)


@kernel
def key_texts(data, begins, ends, keys, starts):  # type: ignore[no-untyped-def]
    """Write the key and the start of each text (-1 for a canonical integer) into int64 [n] arrays."""
    for at in range(len(begins)):
        start = np.int64(begins[at])
        end = np.int64(ends[at])
        whole, key = decimal_value(data, start, end)
        keys[at] = key if whole else np.int64(xxh64(data, start, end, 0))
        starts[at] = _INTEGER if whole else start


@kernel
def fill_slots(slots, keys, size):  # type: ignore[no-untyped-def]
    """Put codes ``0 .. size`` into empty ``slots``; every key is known to be another entry."""
    for code in range(size):
        slot = _first_slot(keys[code], slots)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = code


@kernel
def text_bytes(keys, starts, lengths, size, offsets):  # type: ignore[no-untyped-def]
    """Write the borders of the entries' texts into ``offsets`` (int64 [size + 1]); integers in decimal."""
    text = np.empty(LONGEST_INTEGER, np.uint8)
    place = np.int64(0)
    offsets[0] = 0
    for code in range(size):
        if starts[code] == _INTEGER:
            place += write_decimal(keys[code], text, 0)
        else:
            place += lengths[code]
        offsets[code + 1] = place


@kernel
def copy_texts(keys, starts, lengths, arena, size, offsets, data):  # type: ignore[no-untyped-def]
    """Write the entries' texts into ``data`` at ``offsets``."""
    for code in range(size):
        if starts[code] == _INTEGER:
            write_decimal(keys[code], data, offsets[code])
        else:
            for place in range(lengths[code]):
                data[offsets[code] + place] = arena[starts[code] + place]
