from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.kernels import alias
from headrace.kernels.compile import kernel

CAPACITY = 1 << 32
WORD = st.integers(0, CAPACITY - 1)
WEIGHTS = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e6)), min_size=1, max_size=40).filter(any)


@kernel
def allowed(cumulative, excluded, count, a, b):  # type: ignore[no-untyped-def]
    return alias.draw_allowed(cumulative, excluded, count, a, b)


def table_shares(table: np.ndarray) -> list[int]:
    """How many of the V * 2**32 draws give each index, from the columns, in Python integers."""
    shares = [0] * len(table)
    for column, entry in enumerate(table.tolist()):
        own, other = entry >> 32, entry & (CAPACITY - 1)
        shares[column] += own
        shares[other] += CAPACITY - own
    return shares


@settings(deadline=None, max_examples=200)
@given(WEIGHTS)
def test_table_holds_exactly_the_masses(weights: list[float]) -> None:
    masses = alias.integer_masses(np.array(weights))
    assert sum(masses.tolist()) == len(weights) * CAPACITY
    assert [mass > 0 for mass in masses.tolist()] == [weight > 0 for weight in weights]
    assert table_shares(alias.alias_table(masses)) == masses.tolist()


@settings(deadline=None, max_examples=100)
@given(WEIGHTS)
def test_masses_are_the_weights(weights: list[float]) -> None:
    masses = alias.integer_masses(np.array(weights))
    total = sum(weights)
    for mass, weight in zip(masses.tolist(), weights, strict=True):
        assert mass / (len(weights) * CAPACITY) == pytest.approx(weight / total, rel=1e-6, abs=1e-9)


def test_counts_16_and_1_to_the_three_quarters_are_8_to_1() -> None:
    masses = alias.integer_masses(np.array([16.0, 1.0]) ** 0.75)
    assert Fraction(int(masses[0]), int(masses[1])) == pytest.approx(8, rel=1e-9)
    assert int(np.cumsum(masses)[-1]) == 2 * CAPACITY  # the last cumulative value is exactly 1


@settings(deadline=None, max_examples=200)
@given(WEIGHTS, WORD, WORD)
def test_draw_is_the_high_half_of_the_product(weights: list[float], a: int, b: int) -> None:
    table = alias.alias_table(alias.integer_masses(np.array(weights)))
    scaled = (a << 32 | b) * len(weights) >> 32
    column, coin = scaled >> 32, scaled & (CAPACITY - 1)
    entry = int(table[column])
    expected = column if coin < entry >> 32 else entry & (CAPACITY - 1)
    drawn = alias.draw_many(table, np.array([[a, b]], np.uint32))[0]
    assert drawn == expected
    assert weights[drawn] > 0


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_inversion_is_the_kth_allowed_unit_of_mass(data: st.DataObject) -> None:
    weights = data.draw(WEIGHTS)
    excluded = data.draw(st.lists(st.integers(0, len(weights) - 1), max_size=8))
    a, b = data.draw(WORD), data.draw(WORD)
    masses = alias.integer_masses(np.array(weights)).tolist()
    drawn = allowed(
        np.cumsum(np.array(masses, np.uint64)),
        np.array([*excluded, -7], np.int64),
        len(excluded),
        np.uint32(a),
        np.uint32(b),
    )
    left = [0 if index in excluded else mass for index, mass in enumerate(masses)]
    if not any(left):
        assert drawn == -1
        return
    place = (a << 32 | b) * sum(left) >> 64
    expected = next(index for index in range(len(left)) if sum(left[: index + 1]) > place)
    assert drawn == expected


def test_ends_of_the_range() -> None:
    cumulative = np.cumsum(alias.integer_masses(np.array([0.0, 3.0, 1.0, 0.0])))
    top = np.uint32(CAPACITY - 1)
    assert allowed(cumulative, np.empty(0, np.int64), 0, np.uint32(0), np.uint32(0)) == 1
    assert allowed(cumulative, np.empty(0, np.int64), 0, top, top) == 2
    assert allowed(cumulative, np.array([2, 2]), 2, top, top) == 1
    assert allowed(cumulative, np.array([2, 1]), 2, top, top) == -1


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([], "shape"),
        ([[1.0]], "shape"),
        ([1.0, -1.0], "weight 1 is -1.0"),
        ([1.0, float("nan")], "weight 1 is nan"),
        ([0.0, 0.0], "all weights are 0"),
    ],
)
def test_impossible_weights(weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        alias.integer_masses(np.array(weights))
