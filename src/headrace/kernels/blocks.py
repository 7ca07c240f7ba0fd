"""The block order: permuted blocks, dealt to lanes, shuffled inside a window of each lane."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.compile import inline, kernel
from headrace.kernels.permute import permute_run, walk, walk_back, width
from headrace.kernels.rng import random_bits

_UNTWEAKED = np.uint64(0)
_SAME_TIME = 8
"""Numbers that are permuted one after the other in as long as one is alone."""


@inline
def _lane_start(lane, size, lanes):  # type: ignore[no-untyped-def]
    """Return where a lane's share of the stream starts; shares differ by one sample at most."""
    return lane * (size // lanes) + min(lane, size % lanes)


@inline
def _first_of_lane(lane, start, lanes):  # type: ignore[no-untyped-def]
    """Return how many of a lane's samples come before epoch position ``start``."""
    return start // lanes + np.int64(lane < start % lanes)


@inline
def _window(lane, number, size, window_span, lanes):  # type: ignore[no-untyped-def]
    """Return where a lane's window begins and ends in the lane.

    The first window of lane k is shorter by k / lanes of a window, so that the lanes
    begin new windows one after the other and not all at once.
    """
    shift = lane * window_span // lanes
    length = size // lanes + np.int64(lane < size % lanes)
    return max(number * window_span - shift, np.int64(0)), min((number + 1) * window_span - shift, length)


@inline
def _window_number(lane, q, window_span, lanes):  # type: ignore[no-untyped-def]
    """Return which window of a lane its place ``q`` is in."""
    return (q + lane * window_span // lanes) // window_span


@inline
def _place_in_stream(t, block, short, short_place):  # type: ignore[no-untyped-def]
    """Return which block of the stream place ``t`` is in, and where in it; one may be short."""
    if t < short_place * block:
        return t // block, t % block
    if t < short_place * block + short:
        return short_place, t - short_place * block
    shifted = t + block - short
    return shifted // block, shifted % block


@kernel
def _window_part(  # type: ignore[no-untyped-def]
    first, span_start, inside, blocks, block, short, short_place, keys, tweak, ids, out
):
    """Write the samples at places ``first``, … of one window: ``out`` is as long as there are of them.

    ``ids`` is memory for the permuted number of each block of the window; -1 where it is not known yet.
    """
    permute_run(first, inside, width(inside), keys, tweak, out)
    blocks_bits = width(blocks)
    lowest, _ = _place_in_stream(span_start, block, short, short_place)
    highest, _ = _place_in_stream(span_start + inside - 1, block, short, short_place)
    count = highest - lowest + 1
    if out.size < count // _SAME_TIME:
        ids[:count] = -1
    else:
        permute_run(lowest, blocks, blocks_bits, keys, _UNTWEAKED, ids[:count])
    for i in range(out.size):
        rank, offset = _place_in_stream(span_start + out[i], block, short, short_place)
        if ids[rank - lowest] < 0:
            ids[rank - lowest] = walk(rank, blocks, blocks_bits, keys, _UNTWEAKED)
        out[i] = ids[rank - lowest] * block + offset


@kernel
def block_order(
    positions: NDArray[np.int64],
    start: int,
    stop: int,
    size: int,
    block: int,
    window: int,
    lanes: int,
    key: np.uint64,
    keys: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """Return the index at each position of one global batch: int64 [B].

    Position p of the epoch is sample ``p // lanes`` of lane ``p % lanes``; inside a
    global batch the samples stand lane by lane, so that a rank's part is of few lanes.

        lanes = 2, global batch [4, 8)     lane 0: samples 2 3     lane 1: samples 2 3

    Args:
        positions: int64 [B], consecutive, in ``[start, stop)``.
        start: First position of the global batch.
        stop: Position after its last.
        size: Samples in the epoch.
        block: Samples in a block.
        window: Blocks in a window.
        lanes: Number of lanes.
        key: Stream key of the windows.
        keys: uint64 [ROUNDS], keys of the permutation of the blocks.
    """
    blocks = (size + block - 1) // block
    short = size - (blocks - 1) * block
    short_place = walk_back(blocks - 1, blocks, keys, _UNTWEAKED)
    span = window * block
    ids = np.empty(window + 2, np.int64)
    out = np.empty(positions.size, np.int64)
    lane = np.int64(0)
    before = np.int64(0)
    i = np.int64(0)
    while i < positions.size:
        first = _first_of_lane(lane, start, lanes)
        count = _first_of_lane(lane, stop, lanes) - first
        j = positions[i] - start
        if j >= before + count:
            before += count
            lane += np.int64(1)
            continue
        q = first + j - before
        here = _window_number(lane, q, span, lanes)
        window_first, window_last = _window(lane, here, size, span, lanes)
        inside = window_last - window_first
        run = np.int64(min(min(first + count, window_last) - q, positions.size - i))
        span_start = _lane_start(lane, size, lanes) + window_first
        tweak = random_bits(key, lane, here)
        part = out[i : i + run]
        place = q - window_first
        _window_part(place, span_start, inside, blocks, block, short, short_place, keys, tweak, ids, part)
        i += run
    return out


@kernel
def windows_begun(
    start: int,
    stop: int,
    open_too: bool,
    size: int,
    block: int,
    window: int,
    lanes: int,
    keys: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """Return the samples of all windows that begin between two positions: int64 [ranges, 2], first and end.

    Args:
        start: First position.
        stop: Position after the last.
        open_too: Whether to return the windows that are in use at ``start`` as well.
        size: Samples in the epoch.
        block: Samples in a block.
        window: Blocks in a window.
        lanes: Number of lanes.
        keys: uint64 [ROUNDS], keys of the permutation of the blocks.
    """
    blocks = (size + block - 1) // block
    short = size - (blocks - 1) * block
    short_place = walk_back(blocks - 1, blocks, keys, _UNTWEAKED)
    bits = width(blocks)
    span = window * block
    ranges = np.empty(((2 * lanes + (stop - start) // span + 1) * (window + 2), 2), np.int64)
    found = 0
    for lane in range(lanes):
        first = _first_of_lane(lane, start, lanes)
        last = _first_of_lane(lane, stop, lanes)
        number = _window_number(lane, first, span, lanes)
        while True:
            window_first, window_last = _window(lane, number, size, span, lanes)
            if window_first >= last or window_last <= window_first:
                break
            t = _lane_start(lane, size, lanes) + window_first
            end = _lane_start(lane, size, lanes) + window_last
            while (open_too or window_first >= first) and t < end:
                rank, offset = _place_in_stream(t, block, short, short_place)
                rows = min((short if rank == short_place else block) - offset, end - t)
                ranges[found, 0] = walk(rank, blocks, bits, keys, _UNTWEAKED) * block + offset
                ranges[found, 1] = ranges[found, 0] + rows
                found += 1
                t += rows
            number += 1
    return ranges[:found].copy()
