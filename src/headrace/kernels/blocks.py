"""The block order: permuted blocks, dealt to lanes, shuffled inside a window of each lane."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.compile import inline, kernel
from headrace.kernels.permute import walk, walk_back, width
from headrace.kernels.rng import random_bits

_UNTWEAKED = np.uint64(0)


@inline
def _lane_start(lane, size, lanes):  # type: ignore[no-untyped-def]
    """Return where a lane's share of the stream starts; shares differ by one sample at most."""
    return lane * (size // lanes) + min(lane, size % lanes)


@inline
def _first_of_lane(lane, start, lanes):  # type: ignore[no-untyped-def]
    """Return how many of a lane's samples come before epoch position ``start``."""
    return start // lanes + np.int64(lane < start % lanes)


@inline
def _index_in_stream(t, blocks, bits, short, block, keys, short_place):  # type: ignore[no-untyped-def]
    """Return the sample at place ``t`` of the stream of permuted blocks; one block may be short."""
    if t < short_place * block:
        place = t // block
        offset = t % block
    elif t < short_place * block + short:
        place = short_place
        offset = t - short_place * block
    else:
        shifted = t + block - short
        place = shifted // block
        offset = shifted % block
    return walk(place, blocks, bits, keys, _UNTWEAKED) * block + offset


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
        positions: int64 [B], each in ``[start, stop)``, ascending.
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
    short_place = walk_back(blocks - 1, blocks, keys, _UNTWEAKED)
    blocks_bits = width(blocks)
    short = size - (blocks - 1) * block
    span = window * block
    out = np.empty(positions.size, np.int64)
    lane = np.int64(-1)
    here = np.int64(-1)
    first = count = before = lane_start = length = inside = bits = np.int64(0)
    tweak = np.uint64(0)
    for i in range(positions.size):
        j = positions[i] - start
        while lane < 0 or j >= before + count:
            before += count
            lane += np.int64(1)
            here = np.int64(-1)
            first = _first_of_lane(lane, start, lanes)
            count = _first_of_lane(lane, stop, lanes) - first
            lane_start = _lane_start(lane, size, lanes)
            length = size // lanes + np.int64(lane < size % lanes)
        q = first + j - before
        if here < 0 or q >= (here + 1) * span:
            here = q // span
            inside = np.int64(min(np.int64(span), length - here * span))
            bits = width(inside)
            tweak = random_bits(key, lane, here)
        t = lane_start + here * span + walk(q - here * span, inside, bits, keys, tweak)
        out[i] = _index_in_stream(t, blocks, blocks_bits, short, block, keys, short_place)
    return out
