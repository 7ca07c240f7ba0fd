"""A whole minibatch of rows from many memory-mapped shards, in one pass over each column.

Every shard's arrays are known by address; a row's place is (shard, row in it). A small table of operations
(``operations.py``) says what becomes of each column, so that one compiled function serves any mix of columns.

What makes it fast: what is needed of rows further on is prefetched while the present one is copied,
every cache line of it. A padded row is all zeros first, and its own values are written over them:
both are vector code, and no line that is another row's alone is read, however wide the column. Scalars
that are fields of one record are copied together, some rows at a time, while their lines are at hand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.compile import brief_kernel, kernel
from headrace.kernels.gather_lists import gather_ragged, gather_vectors
from headrace.kernels.gather_scalars import gather_bits, gather_scalars
from headrace.kernels.operations import (
    BITS,
    GOOD,
    KIND,
    RECORD,
    SCALAR,
    SLOT,
    TABLE,
    TOO_LARGE,
    VECTOR,
    WIDTH,
)


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


@kernel
def _gather_batch(operations, addresses, limits, shard, row, begin, out):  # type: ignore[no-untyped-def]
    """Run every operation over one batch; ``begin`` is scratch, int64 [2 B]."""
    for k in range(operations.shape[0]):
        operation = operations[k]
        kind, table, to = operation[KIND], operation[TABLE], out[operation[SLOT]]
        if kind == BITS:
            gather_bits(addresses[table], limits[table], shard, row, to)
        elif kind == VECTOR:
            gather_vectors(addresses[table], operation[WIDTH], shard, row, to)
        elif kind == SCALAR:
            if operation[RECORD] == table:
                wrong, misfit = gather_scalars(operations, k, addresses, shard, row, out)
                if misfit >= 0:
                    return TOO_LARGE, wrong, misfit
        else:
            problem, place = gather_ragged(operation, addresses, limits, shard, row, begin, out)
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
