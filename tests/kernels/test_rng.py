"""Philox against the known answers of its authors, and a plain Python reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.kernels.compile import kernel
from headrace.kernels.rng import _philox_words, below, philox, random_bits, scale32, stream_key, uniform

KNOWN_ANSWERS = [  # kat_vectors of Random123 1.14: philox4x32 10
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
words = st.integers(0, 2**32 - 1)
uint64s = st.integers(0, 2**64 - 1)


@kernel
def draw_words(counter, key):
    return philox(counter[0], counter[1], counter[2], counter[3], key[0], key[1])


@kernel
def draw_numbers(key, places, n, bits, floats, integers):
    for i in range(places.size):
        bits[i] = random_bits(key, places[i], 3)
        floats[i] = uniform(key, places[i], 3)
        integers[i] = below(key, places[i], 3, n)


@kernel
def scale(word, n):
    return scale32(word, n)


def compiled(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    drawn = draw_words(np.array(counter, np.uint32), np.array(key, np.uint32))
    return tuple(int(word) for word in drawn)


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_known_answers(counter, key, answer) -> None:
    assert compiled(counter, key) == answer
    assert _philox_words(counter, key) == answer


@settings(deadline=None, max_examples=50)
@given(counter=st.tuples(words, words, words, words), key=st.tuples(words, words))
def test_compiled_equals_python(counter, key) -> None:
    assert compiled(counter, key) == _philox_words(counter, key)


@settings(deadline=None, max_examples=50)
@given(key=uint64s, place=uint64s, n=st.integers(1, 2**53))
def test_numbers_come_from_the_words(key: int, place: int, n: int) -> None:
    w0, w1, _, _ = _philox_words((place & 0xFFFFFFFF, place >> 32, 3, 0), (key & 0xFFFFFFFF, key >> 32))
    bits, floats, integers = np.empty(1, np.uint64), np.empty(1), np.empty(1, np.int64)
    draw_numbers(np.uint64(key), np.array([place], np.uint64), n, bits, floats, integers)
    assert int(bits[0]) == w0 | w1 << 32
    assert floats[0] == ((w0 | w1 << 32) >> 11) / 2**53
    assert 0 <= integers[0] < n


def test_uniform_is_flat_and_below_one() -> None:
    places = np.arange(100_000, dtype=np.uint64)
    bits, floats, integers = (
        np.empty(places.size, np.uint64),
        np.empty(places.size),
        np.empty(places.size, np.int64),
    )
    draw_numbers(stream_key(1, 2, "test"), places, 10, bits, floats, integers)
    assert floats.min() >= 0
    assert floats.max() < 1
    counts = np.bincount(integers, minlength=10)
    chi_squared = ((counts - 10_000) ** 2 / 10_000).sum()
    assert chi_squared < 35  # 9 degrees of freedom: beyond with chance 6e-5


@settings(deadline=None, max_examples=30)
@given(word=words, n=st.integers(1, 2**32 - 1))
def test_scale32_stays_below(word: int, n: int) -> None:
    assert scale(np.uint32(word), np.int64(n)) == word * n >> 32


def test_seed_and_epoch_are_separate_words() -> None:
    keys = {
        int(stream_key(seed, epoch, stream)) for seed in range(20) for epoch in range(20) for stream in "ab"
    }
    assert len(keys) == 800
    assert stream_key(7, 1, "shuffle") != stream_key(8, 0, "shuffle")


@pytest.mark.parametrize("seed", [0, -1, 2**63, 2**64 - 1, -(2**63)])
def test_any_integer_is_a_seed(seed: int) -> None:
    assert stream_key(seed, seed, "a") == stream_key(seed % 2**64, seed % 2**64, "a")
