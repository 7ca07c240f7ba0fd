"""The operations of a gather: what becomes of each column.

One row of integers for each:

    operation   [kind, source, target, address row, width, side, wide offsets, output, size, stride,
                 record, place]

    SCALAR      values, ``stride`` bytes apart -> [B]; ``place`` bytes behind those of address row ``record``
    BITS        validity bitmap, LSB first    -> bool [B]
    VECTOR      float32 [n, D]                -> [B, D]
    PADDED      offsets, values, weights      -> [B, L], mask bool [B, L], lengths int32 [B], [B, L]
    JAGGED      offsets, values, weights      -> [sum], -, lengths int32 [B], [sum]
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import inline

SCALAR, BITS, VECTOR, PADDED, JAGGED = range(5)
KIND, SOURCE, TARGET, TABLE, WIDTH, SIDE, WIDE, SLOT, SIZE, STRIDE, RECORD, PLACE = range(12)
OPERATION_FIELDS = 12
LEFT, RIGHT = 0, 1
GOOD, BAD_OFFSETS, TOO_LARGE = range(3)

UINT8, UINT16, UINT32, UINT64, INT32, INT64, FLOAT32 = range(7)
CODES = {
    np.dtype(np.uint8): UINT8,
    np.dtype(np.uint16): UINT16,
    np.dtype(np.uint32): UINT32,
    np.dtype(np.uint64): UINT64,
    np.dtype(np.int32): INT32,
    np.dtype(np.int64): INT64,
    np.dtype(np.float32): FLOAT32,
}

U1 = np.empty(0, np.uint8)
U2 = np.empty(0, np.uint16)
U4 = np.empty(0, np.uint32)
U8 = np.empty(0, np.uint64)
I4 = np.empty(0, np.int32)
I8 = np.empty(0, np.int64)
F4 = np.empty(0, np.float32)

LINE = 64
"""Bytes of a cache line."""

_LARGEST_INT32 = np.uint64(0x7FFFFFFF)
_LARGEST_INT64 = np.uint64(0x7FFFFFFFFFFFFFFF)


@inline
def item_bytes(code):  # type: ignore[no-untyped-def]
    """Return the bytes of one element."""
    if code <= UINT64:
        return np.int64(1) << code
    return np.int64(8 if code == INT64 else 4)


@inline
def is_beyond(value, target):  # type: ignore[no-untyped-def]
    """Say whether an id, or a union of ids, has bits that the target cannot hold."""
    return np.uint64(value) > (_LARGEST_INT32 if target == INT32 else _LARGEST_INT64)


@inline
def row_at(address, row, stride):  # type: ignore[no-untyped-def]
    """Return where the value of a row is, ``stride`` bytes from one to the next."""
    return address + np.uint64(row * stride)
