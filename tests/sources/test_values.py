"""The one text of a number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.sources.values import as_text, float_text, floats_as_text, joined, lossless, number_text


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ("007", "007"),
        ("1e3", "1000"),
        ("-1.0", "-1"),
        ("-0.0", "0"),
        ("-0", "0"),
        ("1e-5", "1e-05"),
        ("2.50", "2.5"),
        ("18446744073709551615", "18446744073709551615"),
        ("1E22", "10000000000000000000000"),
    ],
)
def test_number_text(literal: str, text: str) -> None:
    assert number_text(literal) == text


def test_beyond_float64() -> None:
    with pytest.raises(OverflowError):
        number_text("1e400")


@settings(max_examples=300, deadline=None)
@given(values=st.lists(st.floats() | st.none() | st.integers(-(10**18), 10**18).map(float), max_size=20))
def test_float_arrays_have_the_text_of_their_floats(values: list[float | None]) -> None:
    expected = [None if value is None else float_text(value) for value in values]
    assert floats_as_text(pa.array(values, pa.float64())).to_pylist() == expected


@settings(max_examples=200, deadline=None)
@given(value=st.floats(width=32))
def test_float32_has_its_own_shortest_text(value: float) -> None:
    text = floats_as_text(pa.array([value], pa.float32()))[0].as_py()
    assert math.isnan(value) or np.float32(float(text)) == np.float32(value)
    assert len(text) <= max(len(float_text(float(str(np.float32(value))))), 1)


@pytest.mark.parametrize(
    ("values", "wanted", "kept"),
    [
        (["1", None, "-2"], pa.int64(), True),
        (["007"], pa.int64(), False),
        (["18446744073709551615"], pa.uint64(), True),
        (["1.5", "2"], pa.float64(), True),
        (["1.50"], pa.float64(), False),
        (["9007199254740993"], pa.float64(), False),
        (["x"], pa.float64(), False),
        ([["1"], None, []], pa.list_(pa.int64()), True),
        ([["1", "x"]], pa.list_(pa.int64()), False),
    ],
)
def test_lossless_or_not_at_all(values: list[Any], wanted: pa.DataType, kept: bool) -> None:
    array = lossless(values, wanted)
    assert (array is not None) == kept
    if array is not None:
        assert array.type == wanted
        assert as_text(array).to_pylist() == values


def test_pieces_of_other_types_become_text() -> None:
    assert joined([pa.array([1]), pa.array([2])]).type == pa.int64()
    assert joined([pa.array([1]), pa.array([0.5]), pa.array(["x"])]).to_pylist() == ["1", "0.5", "x"]
    lists = joined([pa.array([[1], None]), pa.array([["x"]])])
    assert lists.to_pylist() == [["1"], None, ["x"]]
