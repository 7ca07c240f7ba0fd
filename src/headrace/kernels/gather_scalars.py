"""One value a row: scalars, which may be fields of records, and validity bits."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import inline, kernel
from headrace.kernels.memory import load, prefetch, store
from headrace.kernels.operations import (
    F4,
    FLOAT32,
    I4,
    I8,
    INT32,
    INT64,
    KIND,
    LINE,
    PLACE,
    RECORD,
    SCALAR,
    SLOT,
    SOURCE,
    STRIDE,
    TABLE,
    TARGET,
    U1,
    U2,
    U4,
    U8,
    UINT8,
    UINT16,
    UINT32,
    is_beyond,
    item_bytes,
    row_at,
)

_ROWS_AT_HAND = 128
"""Rows whose records are in the first cache while all their scalars are copied; as many are on the way."""


@inline
def _plain(like, records, place, out):  # type: ignore[no-untyped-def]
    """Copy one value a row, as it is."""
    for i in range(records.size):
        store(out, i, load(records[i] + place, 0, like), like)
    return np.int64(0)


@inline
def _ids(source, target, records, place, out):  # type: ignore[no-untyped-def]
    """Copy one id a row; return the union of all."""
    union = np.int64(0)
    for i in range(records.size):
        value = np.int64(load(records[i] + place, 0, source))
        union |= value
        store(out, i, value, target)
    return union


@inline
def _ids_of_any(source, target, records, place, out):  # type: ignore[no-untyped-def]
    """Copy one id of any width a row; return the union of all."""
    if source == UINT8:
        return _ids(U1, target, records, place, out)
    if source == UINT16:
        return _ids(U2, target, records, place, out)
    if source == UINT32:
        return _ids(U4, target, records, place, out)
    return _ids(U8, target, records, place, out)


@kernel
def _fields(source, target, records, place, out):  # type: ignore[no-untyped-def]
    """Copy one field of some records, at uint64 [R] addresses; return the union of ids, 0 of others."""
    if source == FLOAT32:
        return _plain(F4, records, place, out)
    if source == INT64:
        return _plain(I8, records, place, out)
    if target == INT32:
        return _ids_of_any(source, I4, records, place, out)
    return _ids_of_any(source, I8, records, place, out)


@inline
def _first_beyond(source, target, records, place):  # type: ignore[no-untyped-def]
    """Return the first record whose id does not fit: of uint32 or uint64, as others always do."""
    for i in range(records.size):
        address = records[i] + place
        value = np.uint64(load(address, 0, U4)) if source == UINT32 else load(address, 0, U8)
        if is_beyond(value, target):
            return i
    return np.int64(0)


@inline
def lines_of(operations, first):  # type: ignore[no-untyped-def]
    """Return places in the records of operation ``first`` on whose lines all their fields begin: int64 [N].

    Wherever in a line a record begins: of fields within 64 bytes, the first and the last are enough.
    """
    fields = np.empty(operations.shape[0], np.int64)
    count = 0
    for k in range(first, operations.shape[0]):
        if operations[k, KIND] == SCALAR and operations[k, RECORD] == operations[first, TABLE]:
            i = count  # sorted as they come: code with NumPy's sort in it cannot be kept on disk
            while i > 0 and fields[i - 1] > operations[k, PLACE]:
                fields[i] = fields[i - 1]
                i -= 1
            fields[i] = operations[k, PLACE]
            count += 1
    kept = 1
    for i in range(1, count):
        if i == count - 1 or fields[i + 1] - fields[kept - 1] >= LINE:
            fields[kept] = fields[i]
            kept += 1
    return fields[:kept]


@inline
def _ask(record, lines):  # type: ignore[no-untyped-def]
    """Prefetch some lines of a record."""
    for i in range(lines.size):
        prefetch(record + np.uint64(lines[i]))


@kernel
def gather_scalars(operations, first, addresses, shard, row, out):  # type: ignore[no-untyped-def]
    """Copy the scalars that are fields of the same records as operation ``first``, the first of them.

    Returns:
        The operation and the first row whose id does not fit; -1 where all do.
    """
    table, stride = operations[first, TABLE], operations[first, STRIDE]
    lines = lines_of(operations, first)
    records = np.empty(_ROWS_AT_HAND, np.uint64)
    for start in range(0, row.size, _ROWS_AT_HAND):
        count = min(row.size - start, _ROWS_AT_HAND)
        for i in range(count):
            records[i] = row_at(addresses[table, shard[start + i]], row[start + i], stride)
            if start == 0:
                _ask(records[i], lines)
            ahead = start + i + _ROWS_AT_HAND
            if ahead < row.size:
                _ask(row_at(addresses[table, shard[ahead]], row[ahead], stride), lines)
        for k in range(first, operations.shape[0]):
            operation = operations[k]
            if operation[KIND] == SCALAR and operation[RECORD] == table:
                source, target, place = operation[SOURCE], operation[TARGET], np.uint64(operation[PLACE])
                to = out[operation[SLOT]] + np.uint64(start * item_bytes(target))
                union = _fields(source, target, records[:count], place, to)
                if is_beyond(union, target):
                    return k, start + _first_beyond(source, target, records[:count], place)
    return np.int64(0), np.int64(-1)


@kernel
def gather_bits(addresses, first_bits, shard, row, out):  # type: ignore[no-untyped-def]
    """Unpack one validity bit a row; a shard whose bitmap has no address is all valid."""
    for i in range(row.size):
        address = addresses[shard[i]]
        bit = first_bits[shard[i]] + row[i]
        byte = load(address, bit >> 3, U1) if address != 0 else np.uint8(255)
        store(out, i, byte >> (bit & 7) & 1, U1)
