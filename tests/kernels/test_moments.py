"""Compensated sums against exact ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.fit.statistics import fit_statistics
from headrace.kernels.moments import add_compensated

NUMBERS = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=40)


@given(values=NUMBERS, cut=st.integers(0, 40), center=st.sampled_from([0.0, 0.5, -1e9]))
@settings(deadline=None, max_examples=60)
def test_cuts_change_no_bit_and_sums_are_near_exact(values: list[float], cut: int, center: float) -> None:
    array = np.array(values)
    whole, cuts = np.zeros(4), np.zeros(4)
    add_compensated(array, center, whole)
    add_compensated(array[:cut], center, cuts)
    add_compensated(array[cut:], center, cuts)
    assert whole.tolist() == cuts.tolist()
    terms = [float(value - center) for value in array]
    assert whole[0] + whole[1] == pytest.approx(math.fsum(terms), rel=1e-14, abs=1e-3)
    assert whole[2] + whole[3] == pytest.approx(math.fsum(t * t for t in terms), rel=1e-14)


def test_what_a_plain_sum_loses() -> None:
    state = np.zeros(4)
    add_compensated(np.array([1e16, 1.0, -1e16, 1.0]), 0.0, state)
    assert state[0] + state[1] == 2.0


@given(values=NUMBERS, cut=st.integers(0, 40), buckets=st.none() | st.integers(2, 6))
@settings(deadline=None, max_examples=60)
def test_statistics_against_exact_fractions(values: list[float], cut: int, buckets: int | None) -> None:
    blocks = [np.array(values[:cut]), np.array(values[cut:])]
    fitted = fit_statistics(lambda: blocks, buckets)
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    variance = sum((value - mean) ** 2 for value in exact) / len(exact)
    assert fitted.count == len(values)
    assert (fitted.minimum, fitted.maximum) == (min(values), max(values))
    scale = max(map(abs, values))
    assert fitted.mean == pytest.approx(float(mean), rel=1e-13, abs=1e-15 * scale)
    assert fitted.deviation == pytest.approx(math.sqrt(variance), rel=1e-9, abs=1e-12 * scale)
    if buckets is not None:
        ordered = sorted(values)
        for number, border in enumerate(fitted.boundaries, 1):
            share = Fraction(number, buckets)
            assert Fraction(sum(value <= border for value in ordered), len(ordered)) >= share
            assert Fraction(sum(value < border for value in ordered), len(ordered)) < share


def test_no_value() -> None:
    fitted = fit_statistics(lambda: [np.empty(0)], 4)
    assert (fitted.count, fitted.mean, fitted.deviation, fitted.boundaries) == (0, 0.0, 0.0, ())
