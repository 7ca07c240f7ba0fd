"""A permutation is a bijection, is what its definition says, and looks like a true shuffle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from headrace.errors import OrderError
from headrace.kernels.rng import _philox_words, stream_key
from headrace.order import Permutation

MASK = 0xFFFFFFFF
seeds = st.integers(-(2**63), 2**64)


def reference(position: int, size: int, seed: int, epoch: int) -> int:
    """The network in plain Python integers: 8 rounds on the bits of size - 1, walked into the range."""
    key = int(stream_key(seed, epoch, "shuffle"))
    keys = []
    for i in range(8):
        w0, w1, _, _ = _philox_words((i, 0, 0, 0), (key & MASK, key >> 32))
        keys.append(w0 | w1 << 32)
    bits = max((size - 1).bit_length(), 2)
    left, right = bits // 2, bits - bits // 2

    def scramble(half: int, round_key: int) -> int:
        product = ((half ^ round_key) & MASK) * 0xD2511F53
        product = ((product >> 32) ^ product ^ (round_key >> 32)) & MASK
        product *= 0xCD9E8D57
        return (product >> 32) ^ (product & MASK)

    x = position
    while True:
        a, b = x >> right, x & (1 << right) - 1
        for i in range(0, 8, 2):
            a ^= scramble(b, keys[i]) & (1 << left) - 1
            b ^= scramble(a, keys[i + 1]) & (1 << right) - 1
        x = a << right | b
        if x < size:
            return x


@settings(deadline=None, max_examples=60)
@given(size=st.integers(0, 20_000), seed=seeds, epoch=st.integers(0, 2**40))
def test_every_index_exactly_once(size: int, seed: int, epoch: int) -> None:
    permutation = Permutation(size, seed, epoch)
    indices = permutation[np.arange(size)]
    np.testing.assert_array_equal(np.sort(indices), np.arange(size))
    np.testing.assert_array_equal(permutation.inverse(indices), np.arange(size))


@settings(deadline=None, max_examples=60)
@given(size=st.integers(4097, 2**62), seed=seeds, data=st.data())
def test_equals_its_definition(size: int, seed: int, data: st.DataObject) -> None:
    positions = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=5))
    permutation = Permutation(size, seed, 3)
    expected = [reference(position, size, seed, 3) for position in positions]
    assert permutation[positions].tolist() == expected
    assert [permutation[position] for position in positions] == expected
    assert permutation.inverse(expected).tolist() == positions


@pytest.mark.parametrize("size", [4097, 2**13, 2**13 + 1, 2**20 - 1, 2**32, 2**33 + 5, 2**40])
def test_large_sizes_stay_in_range_without_repeats(size: int) -> None:
    positions = np.unique(np.linspace(0, size - 1, 5000).astype(np.int64))
    indices = Permutation(size, 1)[positions]
    assert indices.min() >= 0
    assert indices.max() < size
    assert np.unique(indices).size == positions.size


def test_ways_to_ask_agree() -> None:
    for size in (1, 10, 5000):
        permutation = Permutation(size, 7, 2)
        whole = permutation[np.arange(size)]
        assert list(permutation) == whole.tolist()
        assert permutation[:].tolist() == whole.tolist()
        assert permutation[size // 2 :: 3].tolist() == whole[size // 2 :: 3].tolist()
        assert permutation[np.uint8(0)] == whole[0]
        assert permutation[np.arange(size).reshape(1, size)].shape == (1, size)
        assert len(permutation) == size
    assert permutation[[]].tolist() == []
    assert repr(permutation) == "Permutation(5000, seed=7, epoch=2)"


@pytest.mark.parametrize("wrong", [-1, 10, [0, 10], np.array([3, -2])])
def test_positions_outside_are_named(wrong) -> None:
    with pytest.raises(OrderError, match=r"position (-1|10|-2) is not in \[0, 10\)"):
        Permutation(10)[wrong]


def test_wrong_sizes_and_types() -> None:
    with pytest.raises(OrderError, match="size is -1"):
        Permutation(-1)
    with pytest.raises(OrderError, match="float64"):
        Permutation(5)[np.array([0.5])]
    with pytest.raises(OrderError, match="index 5"):
        Permutation(5).inverse(5)


@pytest.mark.parametrize("wrong", ["1", 1.5, True, None])
@pytest.mark.parametrize(
    "make",
    [
        lambda wrong: Permutation(wrong),
        lambda wrong: Permutation(5, seed=wrong),
        lambda wrong: Permutation(5, epoch=wrong),
        lambda wrong: Permutation(5)[wrong],
        lambda wrong: Permutation(5).inverse(wrong),
    ],
)
def test_what_is_no_integer_is_refused(make, wrong) -> None:
    with pytest.raises(OrderError, match="it must be an integer"):
        make(wrong)


def test_a_stream_has_a_name() -> None:
    with pytest.raises(OrderError, match="stream=3; it is the name of a draw, a text"):
        Permutation(5, stream=3)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.longlong, np.uint64])
def test_integers_of_numpy_are_integers(dtype) -> None:
    found = Permutation(dtype(100), seed=dtype(7), epoch=dtype(3))
    assert list(found) == list(Permutation(100, 7, 3))
    assert found[dtype(5)] == found[5]


# Statistics. Each test gives a p-value; a true shuffle is below 1e-4 once in ten thousand runs, and
# these runs are fixed. Each must also catch a shuffle that is known to be bad.

SIZE = 8192
Shuffle = Callable[[int], NDArray[np.int64]]


def ours(seed: int) -> NDArray[np.int64]:
    return Permutation(SIZE, seed)[:]


def small_buffer(seed: int) -> NDArray[np.int64]:
    """Shuffled in windows of 64 alone."""
    windows = np.arange(SIZE).reshape(-1, 64)
    return np.concatenate(
        [window[np.argsort(Permutation(64, seed, place)[:])] for place, window in enumerate(windows)]
    )


def rotated(seed: int) -> NDArray[np.int64]:
    """Starts anywhere, then goes on in order."""
    return (np.arange(SIZE) + Permutation(SIZE, seed)[0]) % SIZE


def position_uniformity(shuffle: Shuffle) -> float:
    """Chi squared of (position, index) in 16 x 16 bins, over 20 seeds."""
    counts = np.zeros((16, 16))
    for seed in range(20):
        np.add.at(counts, (np.arange(SIZE) * 16 // SIZE, shuffle(seed) * 16 // SIZE), 1)
    expected = counts.sum() / 256
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), 15 * 15))


def pair_independence(shuffle: Shuffle) -> float:
    """Chi squared of (index, next index) in 32 x 32 bins."""
    order = shuffle(5) * 32 // SIZE
    counts = np.zeros((32, 32))
    np.add.at(counts, (order[:-1], order[1:]), 1)
    expected = (SIZE - 1) / 1024
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), 1023))


def serial_correlation(shuffle: Shuffle) -> float:
    """Correlation of an index with the one 1, 2, … 8 places on; the smallest p, times 8."""
    order = shuffle(3).astype(float)
    values = [np.corrcoef(order[:-lag], order[lag:])[0, 1] * np.sqrt(SIZE - lag) for lag in range(1, 9)]
    return float(min(1.0, 8 * min(2 * stats.norm.sf(abs(value)) for value in values)))


def first_index(shuffle: Shuffle) -> float:
    """Kolmogorov and Smirnov: the index at position 0 over 400 seeds is uniform."""
    drawn = [shuffle(seed)[0] / SIZE for seed in range(400)]
    return float(stats.kstest(drawn, "uniform").pvalue)


@pytest.mark.parametrize(
    ("test", "bad"),
    [
        (position_uniformity, small_buffer),
        (pair_independence, rotated),
        (pair_independence, small_buffer),
        (serial_correlation, rotated),
        (serial_correlation, small_buffer),
    ],
)
def test_looks_like_a_true_shuffle_where_a_bad_one_does_not(test, bad) -> None:
    assert test(ours) > 1e-3
    assert test(bad) < 1e-6


def test_first_index_is_uniform_over_seeds() -> None:
    assert first_index(ours) > 1e-3


def test_small_sizes_give_every_order_equally_often() -> None:
    seen = [tuple(Permutation(4, seed)) for seed in range(4800)]
    counts = [seen.count(order) for order in set(seen)]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(
    ("left", "right"), [((7, 1), (8, 0)), ((7, 0), (7, 1)), ((7, 0), (8, 0)), ((0, 0), (-1, 0))]
)
def test_other_seeds_and_epochs_are_unrelated(left, right) -> None:
    a, b = (Permutation(SIZE, *pair)[:] for pair in (left, right))
    assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(SIZE)
    assert (a == b).sum() < 10  # fixed points of an unrelated pair are Poisson(1)
    assert (np.diff(a) == np.diff(b)).sum() < 12


def test_streams_are_unrelated() -> None:
    a, b = (Permutation(SIZE, 1, 0, stream)[:] for stream in ("shuffle", "other"))
    assert (a == b).sum() < 10
