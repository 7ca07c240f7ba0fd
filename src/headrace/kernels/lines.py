r"""Where records begin and end in raw bytes.

A record ends at ``\n``, ``\r\n`` or a lone ``\r``; in CSV not inside a quoted
field. A quote opens a field only where the field begins, as in RFC 4180::

    id,text           bytes:   1 , " a \n b " \n 2 , c \n
    1,"a              start:   0                9
    b"                end:               8          12
    2,c               line:    0 (spans two)    2

Bytes are looked at eight at a time (the "has a zero byte" test of S. E. Anderson,
Bit Twiddling Hacks): only words that hold a wanted byte are looked at one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.compile import inline, kernel

KEEP_BLANK = 0
"""Every line is a record."""
SKIP_EMPTY = 1
"""A line without any byte is not a record (CSV)."""
SKIP_BLANK = 2
"""A line of spaces and tabs is not a record (JSON Lines)."""

MALFORMED_QUOTE = 1
"""Bytes stand between a closing quote and the next delimiter."""
UNCLOSED_QUOTE = 2
"""A quote is never closed, or not within the limit; the record is its first line only."""
SPANS_LINES = 4
"""The record holds line ends, inside quotes."""
CUT_OFF = 8
"""The stream broke off inside the record."""

_NEWLINE = 10
_RETURN = 13
_SPACE = 32
_TAB = 9
_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_WORD = 8
_NO_BYTE = -1


class Records(NamedTuple):
    """The records of a piece of a stream; positions are relative to the piece."""

    starts: NDArray[np.int32]
    """int32 ``[R]``, first byte of each record."""
    ends: NDArray[np.int32]
    """int32 ``[R]``, one past the last byte, the line end left out."""
    lines: NDArray[np.int32]
    """int32 ``[R]``, line ends of the piece before the record."""
    flags: NDArray[np.uint8]
    """uint8 ``[R]``, sum of the constants above; 0 is an ordinary record."""
    consumed: int
    """Bytes that belong to whole records and the blank lines between them."""
    line_count: int
    """Line ends within the consumed bytes."""


@inline
def _spread(byte):  # type: ignore[no-untyped-def]
    """Return a word that holds ``byte`` eight times."""
    return np.uint64(byte) * _ONES


@inline
def _has(word, spread):  # type: ignore[no-untyped-def]
    """Return nonzero where one of the word's bytes equals the spread byte."""
    different = word ^ spread
    return (different - _ONES) & ~different & _HIGH


@inline
def next_of(data, words, i, size, a, b, c):  # type: ignore[no-untyped-def]
    """Return the first place in ``[i, size)`` that holds ``a``, ``b`` or ``c``; ``size`` where none does."""
    wide_a = _spread(a)
    wide_b = _spread(b)
    wide_c = _spread(c)
    word_end = min((size + _WORD - 1) >> 3, words.size)
    while i < size:
        if i & (_WORD - 1) == 0:
            word = i >> 3
            while word < word_end and (
                _has(words[word], wide_a) | _has(words[word], wide_b) | _has(words[word], wide_c)
            ) == np.uint64(0):
                word += 1
            i = word << 3
            if i >= size:
                return size
        byte = data[i]
        if byte in (a, b, c):
            return i
        i += 1
    return size


@inline
def _after_break(data, i, size):  # type: ignore[no-untyped-def]
    """Return the place behind the line end at ``i``."""
    if data[i] == _RETURN and i + 1 < size and data[i + 1] == _NEWLINE:
        return i + 2
    return i + 1


@inline
def _is_blank(data, start, end):  # type: ignore[no-untyped-def]
    """Return whether only spaces and tabs stand in ``[start, end)``."""
    for i in range(start, end):
        if data[i] != _SPACE and data[i] != _TAB:
            return False
    return True


@kernel
def _close_quote(data, words, start, i, size, quote, final, limit, first_break):  # type: ignore[no-untyped-def]
    """Scan a quoted field from behind its opening quote at ``i``.

    Returns:
        (place behind the closing quote; -1 incomplete; -2 never closed), line ends inside, first line end.
    """
    breaks = 0
    while True:
        i = next_of(data, words, i, size, _NEWLINE, _RETURN, quote)
        if not final and i >= size - 1 and (i >= size or data[i] != _NEWLINE):
            beyond = i >= size and first_break >= 0 and i - start >= limit
            return (-2 if beyond else -1), breaks, first_break
        if i < size and data[i] != quote and first_break < 0:
            first_break = i
        if i >= size or (first_break >= 0 and i - start >= limit):
            return -2, breaks, first_break
        if data[i] != quote:
            i = _after_break(data, i, size)
            breaks += 1
        elif i + 1 < size and data[i + 1] == quote:
            i += 2
        else:
            return i + 1, breaks, first_break


@kernel
def _find_end(data, words, start, size, delimiter, quote, final, limit):  # type: ignore[no-untyped-def]
    """Return (end of the record or -1 where it is incomplete, line ends inside, flag)."""
    i = start
    breaks = 0
    first_break = -1
    flag = 0
    third = quote if quote >= 0 else _NEWLINE
    while True:
        i = next_of(data, words, i, size, _NEWLINE, _RETURN, third)
        if i >= size or (data[i] == _RETURN and i + 1 >= size):
            return (i if final else -1), breaks, flag
        if data[i] == _NEWLINE or data[i] == _RETURN:
            return i, breaks, flag
        i += 1
        if i - 1 > start and data[i - 2] != delimiter:
            continue
        i, inside, first_break = _close_quote(data, words, start, i, size, quote, final, limit, first_break)
        breaks += inside
        if i == -1:
            return -1, breaks, flag
        if i == -2:
            return (first_break if first_break >= 0 else size), 0, UNCLOSED_QUOTE
        if inside > 0:
            flag |= SPANS_LINES
        if i < size and data[i] != delimiter and data[i] != _NEWLINE and data[i] != _RETURN:
            flag |= MALFORMED_QUOTE


@kernel
def _scan(  # type: ignore[no-untyped-def]
    data, words, size, delimiter, quote, final, skip, limit, starts, ends, lines, flags
):
    """Fill the four arrays; return (records, consumed, line ends)."""
    start = 0
    line = 0
    count = 0
    while start < size:
        end, breaks, flag = _find_end(data, words, start, size, delimiter, quote, final, limit)
        if end < 0:
            break
        skipped = (skip == SKIP_EMPTY and end == start) or (
            skip == SKIP_BLANK and _is_blank(data, start, end)
        )
        if not skipped:
            starts[count] = start
            ends[count] = end
            lines[count] = line
            flags[count] = flag
            count += 1
        line += breaks
        start = end
        if end < size:
            start = _after_break(data, end, size)
            line += 1
    return count, start, line


@kernel
def _count_breaks(data):  # type: ignore[no-untyped-def]
    r"""Return how many bytes are ``\n`` or ``\r``."""
    count = 0
    for i in range(data.size):
        count += (data[i] == _NEWLINE) | (data[i] == _RETURN)
    return count


def scan_records(
    data: bytes,
    *,
    delimiter: int = ord(","),
    quote: int = _NO_BYTE,
    skip: int = SKIP_EMPTY,
    final: bool = True,
    limit: int = 1 << 24,
) -> Records:
    """Find the records of ``data``, which begins at a record's first byte.

    Args:
        data: UTF-8 bytes, or any encoding that keeps ASCII; fewer than 2**31.
        delimiter: The byte between fields; only looked at where quotes are on.
        quote: The byte that quotes a field, or -1 for none.
        skip: ``KEEP_BLANK``, ``SKIP_EMPTY`` or ``SKIP_BLANK``.
        final: The stream ends with ``data``; otherwise an unfinished record is left unconsumed.
        limit: A record with line ends inside quotes that is still quoted after this many bytes
            counts as one whose quote is never closed.
    """
    array = np.frombuffer(data, np.uint8)
    words = np.frombuffer(data, np.uint64, count=array.size // _WORD)
    room = _count_breaks(array) + 1
    starts, ends, lines = np.empty((3, room), np.int32)
    flags = np.empty(room, np.uint8)
    count, consumed, line_count = _scan(
        array, words, array.size, delimiter, quote, final, skip, limit, starts, ends, lines, flags
    )
    return Records(starts[:count], ends[:count], lines[:count], flags[:count], int(consumed), int(line_count))


@kernel
def _lines_with(data, words, starts, ends, byte, found):  # type: ignore[no-untyped-def]
    for row in range(starts.size):
        found[row] = next_of(data, words, starts[row], ends[row], byte, byte, byte) < ends[row]


def lines_with(data: bytes, records: Records, byte: int) -> NDArray[np.bool_]:
    """Return bool ``[R]``: which records hold ``byte``."""
    array = np.frombuffer(data, np.uint8)
    words = np.frombuffer(data, np.uint64, count=array.size // _WORD)
    found = np.empty(records.starts.size, np.bool_)
    _lines_with(array, words, records.starts, records.ends, byte, found)
    return found


@kernel
def _gather_lines(data, starts, ends, rows, gap, offsets, out):  # type: ignore[no-untyped-def]
    place = 0
    for k in range(rows.size):
        row = rows[k]
        offsets[k] = place
        for i in range(starts[row], ends[row]):
            out[place] = data[i]
            place += 1
        for _ in range(gap):
            out[place] = _NEWLINE
            place += 1
    offsets[rows.size] = place


def gather_lines(
    data: bytes, records: Records, rows: NDArray[np.int64], *, newline: bool
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    r"""Copy chosen records next to one another.

    Args:
        data: The bytes in which ``records`` were found.
        records: Where each record begins and ends.
        rows: int64 ``[K]``, the records to copy, in this order.
        newline: End each with ``\n``.

    Returns:
        Offsets int32 ``[K + 1]`` and bytes uint8 ``[offsets[K]]``.
    """
    lengths = records.ends[rows].astype(np.int64) - records.starts[rows]
    out = np.empty(int(lengths.sum()) + (rows.size if newline else 0), np.uint8)
    offsets = np.empty(rows.size + 1, np.int32)
    _gather_lines(
        np.frombuffer(data, np.uint8), records.starts, records.ends, rows, int(newline), offsets, out
    )
    return offsets, out
