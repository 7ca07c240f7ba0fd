"""Bytes eight at a time: words at any place of an array, the bytes in them, and copies.

A word is a uint64 whose lowest byte is the first one (little-endian), as every machine that
Numba compiles for has it. Who calls these has checked the bounds and keeps the memory alive.

They take addresses, not arrays: an array that is handed to a helper with several ways out is
counted up and down, atomically, at each call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.compile import bare_inline, intrinsic
from headrace.kernels.native.later import cgutils, ir, types

WORD = 8
_ONES = np.uint64(0x0101010101010101)
_LOW_SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@intrinsic
def _load(typing_context, address):  # type: ignore[no-untyped-def]
    """Return the eight bytes from ``address`` (uint64) on, wherever it lies."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(types.uint64), generate


@intrinsic
def _load_byte(typing_context, address):  # type: ignore[no-untyped-def]
    """Return the byte at ``address`` (uint64)."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()))

    return types.uint8(types.uint64), generate


@intrinsic
def _store(typing_context, address, word):  # type: ignore[no-untyped-def]
    """Write eight bytes from ``address`` (uint64) on, wherever it lies."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[1], builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), generate


@intrinsic
def first_bit(typing_context, word):  # type: ignore[no-untyped-def]
    """Return the place of the lowest set bit of a word that is not 0, int64."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def copy_bytes(typing_context, target, source, count):  # type: ignore[no-untyped-def]
    """Copy ``count`` (int64) bytes from the address ``source`` to the address ``target`` (uint64)."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        to, since = (builder.inttoptr(address, pointer) for address in arguments[:2])
        cgutils.raw_memcpy(builder, to, since, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.int64), generate


@bare_inline
def address_of(array):  # type: ignore[no-untyped-def]
    """Return where the first element of an array lies, uint64."""
    return np.uint64(array.ctypes.data)


@bare_inline
def word_at(address, place):  # type: ignore[no-untyped-def]
    """Return the word of the bytes ``[place, place + 8)`` behind an address; all must be there."""
    return _load(address + np.uint64(place))


@bare_inline
def byte_at(address, place):  # type: ignore[no-untyped-def]
    """Return the byte at ``place`` behind an address, uint8."""
    return _load_byte(address + np.uint64(place))


@bare_inline
def put_word(address, place, word):  # type: ignore[no-untyped-def]
    """Write a word to the bytes ``[place, place + 8)`` behind an address."""
    _store(address + np.uint64(place), word)


@bare_inline
def part_of_word(address, place, count):  # type: ignore[no-untyped-def]
    """Return the word of the ``count`` (0 to 8) bytes from ``place`` on, zeros above them; reads no other."""
    word = np.uint64(0)
    for back in range(count - 1, -1, -1):
        word = word << np.uint64(8) | np.uint64(byte_at(address, place + back))
    return word


@bare_inline
def first_bytes(word, count):  # type: ignore[no-untyped-def]
    """Return the word with all but its first ``count`` (1 to 8) bytes set to zero."""
    return word & (_ALL >> np.uint64(64 - 8 * count))


@bare_inline
def spread(byte):  # type: ignore[no-untyped-def]
    """Return a word that holds ``byte`` eight times."""
    return np.uint64(byte) * _ONES


@bare_inline
def equal_bytes(word, spread_byte):  # type: ignore[no-untyped-def]
    """Return the word with the high bit of each byte set that equals the spread byte, and no other bit.

    The test of S. E. Anderson's Bit Twiddling Hacks that is exact for every byte.
    """
    different = word ^ spread_byte
    return ~(((different & _LOW_SEVEN) + _LOW_SEVEN) | different | _LOW_SEVEN)
