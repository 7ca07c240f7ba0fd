"""Codes for values in order of first sight: fills the tables of ``kernels.lookup``.

A few values make up most of a column. A memo in front of the table, small enough for
the processor's nearest caches, keeps the codes of values met lately: a text of at most
16 bytes is two words, which are compared without a look at what they spell.

    memo    uint64 [4 * 2 ** bits]   in each slot the two words, the length (of an
                                     integer ``_WHOLE``; 0: free), and the code

Where a table is larger than the caches, a look-up waits for memory: what the memo does
not hold is looked up ``AHEAD`` at a time, its slots asked for first.

The kernels stop where a table is full and return how far they came:
``parse.interner.Interner`` makes room and calls again.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import bare_inline, bare_kernel
from headrace.kernels.hashing import DECIMAL_LIMIT, decimal_value, write_decimal, xxh64
from headrace.kernels.lookup import (
    NULL_CODE,
    find_integer,
    find_text,
    integer_slot,
    is_valid,
    text_entry,
)
from headrace.kernels.memory import prefetch
from headrace.kernels.words import (
    WORD,
    address_of,
    byte_at,
    equal_bytes,
    first_bit,
    first_bytes,
    part_of_word,
    put_word,
    spread,
    word_at,
)

AHEAD = 32
"""Values that the memo does not hold are looked up so many at a time, their slots asked for first."""
_NOTED = 6
PENDING = AHEAD * _NOTED
MEMO_WORDS = 4
"""Words of a slot of the memo."""
_SLOT_BYTES = np.uint64(8 * MEMO_WORDS)
_ZERO = np.uint64(0)
_WHOLE = np.uint64(64)
_LONGEST_SHORT = 2 * WORD
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@bare_inline
def _add_integer(value, slot, state, integers, integer_codes, lengths):  # type: ignore[no-untyped-def]
    code = state[0]
    integers[slot] = value
    integer_codes[slot] = code
    lengths[code] = -1
    state[0] += 1
    state[1] += 1
    return code


@bare_inline
def _add_text(data, start, end, hashed, slot, state, texts, starts, lengths, arena):  # type: ignore[no-untyped-def]
    code = state[0]
    texts[slot] = text_entry(hashed, code)
    starts[code] = state[3]
    lengths[code] = end - start
    for place in range(end - start):
        arena[state[3] + place] = data[start + place]
    state[0] += 1
    state[2] += 1
    state[3] += end - start
    return code


@bare_inline
def _memo_place(low, high, slots):  # type: ignore[no-untyped-def]
    """Return where the slot of two words lies, in bytes behind the memo's first one."""
    mixed = (low ^ (high << np.uint64(7)) ^ (high >> np.uint64(57))) * _GOLDEN
    return ((mixed >> np.uint64(32)) & (slots - np.uint64(1))) * _SLOT_BYTES


@bare_inline
def _remembered(low, high, tag, place, memo):  # type: ignore[no-untyped-def]
    """Return the code that a slot of the memo holds for these words, or -1."""
    same = word_at(memo, place) == low
    same &= word_at(memo, place + np.uint64(8)) == high
    same &= word_at(memo, place + np.uint64(16)) == tag
    return np.int64(word_at(memo, place + np.uint64(24))) if same else np.int64(-1)


@bare_inline
def _remember(low, high, tag, code, place, memo):  # type: ignore[no-untyped-def]
    put_word(memo, place, low)
    put_word(memo, place + np.uint64(8), high)
    put_word(memo, place + np.uint64(16), tag)
    put_word(memo, place + np.uint64(24), np.uint64(code))


@bare_inline
def _low_word(address, size, start, length):  # type: ignore[no-untyped-def]
    """Return the first word of a text of 1 to 16 bytes."""
    if length >= WORD:
        return word_at(address, start)
    if start + WORD <= size:
        return first_bytes(word_at(address, start), length)
    return part_of_word(address, start, length)


@bare_inline
def _high_word(address, start, length):  # type: ignore[no-untyped-def]
    """Return the last word of a text of 9 to 16 bytes, 0 for a shorter one."""
    return word_at(address, start + length - WORD) if length > WORD else np.uint64(0)


@bare_inline
def _recalled(address, size, start, length, memory, slots):  # type: ignore[no-untyped-def]
    """Return the code of a text from the memo, or -1."""
    code = np.int64(-1)
    if length > 0 and length <= _LONGEST_SHORT:
        low, high = _low_word(address, size, start, length), _high_word(address, start, length)
        code = _remembered(low, high, np.uint64(length), _memo_place(low, high, slots), memory)
    return code


@bare_inline
def _ask(data, start, length, number, row, index, pending, integers, integer_codes, texts):  # type: ignore[no-untyped-def]
    """Note a text that the memo does not hold, as number ``number`` of those, and ask for its slot."""
    at = number * _NOTED
    whole, value = decimal_value(data, start, start + length)
    if whole:
        _ask_for_integer(value, integers, integer_codes)
    else:
        value = np.int64(xxh64(data, start, start + length, 0))
        prefetch(address_of(texts) + (np.uint64(value) & np.uint64(len(texts) - 1)) * np.uint64(8))
    pending[at] = row
    pending[at + 1] = index
    pending[at + 2] = start
    pending[at + 3] = length
    pending[at + 4] = whole
    pending[at + 5] = value


@bare_inline
def _ask_for_integer(value, integers, integer_codes):  # type: ignore[no-untyped-def]
    slot = np.uint64(integer_slot(value, integers))
    prefetch(address_of(integers) + slot * np.uint64(8))
    prefetch(address_of(integer_codes) + slot * np.uint64(4))


@bare_inline
def _answer(  # type: ignore[no-untyped-def]
    data, number, pending, state, limits, memo, integers, integer_codes, texts, starts, lengths, arena
):
    """Return the code of a noted text, which is added where it is new; -1 where there is no room for it."""
    at = number * _NOTED
    start, length, whole, value = pending[at + 2], pending[at + 3], pending[at + 4], pending[at + 5]
    if whole:
        code = _code_of_integer(value, state, limits, integers, integer_codes, starts, lengths)
    else:
        code = _code_of_text(
            data, start, length, np.uint64(value), state, limits, texts, starts, lengths, arena
        )
    if code >= 0 and length > 0 and length <= _LONGEST_SHORT:
        address = address_of(data)
        low, high = _low_word(address, len(data), start, length), _high_word(address, start, length)
        slots = np.uint64(len(memo) // MEMO_WORDS)
        _remember(low, high, np.uint64(length), code, _memo_place(low, high, slots), address_of(memo))
    return code


@bare_inline
def _code_of_text(data, start, length, hashed, state, limits, texts, starts, lengths, arena):  # type: ignore[no-untyped-def]
    code, slot = find_text(data, start, start + length, hashed, texts, starts, lengths, arena)
    if code < 0:
        full = state[0] >= len(starts) or state[2] >= limits[1]
        if not full and state[3] + length <= len(arena):
            code = _add_text(data, start, start + length, hashed, slot, state, texts, starts, lengths, arena)
    return code


@bare_inline
def _code_of_integer(value, state, limits, integers, integer_codes, starts, lengths):  # type: ignore[no-untyped-def]
    """Return the code of an integer of at most 18 digits, as ``_answer`` does."""
    code, slot = find_integer(value, integers, integer_codes)
    if code < 0 and state[0] < len(starts) and state[1] < limits[0]:
        code = _add_integer(value, slot, state, integers, integer_codes, lengths)
    return code


@bare_kernel
def intern_texts(  # type: ignore[no-untyped-def]
    data,
    begins,
    ends,
    valid,
    codes,
    row,
    pending,
    state,
    limits,
    memo,
    integers,
    integer_codes,
    texts,
    starts,
    lengths,
    arena,
):
    """Give each text its code, adding those not seen before.

    Args:
        data: uint8, the bytes that ``begins`` and ``ends`` (int [n]) point into.
        begins: Where each text begins.
        ends: Where each text ends.
        valid: bool [n], or empty: every text counts. A text that does not gets ``NULL_CODE``.
        codes: uint32 [n], filled from ``row`` on.
        row: Where to begin.
        pending: int64 [PENDING], room to work in.
        state: int64 [4], changed here: codes given, integers, texts, and bytes of the arena used so far.
        limits: int64 [2]: most integers and most texts that their slots may hold.
        memo: See the module; likewise the arrays that follow.

    Returns:
        The row that there was no room for, or n.
    """
    address, size = address_of(data), len(data)
    memory, slots = address_of(memo), np.uint64(len(memo) // MEMO_WORDS)
    while row < len(begins):
        count = 0
        while row < len(begins) and count < AHEAD:
            code = np.int64(NULL_CODE)
            if is_valid(valid, row):
                start = np.int64(begins[row])
                length = np.int64(ends[row]) - start
                code = _recalled(address, size, start, length, memory, slots)
                if code < 0:
                    _ask(data, start, length, count, row, row, pending, integers, integer_codes, texts)
                    count += 1
            codes[row] = code
            row += 1
        for number in range(count):
            code = _answer(
                data,
                number,
                pending,
                state,
                limits,
                memo,
                integers,
                integer_codes,
                texts,
                starts,
                lengths,
                arena,
            )
            if code < 0:
                return pending[number * _NOTED]
            codes[pending[number * _NOTED + 1]] = code
    return row


@bare_inline
def _element_length(address, size, start, end, separator):  # type: ignore[no-untyped-def]
    """Return the bytes before the next separator, or before ``end``."""
    wide = spread(separator)
    place = start
    found = np.uint64(0)
    while place < end and place + WORD <= size:
        found = equal_bytes(word_at(address, place), wide)
        if found:
            break
        place += WORD
    if found:
        return min(place + (first_bit(found) >> 3), end) - start
    while place < end and byte_at(address, place) != separator:
        place += 1
    return min(place, end) - start


@bare_kernel
def intern_lists(  # type: ignore[no-untyped-def]
    data,
    begins,
    ends,
    valid,
    separator,
    offsets,
    codes,
    cursor,
    pending,
    state,
    limits,
    memo,
    integers,
    integer_codes,
    texts,
    starts,
    lengths,
    arena,
):
    """Give each element of texts that are lists its code.

    Args:
        separator: uint8, the byte between two elements.
        offsets: int64 [n + 1], filled as by ``fields.count_elements``.
        codes: uint32, room for every element.
        cursor: int64 [3], where to begin, and where to go on: the row, the element's place in ``data`` or
            -1 at the row's beginning, and how many elements came before.

    The other arguments are those of ``intern_texts``.

    Returns:
        The row that there was no room for, or n.
    """
    address, size = address_of(data), len(data)
    memory, slots = address_of(memo), np.uint64(len(memo) // MEMO_WORDS)
    row, place, total = cursor[0], cursor[1], cursor[2]
    while row < len(begins):
        count = 0
        while row < len(begins) and count < AHEAD:
            end = np.int64(ends[row])
            there = place >= 0 or (begins[row] < end and is_valid(valid, row))
            if there:
                place = place if place >= 0 else np.int64(begins[row])
                length = _element_length(address, size, place, end, separator)
                code = _recalled(address, size, place, length, memory, slots)
                if code < 0:
                    _ask(data, place, length, count, row, total, pending, integers, integer_codes, texts)
                    count += 1
                codes[total] = code
                total += 1
                place += length + 1
            if not there or place > end:
                row += 1
                offsets[row] = total
                place = np.int64(-1)
        for number in range(count):
            code = _answer(
                data,
                number,
                pending,
                state,
                limits,
                memo,
                integers,
                integer_codes,
                texts,
                starts,
                lengths,
                arena,
            )
            at = number * _NOTED
            if code < 0:
                cursor[0] = pending[at]
                cursor[1] = pending[at + 2]
                cursor[2] = pending[at + 1]
                return pending[at]
            codes[pending[at + 1]] = code
    return row


@bare_kernel
def intern_integers(  # type: ignore[no-untyped-def]
    values,
    valid,
    codes,
    row,
    pending,
    text,
    state,
    limits,
    memo,
    integers,
    integer_codes,
    texts,
    starts,
    lengths,
    arena,
):
    """Give each int64 or uint64 its code; arguments and result as in ``intern_texts``.

    Args:
        text: uint8 [LONGEST_INTEGER], room to work in.
    """
    memory, slots = address_of(memo), np.uint64(len(memo) // MEMO_WORDS)
    while row < len(values):
        count = 0
        while row < len(values) and count < AHEAD:
            code = np.int64(NULL_CODE)
            if is_valid(valid, row):
                low = np.uint64(values[row])
                code = np.int64(-1)
                if values[row] < DECIMAL_LIMIT and values[row] > -DECIMAL_LIMIT:
                    code = _remembered(low, _ZERO, _WHOLE, _memo_place(low, _ZERO, slots), memory)
                    _ask_for_integer(np.int64(values[row]), integers, integer_codes)
                if code < 0:
                    pending[count] = row
                    count += 1
            codes[row] = code
            row += 1
        for number in range(count):
            at = np.int64(pending[number])
            value = values[at]
            if value < DECIMAL_LIMIT and value > -DECIMAL_LIMIT:
                low = np.uint64(value)
                whole = np.int64(value)
                code = _code_of_integer(whole, state, limits, integers, integer_codes, starts, lengths)
                if code >= 0:
                    _remember(low, _ZERO, _WHOLE, code, _memo_place(low, _ZERO, slots), memory)
            else:
                length = write_decimal(value, text, 0)
                hashed = xxh64(text, 0, length, 0)
                code = _code_of_text(text, 0, length, hashed, state, limits, texts, starts, lengths, arena)
            if code < 0:
                return at
            codes[at] = code
    return row
