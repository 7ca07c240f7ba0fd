"""Best-fit decreasing: pieces into rows of equal capacity, few rows, in one pass.

Pieces are placed from the largest to the smallest, each into the fullest row
that still has room for it. Rows are kept by the room they have left, so that
the row is found in a tree over room 0..W: O(log W) a piece, for any number of rows.

    W = 8, sizes 5 4 3 3 1      row 0: 5 3    row 1: 4 3 1

At most 11/9 OPT + 6/9 rows are used (G. Dosa, "The tight bound of first fit
decreasing bin-packing", 2007, which holds for best fit decreasing as well: D. S.
Johnson and others, 1974).
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import inline, kernel


@inline
def mark(tree, leaves, room, present):  # type: ignore[no-untyped-def]
    """Say whether some row has exactly ``room`` left."""
    node = leaves + room
    tree[node] = present
    node //= 2
    while node >= 1:
        tree[node] = tree[2 * node] or tree[2 * node + 1]
        node //= 2


@inline
def smallest_room(tree, leaves, size):  # type: ignore[no-untyped-def]
    """Return the smallest room of at least ``size`` that some row has left, or -1."""
    node = leaves + size
    while not tree[node]:
        while node % 2 == 1:
            node //= 2
        if node == 0:
            return -1
        node += 1
    while node < leaves:
        node = 2 * node if tree[2 * node] else 2 * node + 1
    return node - leaves


@kernel
def best_fit_decreasing(sizes, capacity, row):  # type: ignore[no-untyped-def]
    """Fill ``row`` with the row of each piece; return the number of rows.

    Args:
        sizes: int64 [P], falling, each in ``[1, capacity]``.
        capacity: Tokens in a row.
        row: int64 [P], filled: rows are numbered as they are opened.
    """
    leaves = 1
    while leaves < capacity + 1:
        leaves *= 2
    tree = np.zeros(2 * leaves, np.bool_)
    newest = np.full(capacity + 1, -1, np.int64)
    before = np.empty(sizes.size, np.int64)
    rows = 0
    for piece in range(sizes.size):
        size = sizes[piece]
        room = smallest_room(tree, leaves, size)
        if room < 0:
            room = capacity
            chosen = rows
            rows += 1
        else:
            chosen = newest[room]
            newest[room] = before[chosen]
            if newest[room] < 0:
                mark(tree, leaves, room, False)
        row[piece] = chosen
        left = room - size
        before[chosen] = newest[left]
        newest[left] = chosen
        if before[chosen] < 0:
            mark(tree, leaves, left, True)
    return rows


@kernel
def count_runs(indices, row_pieces, row_runs):  # type: ignore[no-untyped-def]
    """Fill ``row_runs`` (int64 [B+1]) with the pieces before each of the rows ``indices``.

    Args:
        indices: int64 [B], row numbers.
        row_pieces: int64 [R+1], which pieces are of which row.
        row_runs: int64 [B+1], filled.
    """
    row_runs[0] = 0
    for row in range(indices.size):
        row_runs[row + 1] = row_runs[row] + row_pieces[indices[row] + 1] - row_pieces[indices[row]]


@kernel
def copy_runs(indices, row_pieces, position, size, row_runs, run_position, run_size):  # type: ignore[no-untyped-def]
    """Fill the pieces of the rows ``indices``, in order.

    Args:
        indices: int64 [B], row numbers.
        row_pieces: int64 [R+1], which pieces are of which row.
        position: int64 [P], where each piece begins.
        size: int32 [P], its tokens.
        row_runs: int64 [B+1], from ``count_runs``.
        run_position: int64 [row_runs[-1]], filled.
        run_size: int64 [row_runs[-1]], filled.
    """
    for row in range(indices.size):
        first = row_pieces[indices[row]]
        for i in range(row_runs[row + 1] - row_runs[row]):
            run_position[row_runs[row] + i] = position[first + i]
            run_size[row_runs[row] + i] = size[first + i]
