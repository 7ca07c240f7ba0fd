"""Bijections on ``[0, n)`` from integer arithmetic alone.

The large one is an alternating Feistel network (M. Luby, C. Rackoff, "How to
construct pseudorandom permutations from pseudorandom functions", SIAM J. Comput.
17, 1988) on the smallest number of bits that holds ``[0, n)``, with the two
parts of the bits rounded to ``k // 2`` and ``k - k // 2``, and cycle walking
(J. Black, P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002): a
value beyond ``n`` is sent through the network again until it falls inside. The
domain is smaller than ``2 n``, so that this takes fewer than two passes on average.

    bits of x      [ left: k // 2 | right: k - k // 2 ]
    8 rounds       left ^= F(right, key);  right ^= F(left, key);  ...
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.compile import brief_kernel, inline, kernel
from headrace.kernels.rng import below, random_bits

ROUNDS = 8
_M0 = np.uint64(0xD2511F53)
_M1 = np.uint64(0xCD9E8D57)
_LOW = np.uint64(0xFFFFFFFF)
_S32 = np.uint64(32)
_ONE = np.uint64(1)
_CHUNK = 512


@inline
def _scramble(half, key):  # type: ignore[no-untyped-def]
    """Return 32 bits that depend on every bit of a half (below 2**32) and of a uint64 key."""
    product = ((half ^ key) & _LOW) * _M0
    product = ((product >> _S32) ^ product ^ (key >> _S32)) & _LOW
    product = product * _M1
    return (product >> _S32) ^ (product & _LOW)


@inline
def feistel(x, left, right, keys, tweak):  # type: ignore[no-untyped-def]
    """Send a uint64 below ``2**(left + right)`` to another one; a bijection for each tweak."""
    left_mask = (_ONE << left) - _ONE
    right_mask = (_ONE << right) - _ONE
    a = x >> right
    b = x & right_mask
    for i in range(0, ROUNDS, 2):
        a ^= _scramble(b, keys[i] ^ tweak) & left_mask
        b ^= _scramble(a, keys[i + 1] ^ tweak) & right_mask
    return (a << right) | b


@inline
def feistel_inverse(x, left, right, keys, tweak):  # type: ignore[no-untyped-def]
    """Undo ``feistel``."""
    left_mask = (_ONE << left) - _ONE
    right_mask = (_ONE << right) - _ONE
    a = x >> right
    b = x & right_mask
    for i in range(ROUNDS - 2, -1, -2):
        b ^= _scramble(a, keys[i + 1] ^ tweak) & right_mask
        a ^= _scramble(b, keys[i] ^ tweak) & left_mask
    return (a << right) | b


@inline
def width(size):  # type: ignore[no-untyped-def]
    """Return how many bits hold every integer in ``[0, size)``; 2 at least."""
    bits = np.int64(2)
    while (np.uint64(size - 1) >> np.uint64(bits)) > 0:
        bits += 1
    return bits


@inline
def walk(x, size, bits, keys, tweak):  # type: ignore[no-untyped-def]
    """Return where ``x`` goes in a bijection on ``[0, size)``, as int64; ``bits`` is ``width(size)``."""
    if size < 2:
        return np.int64(x)
    left = np.uint64(bits // 2)
    right = np.uint64(bits - bits // 2)
    y = feistel(np.uint64(x), left, right, keys, tweak)
    while y >= np.uint64(size):
        y = feistel(y, left, right, keys, tweak)
    return np.int64(y)


@inline
def walk_back(x, size, keys, tweak):  # type: ignore[no-untyped-def]
    """Undo ``walk``."""
    if size < 2:
        return np.int64(x)
    bits = width(size)
    left = np.uint64(bits // 2)
    right = np.uint64(bits - bits // 2)
    y = feistel_inverse(np.uint64(x), left, right, keys, tweak)
    while y >= np.uint64(size):
        y = feistel_inverse(y, left, right, keys, tweak)
    return np.int64(y)


@kernel
def round_keys(key: np.uint64) -> NDArray[np.uint64]:
    """Return uint64 [ROUNDS]: the keys of a network from one stream key."""
    keys = np.empty(ROUNDS, np.uint64)
    for i in range(ROUNDS):
        keys[i] = random_bits(key, i, 0)
    return keys


@inline
def _walk_on(x, size, left, right, keys, tweak, place):  # type: ignore[no-untyped-def]
    """Send the values of ``x`` beyond ``size`` on until they fall inside; ``place`` is scratch, as long."""
    beyond = np.int64(0)
    for i in range(x.size):
        place[beyond] = i
        beyond += np.int64(x[i] >= size)
    while beyond > 0:
        still = np.int64(0)
        for j in range(beyond):
            i = place[j]
            x[i] = np.int64(feistel(np.uint64(x[i]), left, right, keys, tweak))
            place[still] = i
            still += np.int64(x[i] >= size)
        beyond = still


@brief_kernel
def permute(
    positions: NDArray[np.int64], size: int, bits: int, keys: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return the index at each position, all of which must be in ``[0, size)``.

    One straight pass for all, which compiles to vector code; then those that
    fell beyond ``size`` walk on together.

    Args:
        positions: int64 [B].
        size: Number of samples, 2 or more.
        bits: ``(size - 1).bit_length()``, 2 or more.
        keys: uint64 [ROUNDS].
    """
    left = np.uint64(bits // 2)
    right = np.uint64(bits - bits // 2)
    zero = np.uint64(0)
    out = positions.copy()  # and then in place: a load waits for a store to another array at a like address
    place = np.empty(_CHUNK, np.int64)
    for start in range(0, positions.size, _CHUNK):
        chunk = out[start : start + _CHUNK]
        for i in range(chunk.size):
            chunk[i] = np.int64(feistel(np.uint64(chunk[i]), left, right, keys, zero))
        _walk_on(chunk, size, left, right, keys, zero, place)
    return out


@kernel
def permute_run(first, size, bits, keys, tweak, out):  # type: ignore[no-untyped-def]
    """Write where ``first``, ``first + 1``, … go in the bijection on ``[0, size)`` of one tweak."""
    left = np.uint64(bits // 2)
    right = np.uint64(bits - bits // 2)
    place = np.empty(_CHUNK, np.int64)
    for start in range(0, out.size, _CHUNK):
        stop = min(start + _CHUNK, out.size)
        for i in range(start, stop):
            x = np.uint64(first + i) if size > 1 else np.uint64(0)
            out[i] = np.int64(feistel(x, left, right, keys, tweak))
        _walk_on(out[start:stop], size, left, right, keys, tweak, place)


@kernel
def permute_back(indices: NDArray[np.int64], size: int, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the position of each index: the inverse of ``permute``."""
    out = np.empty(indices.size, np.int64)
    for i in range(indices.size):
        out[i] = walk_back(indices[i], size, keys, np.uint64(0))
    return out


@kernel
def shuffled(size: int, key: np.uint64) -> NDArray[np.int64]:
    """Return a uniformly drawn permutation of ``[0, size)`` (Fisher and Yates, from the end)."""
    out = np.arange(size)
    for i in range(size - 1, 0, -1):
        j = below(key, i, 0, i + 1)
        out[i], out[j] = out[j], out[i]
    return out
