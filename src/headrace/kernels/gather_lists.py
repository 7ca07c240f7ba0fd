"""Many values a row: vectors, and lists, padded or one behind the other."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import inline, kernel
from headrace.kernels.memory import copy_eight, load, prefetch, store
from headrace.kernels.operations import (
    BAD_OFFSETS,
    F4,
    FLOAT32,
    GOOD,
    I4,
    I8,
    INT32,
    KIND,
    LEFT,
    LINE,
    PADDED,
    SIDE,
    SLOT,
    SOURCE,
    STRIDE,
    TABLE,
    TARGET,
    TOO_LARGE,
    U1,
    U2,
    U4,
    U8,
    UINT8,
    UINT16,
    UINT32,
    WIDE,
    WIDTH,
    is_beyond,
    item_bytes,
    row_at,
)

_OFFSETS_FAR = 64
_VALUES_NEAR = 16
"""Rows that their offsets, and their values, are asked for ahead."""
_EIGHT = 8
"""Elements that ``copy_eight`` copies."""


@inline
def _offset(address, wide):  # type: ignore[no-untyped-def]
    """Return an int32 or int64 offset as int64."""
    if wide:
        return load(address, 0, I8)
    return np.int64(load(address, 0, I4))


@inline
def _touch(start, size):  # type: ignore[no-untyped-def]
    """Prefetch ``size`` bytes, which begin anywhere in a cache line: most lists without a branch."""
    end = start + np.uint64(max(size, 1) - 1)
    prefetch(start)
    prefetch(min(start + np.uint64(LINE), end))
    prefetch(min(start + np.uint64(2 * LINE), end))
    for line in range(3 * LINE, size, LINE):
        prefetch(start + np.uint64(line))
    prefetch(end)


@kernel
def gather_vectors(addresses, width, shard, row, out):  # type: ignore[no-untyped-def]
    """Copy one float32 vector a row."""
    for i in range(row.size):
        ahead = i + _VALUES_NEAR
        if ahead < row.size:
            _touch(addresses[shard[ahead]] + np.uint64(row[ahead] * width * 4), width * 4)
        start = addresses[shard[i]] + np.uint64(row[i] * width * 4)
        to = out + np.uint64(i * width * 4)
        for j in range(width):
            store(to, j, load(start, j, F4), F4)


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
            prefetch(row_at(offsets[shard[far]], row[far], stride))
            prefetch(row_at(offsets[shard[far]], row[far] + 1, stride))
        first = _offset(row_at(offsets[shard[i]], row[i], stride), wide)
        last = _offset(row_at(offsets[shard[i]], row[i] + 1, stride), wide)
        if first < 0 or last < first or last > limits[shard[i]]:
            return total, longest, np.int64(i)
        count = min(last - first, np.int64(width))
        begin[i] = last - count if side == LEFT else first
        store(lengths, i, count, I4)
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
                store(own, j, np.int32(j) >= first, U1)
        else:
            count = np.int32(lengths[i])
            for j in range(width):
                store(own, j, np.int32(j) < count, U1)


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
        return _copy(U1, target, start, count, to)
    if source == UINT16:
        return _copy(U2, target, start, count, to)
    if source == UINT32:
        return _copy(U4, target, start, count, to)
    return _copy(U8, target, start, count, to)


@inline
def _spread(source, target, start, count, to):  # type: ignore[no-untyped-def]
    """Copy ``count`` values of any dtype; return the union of ids, 0 of floats."""
    if source == FLOAT32:
        _copy(F4, F4, start, count, to)
        return np.int64(0)
    if target == INT32:
        return _copy_ids(source, I4, start, count, to)
    return _copy_ids(source, I8, start, count, to)


@kernel
def _padded(source, target, values, begin, lengths, width, side, shard, out):  # type: ignore[no-untyped-def]
    """Write [B, width] values with zeros beside them; return the first row with a misfit, or -1."""
    item = item_bytes(source)
    item_out = item_bytes(target)
    for i in range(begin.size):
        near = i + _VALUES_NEAR
        if near < begin.size:
            _touch(values[shard[near]] + np.uint64(begin[near] * item), lengths[near] * item)
        count = np.int64(lengths[i])
        to = out + np.uint64(i * width * item_out)
        for j in range(width * item_out // 4):
            store(to, j, 0, I4)
        first = width - count if side == LEFT else np.int64(0)
        own = to + np.uint64(first * item_out)
        union = _spread(source, target, values[shard[i]] + np.uint64(begin[i] * item), count, own)
        if is_beyond(union, target):
            return np.int64(i)
    return np.int64(-1)


@kernel
def _jagged(source, target, values, begin, lengths, shard, out):  # type: ignore[no-untyped-def]
    """Write the values of each row behind those of the last; return the first row with a misfit, or -1."""
    item = item_bytes(source)
    to = out
    for i in range(begin.size):
        near = i + _VALUES_NEAR
        if near < begin.size:
            _touch(values[shard[near]] + np.uint64(begin[near] * item), lengths[near] * item)
        union = _spread(source, target, values[shard[i]] + np.uint64(begin[i] * item), lengths[i], to)
        if is_beyond(union, target):
            return np.int64(i)
        to += np.uint64(lengths[i] * item_bytes(target))
    return np.int64(-1)


@inline
def _ragged_values(kind, source, target, values, begin, lengths, width, side, shard, out):  # type: ignore[no-untyped-def]
    """Write the values of a ragged column; return the first row with a misfit, or -1."""
    if kind == PADDED:
        return _padded(source, target, values, begin, lengths, width, side, shard, out)
    return _jagged(source, target, values, begin, lengths, shard, out)


@kernel
def gather_ragged(operation, addresses, limits, shard, row, begin, out):  # type: ignore[no-untyped-def]
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
        lengths[i] = load(out[slot + 2], i, I4)
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
