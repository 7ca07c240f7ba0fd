"""Draws with replacement, and cuts by a budget: the passes behind weighted and bucketed orders."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.alias import draw_alias
from headrace.kernels.compile import kernel
from headrace.kernels.rng import below, random_words


@kernel
def draw_weighted(
    positions: NDArray[np.int64], table: NDArray[np.uint64], key: np.uint64
) -> NDArray[np.int64]:
    """Return the index drawn at each position from an alias table: int64 [B]."""
    out = np.empty(positions.size, np.int64)
    for i in range(positions.size):
        word_a, word_b, _, _ = random_words(key, positions[i], 0)
        out[i] = draw_alias(table, word_a, word_b)
    return out


@kernel
def draw_grouped(
    positions: NDArray[np.int64], members: NDArray[np.int64], offsets: NDArray[np.int64], key: np.uint64
) -> NDArray[np.int64]:
    """Return one member at each position: a group first, then one of it, both uniformly.

    Args:
        positions: int64 [B].
        members: int64 [N], indices ordered by group.
        offsets: int64 [groups + 1], where each group stands in ``members``; none is empty.
        key: Stream key.
    """
    out = np.empty(positions.size, np.int64)
    for i in range(positions.size):
        group = below(key, positions[i], 0, offsets.size - 1)
        start = offsets[group]
        out[i] = members[start + below(key, positions[i], 1, offsets[group + 1] - start)]
    return out


@kernel
def cut_by_tokens(lengths: NDArray[np.int64], budget: int, multiple: int) -> NDArray[np.int64]:
    """Cut a row of samples into batches that hold at most ``budget`` tokens with their padding.

        lengths 3 3 4 | 9 | 2 5    budget 12: 3 x 4, 1 x 9, 2 x 5

    Args:
        lengths: int64 [N], each at most ``budget``; 0 costs as much as 1.
        budget: Largest samples × longest of a batch.
        multiple: A batch of at least so many samples is cut down to a multiple of it.

    Returns:
        int64 [batches + 1], where each batch starts, and N.
    """
    cuts = np.empty(lengths.size + 1, np.int64)
    cuts[0] = 0
    batches = 0
    start = 0
    longest = 1
    i = 0
    while i < lengths.size:
        longest = max(longest, lengths[i])
        count = i + 1 - start
        if count * longest <= budget:
            i += 1
            continue
        whole = count - 1
        start += whole - whole % multiple if whole >= multiple else whole
        batches += 1
        cuts[batches] = start
        longest = 1
        i = start
    if lengths.size > 0:
        batches += 1
        cuts[batches] = lengths.size
    return cuts[: batches + 1].copy()
