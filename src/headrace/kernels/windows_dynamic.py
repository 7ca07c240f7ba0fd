"""Starts of windows that lie closer where a density is higher."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import kernel
from headrace.kernels.windows_layout import last_at_most


@kernel
def dynamic_starts(  # type: ignore[no-untyped-def]
    lengths, density, window, quantum, minimum, maximum, state, starts, counts
):
    """Continue the walk over streams by one block of tokens; return the number of starts found in it.

    A stream's first window begins at 0. The next begins at the first place where
    the density summed since the previous start reaches ``quantum``, but at least
    ``minimum`` and at most ``maximum`` tokens after it; none begins once a window
    reaches the stream's end.

    Args:
        lengths: int64 [K], tokens of each stream.
        density: float64 [T], of the block's tokens, which go on where the last block ended.
        window: Tokens in a window.
        quantum: What the summed density must reach.
        minimum: Fewest tokens between two starts.
        maximum: Most tokens between two starts, at most ``window``.
        state: float64 [4], zeros at first, carried from block to block: stream, place in it,
            density summed since the previous start, previous start.
        starts: int64 [N], filled with the starts, relative to their streams; or [0], only to count.
        counts: int64 [K], increased by the starts of each stream.
    """
    stream, place, total, start = int(state[0]), int(state[1]), state[2], int(state[3])
    found = 0
    for t in range(density.size):
        while place == lengths[stream]:
            stream += 1
            place = 0
        step = place - start
        reached = step >= maximum or (step >= minimum and total >= quantum)
        if place == 0 or (reached and start + window < lengths[stream]):
            start = place
            total = 0.0
            counts[stream] += 1
            if starts.size > 0:
                starts[found] = start
            found += 1
        total += density[t]
        place += 1
    state[0], state[1], state[2], state[3] = stream, place, total, start
    return found


@kernel
def edge_density(document_offsets, first, density):  # type: ignore[no-untyped-def]
    """Fill the arcsine density of documents: high at both ends, 1 on average.

    Args:
        document_offsets: int64 [D+1], where each document begins.
        first: The first position.
        density: float64 [T], filled: 1 / (pi sqrt(u (1 - u))) with u = (place + 1/2) / L.
    """
    d = last_at_most(document_offsets, first)
    place = first - document_offsets[d]
    for i in range(density.size):
        while place == document_offsets[d + 1] - document_offsets[d]:
            d += 1
            place = 0
        u = (place + 0.5) / (document_offsets[d + 1] - document_offsets[d])
        density[i] = 1.0 / (np.pi * np.sqrt(u * (1.0 - u)))
        place += 1


@kernel
def count_ids(ids, counts):  # type: ignore[no-untyped-def]
    """Add to ``counts`` (int64 [V]) how often each id occurs in ``ids``, all below V."""
    for i in range(ids.size):
        counts[ids[i]] += 1
