"""Hashes and decimal integers over bytes.

``xxh64`` is XXH64 (Y. Collet, https://github.com/Cyan4973/xxHash, specification
of the 64-bit variant), seed 0 unless given: the ``xxhash`` package gives the
same numbers, so that a hashed feature can be worked out anywhere.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import bare_inline, kernel

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)

MAXIMUM_DIGITS = 18
"""Integers of at most this many digits are their own keys; longer ones are text."""
DECIMAL_LIMIT = 10**MAXIMUM_DIGITS
LONGEST_INTEGER = 20
"""Characters of the longest 64-bit integer, its sign included."""


@bare_inline
def _rotate(value, bits):  # type: ignore[no-untyped-def]
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@bare_inline
def _load32(data, place):  # type: ignore[no-untyped-def]
    return (
        np.uint64(data[place])
        | np.uint64(data[place + 1]) << np.uint64(8)
        | np.uint64(data[place + 2]) << np.uint64(16)
        | np.uint64(data[place + 3]) << np.uint64(24)
    )


@bare_inline
def _load64(data, place):  # type: ignore[no-untyped-def]
    return _load32(data, place) | _load32(data, place + 4) << np.uint64(32)


@bare_inline
def _round(accumulator, word):  # type: ignore[no-untyped-def]
    return _rotate(accumulator + word * _P2, 31) * _P1


@bare_inline
def _merge(hashed, accumulator):  # type: ignore[no-untyped-def]
    return (hashed ^ _round(np.uint64(0), accumulator)) * _P1 + _P4


@bare_inline
def _stripes(data, start, end, seed):  # type: ignore[no-untyped-def]
    v1 = seed + _P1 + _P2
    v2 = seed + _P2
    v3 = seed
    v4 = seed - _P1
    place = start
    while place + 32 <= end:
        v1 = _round(v1, _load64(data, place))
        v2 = _round(v2, _load64(data, place + 8))
        v3 = _round(v3, _load64(data, place + 16))
        v4 = _round(v4, _load64(data, place + 24))
        place += 32
    hashed = _rotate(v1, 1) + _rotate(v2, 7) + _rotate(v3, 12) + _rotate(v4, 18)
    return _merge(_merge(_merge(_merge(hashed, v1), v2), v3), v4), place


@bare_inline
def xxh64(data, start, end, seed):  # type: ignore[no-untyped-def]
    """Return XXH64 of the bytes ``data[start:end]`` as uint64."""
    seed = np.uint64(seed)
    place = start
    hashed = seed + _P5
    if end - start >= 32:
        hashed, place = _stripes(data, start, end, seed)
    hashed += np.uint64(end - start)
    while place + 8 <= end:
        hashed = _rotate(hashed ^ _round(np.uint64(0), _load64(data, place)), 27) * _P1 + _P4
        place += 8
    if place + 4 <= end:
        hashed = _rotate(hashed ^ (_load32(data, place) * _P1), 23) * _P2 + _P3
        place += 4
    while place < end:
        hashed = _rotate(hashed ^ (np.uint64(data[place]) * _P5), 11) * _P1
        place += 1
    hashed = (hashed ^ (hashed >> np.uint64(33))) * _P2
    hashed = (hashed ^ (hashed >> np.uint64(29))) * _P3
    return hashed ^ (hashed >> np.uint64(32))


@bare_inline
def decimal_value(data, start, end):  # type: ignore[no-untyped-def]
    """Read ``data[start:end]`` as a decimal integer in its one canonical form.

    Returns:
        ``(True, value)`` for text such as ``0``, ``17`` or ``-3`` of at most 18
        digits; ``(False, 0)`` for all else, ``007``, ``+1`` and ``-0`` among it.
    """
    first = start
    negative = end - start > 1 and data[start] == 45
    if negative:
        first += 1
    digits = end - first
    if digits < 1 or digits > MAXIMUM_DIGITS:
        return False, np.int64(0)
    if data[first] == 48 and (digits > 1 or negative):
        return False, np.int64(0)
    value = np.int64(0)
    for place in range(first, end):
        digit = np.int64(data[place]) - 48
        if digit < 0 or digit > 9:
            return False, np.int64(0)
        value = value * 10 + digit
    return True, -value if negative else value


@bare_inline
def write_decimal(value, out, start):  # type: ignore[no-untyped-def]
    """Write an int64 or uint64 in decimal from ``out[start]`` on; return the place after the last digit."""
    place = start
    rest = np.uint64(value)
    if value < 0:
        out[place] = 45
        place += 1
        rest = np.uint64(0) - rest
    digits = 1
    power = np.uint64(10)
    while digits < LONGEST_INTEGER and rest >= power:
        digits += 1
        power *= np.uint64(10)
        if digits == LONGEST_INTEGER:
            break
    for back in range(digits):
        out[place + digits - 1 - back] = np.uint8(48 + rest % np.uint64(10))
        rest //= np.uint64(10)
    return place + digits


@kernel
def hash_texts(data, starts, ends, seed, hashes):  # type: ignore[no-untyped-def]
    """Hash each text ``data[starts[i]:ends[i]]`` into ``hashes`` (uint64 [n])."""
    for row in range(len(starts)):
        hashes[row] = xxh64(data, starts[row], ends[row], seed)


@kernel
def write_decimals(values, data, offsets):  # type: ignore[no-untyped-def]
    """Write integers as text: bytes into ``data``, borders into ``offsets`` (int64 [n + 1])."""
    place = 0
    offsets[0] = 0
    for row in range(len(values)):
        place = write_decimal(values[row], data, place)
        offsets[row + 1] = place
