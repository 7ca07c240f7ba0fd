"""A whole minibatch of rows from many memory-mapped shards, in one pass over each column.

Every shard's arrays are known by address; a row's place is (shard, row in it).
A small table of operations says what becomes of each column, so that one
compiled function serves any mix of columns:

    operation   [kind, source, target, address row, width, side, wide offsets, output, size, stride,
                 record, place]

    SCALAR      values, ``stride`` bytes apart -> [B]; ``place`` bytes behind those of address row ``record``
    BITS        validity bitmap, LSB first    -> bool [B]
    VECTOR      float32 [n, D]                -> [B, D]
    PADDED      offsets, values, weights      -> [B, L], mask bool [B, L], lengths int32 [B], [B, L]
    JAGGED      offsets, values, weights      -> [sum], -, lengths int32 [B], [sum]

What makes it fast: what is needed of rows further on is prefetched while the present one is copied,
every cache line of it. A padded row is all zeros first, and its own values are written over them:
both are vector code, and no line that is another row's alone is read, however wide the column. Scalars
that are fields of one record are copied together, some rows at a time, while their lines are at hand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.compile import brief_kernel, inline, kernel
from headrace.kernels.memory import copy_eight, load, prefetch, store

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

_U1 = np.empty(0, np.uint8)
_U2 = np.empty(0, np.uint16)
_U4 = np.empty(0, np.uint32)
_U8 = np.empty(0, np.uint64)
_I4 = np.empty(0, np.int32)
_I8 = np.empty(0, np.int64)
_F4 = np.empty(0, np.float32)

_LARGEST_INT32 = np.uint64(0x7FFFFFFF)
_LARGEST_INT64 = np.uint64(0x7FFFFFFFFFFFFFFF)
_OFFSETS_FAR = 64
_VALUES_NEAR = 16
_ROWS_AT_HAND = 128
"""Rows whose records are in the first cache while all their scalars are copied; as many are on the way."""
_LINE = 64
_EIGHT = 8
"""Elements that ``copy_eight`` copies."""


@inline
def _item(code):  # type: ignore[no-untyped-def]
    """Return the bytes of one element."""
    if code <= UINT64:
        return np.int64(1) << code
    return np.int64(8 if code == INT64 else 4)


@inline
def _beyond(value, target):  # type: ignore[no-untyped-def]
    """Say whether an id, or a union of ids, has bits that the target cannot hold."""
    return np.uint64(value) > (_LARGEST_INT32 if target == INT32 else _LARGEST_INT64)


@inline
def _offset(address, wide):  # type: ignore[no-untyped-def]
    """Return an int32 or int64 offset as int64."""
    if wide:
        return load(address, 0, _I8)
    return np.int64(load(address, 0, _I4))


@inline
def _at(address, row, stride):  # type: ignore[no-untyped-def]
    """Return where the value of a row is, ``stride`` bytes from one to the next."""
    return address + np.uint64(row * stride)


@brief_kernel
def locate(
    indices: NDArray[np.int64],
    starts: NDArray[np.int64],
    shard: NDArray[np.int32],
    row: NDArray[np.int64],
) -> int:
    """Find the shard of each row, and the row in it.

    Args:
        indices: int64 [B].
        starts: int64 [shards + 1], the first row of each shard, and the number of rows.
        shard: int32 [B], written.
        row: int64 [B], written.

    Returns:
        The place of the first index that is not in ``[0, rows)``, or -1.
    """
    shards = starts.size - 1
    rows = starts[shards]
    scale = shards / max(rows, 1)
    for i in range(indices.size):
        index = indices[i]
        if index < 0 or index >= rows:
            return i
        guess = np.int64(index * scale)
        guess = guess if guess < shards else np.int64(shards - 1)
        while index < starts[guess]:
            guess -= np.int64(1)
        while index >= starts[guess + 1]:
            guess += np.int64(1)
        shard[i] = guess
        row[i] = index - starts[guess]
    return -1


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
        return _ids(_U1, target, records, place, out)
    if source == UINT16:
        return _ids(_U2, target, records, place, out)
    if source == UINT32:
        return _ids(_U4, target, records, place, out)
    return _ids(_U8, target, records, place, out)


@kernel
def _fields(source, target, records, place, out):  # type: ignore[no-untyped-def]
    """Copy one field of some records, at uint64 [R] addresses; return the union of ids, 0 of others."""
    if source == FLOAT32:
        return _plain(_F4, records, place, out)
    if source == INT64:
        return _plain(_I8, records, place, out)
    if target == INT32:
        return _ids_of_any(source, _I4, records, place, out)
    return _ids_of_any(source, _I8, records, place, out)


@inline
def _first_beyond(source, target, records, place):  # type: ignore[no-untyped-def]
    """Return the first record whose id does not fit: of uint32 or uint64, as others always do."""
    for i in range(records.size):
        address = records[i] + place
        value = np.uint64(load(address, 0, _U4)) if source == UINT32 else load(address, 0, _U8)
        if _beyond(value, target):
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
        if i == count - 1 or fields[i + 1] - fields[kept - 1] >= _LINE:
            fields[kept] = fields[i]
            kept += 1
    return fields[:kept]


@inline
def _ask(record, lines):  # type: ignore[no-untyped-def]
    """Prefetch some lines of a record."""
    for i in range(lines.size):
        prefetch(record + np.uint64(lines[i]))


@kernel
def _scalars(operations, first, addresses, shard, row, out):  # type: ignore[no-untyped-def]
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
            records[i] = _at(addresses[table, shard[start + i]], row[start + i], stride)
            if start == 0:
                _ask(records[i], lines)
            ahead = start + i + _ROWS_AT_HAND
            if ahead < row.size:
                _ask(_at(addresses[table, shard[ahead]], row[ahead], stride), lines)
        for k in range(first, operations.shape[0]):
            operation = operations[k]
            if operation[KIND] == SCALAR and operation[RECORD] == table:
                source, target, place = operation[SOURCE], operation[TARGET], np.uint64(operation[PLACE])
                to = out[operation[SLOT]] + np.uint64(start * _item(target))
                union = _fields(source, target, records[:count], place, to)
                if _beyond(union, target):
                    return k, start + _first_beyond(source, target, records[:count], place)
    return np.int64(0), np.int64(-1)


@kernel
def _bits(addresses, first_bits, shard, row, out):  # type: ignore[no-untyped-def]
    """Unpack one validity bit a row; a shard whose bitmap has no address is all valid."""
    for i in range(row.size):
        address = addresses[shard[i]]
        bit = first_bits[shard[i]] + row[i]
        byte = load(address, bit >> 3, _U1) if address != 0 else np.uint8(255)
        store(out, i, byte >> (bit & 7) & 1, _U1)


@inline
def _touch(start, size):  # type: ignore[no-untyped-def]
    """Prefetch ``size`` bytes, which begin anywhere in a cache line: most lists without a branch."""
    end = start + np.uint64(max(size, 1) - 1)
    prefetch(start)
    prefetch(min(start + np.uint64(_LINE), end))
    prefetch(min(start + np.uint64(2 * _LINE), end))
    for line in range(3 * _LINE, size, _LINE):
        prefetch(start + np.uint64(line))
    prefetch(end)


@kernel
def _vectors(addresses, width, shard, row, out):  # type: ignore[no-untyped-def]
    """Copy one float32 vector a row."""
    for i in range(row.size):
        ahead = i + _VALUES_NEAR
        if ahead < row.size:
            _touch(addresses[shard[ahead]] + np.uint64(row[ahead] * width * 4), width * 4)
        start = addresses[shard[i]] + np.uint64(row[i] * width * 4)
        to = out + np.uint64(i * width * 4)
        for j in range(width):
            store(to, j, load(start, j, _F4), _F4)


@kernel
def spans(offsets, stride, wide, limits, width, side, shard, row, begin, lengths):  # type: ignore[no-untyped-def]
    """Find where each row's values begin and how many there are, ``width`` at most.

    Args:
        offsets: uint64 [shards], addresses of int64 (``wide``) or int32 offsets.
        stride: Bytes from one offset to the next.
        wide: Whether offsets are int64.
        limits: int64 [shards], how many values there are.
        width: Most values of a row: the last ones with ``side == LEFT``, else the first.
        side: LEFT or RIGHT.
        shard: int32 [B].
        row: int64 [B].
        begin: int64 [B], written.
        lengths: Address of int32 [B], written.

    Returns:
        (sum of lengths, longest, first row whose offsets are wrong or -1).
    """
    total = np.int64(0)
    longest = np.int64(0)
    for i in range(row.size):
        far = i + _OFFSETS_FAR
        if far < row.size:
            prefetch(_at(offsets[shard[far]], row[far], stride))
            prefetch(_at(offsets[shard[far]], row[far] + 1, stride))
        first = _offset(_at(offsets[shard[i]], row[i], stride), wide)
        last = _offset(_at(offsets[shard[i]], row[i] + 1, stride), wide)
        if first < 0 or last < first or last > limits[shard[i]]:
            return total, longest, np.int64(i)
        count = min(last - first, np.int64(width))
        begin[i] = last - count if side == LEFT else first
        store(lengths, i, count, _I4)
        total += count
        longest = max(longest, count)
    return total, longest, np.int64(-1)


@kernel
def _masks(lengths, width, side, out):  # type: ignore[no-untyped-def]
    """Write True where a padded row has a value: bool [B, width]."""
    for i in range(lengths.size):
        own = out + np.uint64(i * width)
        if side == LEFT:
            first = np.int32(width - lengths[i])
            for j in range(width):
                store(own, j, np.int32(j) >= first, _U1)
        else:
            count = np.int32(lengths[i])
            for j in range(width):
                store(own, j, np.int32(j) < count, _U1)


@inline
def _copy(source, target, start, count, to):  # type: ignore[no-untyped-def]
    """Copy ``count`` values, eight at a time, of which the last eight may overlap those before.

    Returns:
        Their union where ``target`` may not hold them, else 0.
    """
    union = np.int64(0)
    if count < _EIGHT:
        for j in range(count):
            value = load(start, j, source)
            union |= np.int64(value)
            store(to, j, value, target)
        return union
    for j in range(0, count, _EIGHT):
        place = min(j, count - _EIGHT)
        of, into = np.uint64(place * source.itemsize), np.uint64(place * target.itemsize)
        union |= copy_eight(start + of, to + into, source, target)
    return union


@inline
def _copy_ids(source, target, start, count, to):  # type: ignore[no-untyped-def]
    """Copy ``count`` ids of any width; return their union."""
    if source == UINT8:
        return _copy(_U1, target, start, count, to)
    if source == UINT16:
        return _copy(_U2, target, start, count, to)
    if source == UINT32:
        return _copy(_U4, target, start, count, to)
    return _copy(_U8, target, start, count, to)


@inline
def _spread(source, target, start, count, to):  # type: ignore[no-untyped-def]
    """Copy ``count`` values of any dtype; return the union of ids, 0 of floats."""
    if source == FLOAT32:
        _copy(_F4, _F4, start, count, to)
        return np.int64(0)
    if target == INT32:
        return _copy_ids(source, _I4, start, count, to)
    return _copy_ids(source, _I8, start, count, to)


@kernel
def _padded(source, target, values, begin, lengths, width, side, shard, out):  # type: ignore[no-untyped-def]
    """Write [B, width] values with zeros beside them; return the first row with a misfit, or -1."""
    item = _item(source)
    item_out = _item(target)
    for i in range(begin.size):
        near = i + _VALUES_NEAR
        if near < begin.size:
            _touch(values[shard[near]] + np.uint64(begin[near] * item), lengths[near] * item)
        count = np.int64(lengths[i])
        to = out + np.uint64(i * width * item_out)
        for j in range(width * item_out // 4):
            store(to, j, 0, _I4)
        first = width - count if side == LEFT else np.int64(0)
        own = to + np.uint64(first * item_out)
        union = _spread(source, target, values[shard[i]] + np.uint64(begin[i] * item), count, own)
        if _beyond(union, target):
            return np.int64(i)
    return np.int64(-1)


@kernel
def _jagged(source, target, values, begin, lengths, shard, out):  # type: ignore[no-untyped-def]
    """Write the values of each row behind those of the last; return the first row with a misfit, or -1."""
    item = _item(source)
    to = out
    for i in range(begin.size):
        near = i + _VALUES_NEAR
        if near < begin.size:
            _touch(values[shard[near]] + np.uint64(begin[near] * item), lengths[near] * item)
        union = _spread(source, target, values[shard[i]] + np.uint64(begin[i] * item), lengths[i], to)
        if _beyond(union, target):
            return np.int64(i)
        to += np.uint64(lengths[i] * _item(target))
    return np.int64(-1)


@inline
def _ragged_values(kind, source, target, values, begin, lengths, width, side, shard, out):  # type: ignore[no-untyped-def]
    """Write the values of a ragged column; return the first row with a misfit, or -1."""
    if kind == PADDED:
        return _padded(source, target, values, begin, lengths, width, side, shard, out)
    return _jagged(source, target, values, begin, lengths, shard, out)


@kernel
def _ragged(operation, addresses, limits, shard, row, begin, out):  # type: ignore[no-untyped-def]
    """Write one ragged column: lengths, mask, values and weights.

    Returns:
        (GOOD, 0), or what is wrong and the row of the batch.
    """
    kind, source, target, table = operation[KIND], operation[SOURCE], operation[TARGET], operation[TABLE]
    width, side, wide, slot = operation[WIDTH], operation[SIDE], operation[WIDE] != 0, operation[SLOT]
    stride, sizes = operation[STRIDE], limits[table + 1]
    _, _, wrong = spans(addresses[table], stride, wide, sizes, width, side, shard, row, begin, out[slot + 2])
    if wrong >= 0:
        return BAD_OFFSETS, wrong
    lengths = begin[row.size : 2 * row.size]
    for i in range(row.size):
        lengths[i] = load(out[slot + 2], i, _I4)
    begins = begin[: row.size]
    if out[slot + 1] != 0:
        _masks(lengths, width, side, out[slot + 1])
    values = addresses[table + 1]
    misfit = _ragged_values(kind, source, target, values, begins, lengths, width, side, shard, out[slot])
    if misfit >= 0:
        return TOO_LARGE, misfit
    if out[slot + 3] != 0:
        weights = addresses[table + 2]
        _ragged_values(kind, FLOAT32, FLOAT32, weights, begins, lengths, width, side, shard, out[slot + 3])
    return GOOD, np.int64(0)


@kernel
def _gather_batch(operations, addresses, limits, shard, row, begin, out):  # type: ignore[no-untyped-def]
    """Run every operation over one batch; ``begin`` is scratch, int64 [2 B]."""
    for k in range(operations.shape[0]):
        operation = operations[k]
        kind, table, to = operation[KIND], operation[TABLE], out[operation[SLOT]]
        if kind == BITS:
            _bits(addresses[table], limits[table], shard, row, to)
        elif kind == VECTOR:
            _vectors(addresses[table], operation[WIDTH], shard, row, to)
        elif kind == SCALAR:
            if operation[RECORD] == table:
                wrong, misfit = _scalars(operations, k, addresses, shard, row, out)
                if misfit >= 0:
                    return TOO_LARGE, wrong, misfit
        else:
            problem, place = _ragged(operation, addresses, limits, shard, row, begin, out)
            if problem != GOOD:
                return problem, k, place
    return GOOD, 0, np.int64(0)


@kernel
def gather(
    operations: NDArray[np.int64],
    addresses: NDArray[np.uint64],
    limits: NDArray[np.int64],
    bounds: NDArray[np.int64],
    shard: NDArray[np.int32],
    row: NDArray[np.int64],
    out: NDArray[np.uint64],
) -> tuple[int, int, int]:
    """Run every operation over some batches.

    Args:
        operations: int64 [batches or 1, operations, OPERATION_FIELDS], of each batch or of all; see the
            module's docstring. (The size, the number of values in a jagged batch, is the caller's own.)
        addresses: uint64 [address rows, shards]: where each array starts.
        limits: int64 [address rows, shards]: elements of each array; the first bit of a bitmap.
        bounds: int64 [batches + 1]: which rows are of which batch.
        shard: int32 [R].
        row: int64 [R].
        out: uint64 [batches, outputs], the addresses of the arrays to write: 4 for a ragged column, of
            which mask and weights are 0 where they are not wanted; 1 for the others.

    Returns:
        (GOOD, 0, 0); or what is wrong, in which operation, at which of the rows.
    """
    begin = np.empty(2 * row.size, np.int64)
    for b in range(bounds.size - 1):
        part = slice(bounds[b], bounds[b + 1])
        mine = operations[min(b, operations.shape[0] - 1)]
        problem, k, place = _gather_batch(mine, addresses, limits, shard[part], row[part], begin, out[b])
        if problem != GOOD:
            return problem, k, bounds[b] + place
    return GOOD, 0, 0
