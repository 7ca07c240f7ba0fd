"""The one source of randomness: Philox4x32-10, a counter-based generator.

Reference: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as
easy as 1, 2, 3", SC 2011. A draw is a pure function of a key and a counter: the
key comes from (seed, epoch, stream), the counter is (place, draw). Nothing
depends on threads, ranks, timing or on earlier draws.

    stream_key(seed, epoch, "negatives")        one uint64 for a stream of an epoch
    random_bits(key, place, draw)               uint64
    uniform(key, place, draw)                   float64 in [0, 1)
    below(key, place, draw, n)                  int64 in [0, n)
"""

from __future__ import annotations

import numpy as np
import xxhash

from headrace.kernels.compile import inline, kernel

_M0 = np.uint64(0xD2511F53)
_M1 = np.uint64(0xCD9E8D57)
_W0 = np.uint32(0x9E3779B9)
_W1 = np.uint32(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_S32 = np.uint64(32)
_S11 = np.uint64(11)
_ROUNDS = 10
_TWO_TO_MINUS_53 = 1.0 / (1 << 53)


@inline
def philox(c0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
    """Return four uint32 for the 128-bit counter ``c0..c3`` under the 64-bit key ``k0, k1``."""
    for _ in range(_ROUNDS):
        p0 = _M0 * np.uint64(c0)
        p1 = _M1 * np.uint64(c2)
        c0, c1, c2, c3 = (
            np.uint32(p1 >> _S32) ^ c1 ^ k0,
            np.uint32(p1 & _LOW),
            np.uint32(p0 >> _S32) ^ c3 ^ k1,
            np.uint32(p0 & _LOW),
        )
        k0 = np.uint32(k0 + _W0)
        k1 = np.uint32(k1 + _W1)
    return c0, c1, c2, c3


@inline
def random_words(key, place, draw):  # type: ignore[no-untyped-def]
    """Return four uint32: 128 random bits for one (key, place, draw), all uint64."""
    key = np.uint64(key)
    place = np.uint64(place)
    draw = np.uint64(draw)
    return philox(
        np.uint32(place & _LOW),
        np.uint32(place >> _S32),
        np.uint32(draw & _LOW),
        np.uint32(draw >> _S32),
        np.uint32(key & _LOW),
        np.uint32(key >> _S32),
    )


@inline
def random_bits(key, place, draw):  # type: ignore[no-untyped-def]
    """Return a uint64 drawn for one (key, place, draw)."""
    w0, w1, _, _ = random_words(key, place, draw)
    return np.uint64(w0) | (np.uint64(w1) << _S32)


@inline
def uniform(key, place, draw):  # type: ignore[no-untyped-def]
    """Return a float64 in [0, 1) with 53 random bits."""
    return float(random_bits(key, place, draw) >> _S11) * _TWO_TO_MINUS_53


@inline
def scale32(word, n):  # type: ignore[no-untyped-def]
    """Map a random uint32 to [0, n) for n < 2**32 by multiply-shift; the bias is below n / 2**32."""
    return np.int64((np.uint64(word) * np.uint64(n)) >> _S32)


@inline
def below(key, place, draw, n):  # type: ignore[no-untyped-def]
    """Return an int64 in [0, n) for 1 <= n <= 2**53; the bias is below n / 2**53."""
    return np.int64(uniform(key, place, draw) * n)


def stream_key(seed: int, epoch: int, stream: str) -> np.uint64:
    """Return the uint64 key of one named stream in one epoch.

    Seed and epoch are separate words of the counter, so that seed 7 epoch 1 is
    unrelated to seed 8 epoch 0.

    Args:
        seed: Any integer; taken modulo 2**64.
        epoch: Any integer; taken modulo 2**64.
        stream: What is drawn, such as ``"shuffle"`` or ``"negatives"``.
    """
    name = xxhash.xxh3_64_intdigest(stream.encode())
    words = _philox_words(
        (seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF, epoch & 0xFFFFFFFF, epoch >> 32 & 0xFFFFFFFF),
        (name & 0xFFFFFFFF, name >> 32),
    )
    return np.uint64(words[0] | words[1] << 32)


def _philox_words(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Plain Python Philox4x32-10: the reference of ``philox``, cheap for one call."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        p0 = 0xD2511F53 * c0
        p1 = 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ c3 ^ k1, p0 & 0xFFFFFFFF
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


@kernel
def uniforms(key, places, out):  # type: ignore[no-untyped-def]
    """Write ``uniform(key, place, 0)`` of each place (uint64 [n]) into ``out`` (float64 [n])."""
    for at in range(len(places)):
        out[at] = uniform(key, places[at], 0)
