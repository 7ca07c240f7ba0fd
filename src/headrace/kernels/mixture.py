"""Which part of a mixture stands at each position, and its how many-th sample that is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.compile import inline, kernel
from headrace.kernels.rng import below, random_bits

BLOCK = 1000


@inline
def _deal_block(counts, key, block, part, rank):  # type: ignore[no-untyped-def]
    """Write which part stands at each slot of a block, and how many of it stood there before."""
    slot = 0
    for i in range(counts.size):
        for _ in range(counts[i]):
            part[slot] = i
            slot += 1
    own = random_bits(key, block, 0)
    for i in range(BLOCK - 1, 0, -1):
        j = below(own, i, 0, i + 1)
        part[i], part[j] = part[j], part[i]
    seen = np.zeros(counts.size, np.int64)
    for i in range(BLOCK):
        rank[i] = seen[part[i]]
        seen[part[i]] += 1


@kernel
def deal(
    positions: NDArray[np.int64], counts: NDArray[np.int64], key: np.uint64
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the part at each position, and its draw: how many of that part came before.

        counts 2 1, blocks of 3 (in truth 1,000)
        position   0 1 2 | 3 4 5
        part       0 1 0 | 1 0 0
        draw       0 0 1 | 1 2 3

    Args:
        positions: int64 [B].
        counts: int64 [parts], how many of each stand in a block; their sum is ``BLOCK``.
        key: Stream key.
    """
    parts = np.empty(positions.size, np.int64)
    draws = np.empty(positions.size, np.int64)
    part = np.empty(BLOCK, np.int64)
    rank = np.empty(BLOCK, np.int64)
    dealt = np.int64(-1)
    for i in range(positions.size):
        block = positions[i] // BLOCK
        if block != dealt:
            _deal_block(counts, key, block, part, rank)
            dealt = block
        slot = positions[i] % BLOCK
        parts[i] = part[slot]
        draws[i] = block * counts[part[slot]] + rank[slot]
    return parts, draws
