"""Numbers and flags from every type, against Python's float."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import SourceError
from headrace.parse.numbers import in_float32, read_flags, read_numbers

TEXTS = (
    st.floats().map(repr)
    | st.integers().map(str)
    | st.text(st.sampled_from("0123456789.eE+- nainf"), max_size=8)
)


def expected_number(text: str | None, dtype: str) -> float | None:
    """Python's float, but for underscores and digits of other scripts, which the alphabet lacks."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    if not math.isfinite(value) or (dtype == "int" and value != math.floor(value)):
        return None
    return value


@given(texts=st.lists(st.none() | TEXTS, max_size=8), dtype=st.sampled_from(["int", "float"]))
@settings(deadline=None, max_examples=150)
def test_texts(texts: list[str | None], dtype: str) -> None:
    array = pa.array(texts, pa.string())
    values, present, faults = read_numbers(array, "x", dtype, "bad")  # type: ignore[arg-type]
    expected = [expected_number(text, dtype) for text in texts]
    assert [v if p else None for v, p in zip(values.tolist(), present.tolist(), strict=True)] == expected
    wrong = [row for row, text in enumerate(texts) if text is not None and expected[row] is None]
    assert sorted(faults.rows) == wrong
    assert not values[~present].any()


@given(values=st.lists(st.none() | st.floats(), max_size=8), nan=st.sampled_from(["bad", "missing"]))
@settings(deadline=None, max_examples=60)
def test_floats(values: list[float | None], nan: str) -> None:
    # Arrow reads NaN of Python lists as NaN, not as null, when the type is given.
    array = pa.array(values, pa.float64(), from_pandas=False)
    numbers, present, faults = read_numbers(array, "x", "float", nan)  # type: ignore[arg-type]
    finite = [value is not None and math.isfinite(value) for value in values]
    assert present.tolist() == finite
    assert numbers.tolist() == [v if ok else 0.0 for v, ok in zip(values, finite, strict=True)]
    bad = [row for row, v in enumerate(values) if v is not None and not finite[row]]
    assert sorted(faults.rows) == (bad if nan == "bad" else [])


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.int64(), pa.float32()])
def test_types(kind: pa.DataType) -> None:
    values, present, faults = read_numbers(pa.array([0, None, 100], kind), "x", "int", "bad")
    assert (values.tolist(), present.tolist(), len(faults)) == ([0, 0, 100], [True, False, True], 0)


@pytest.mark.parametrize(
    "array", [pa.array([1], pa.timestamp("s")), pa.array([1], pa.date32()), pa.array([1], pa.time32("s"))]
)
def test_times_are_no_numbers(array: pa.Array) -> None:
    for read in (lambda: read_numbers(array, "x", "float", "bad"), lambda: read_flags(array, "x")):
        with pytest.raises(
            SourceError,
            match=rf"x holds {array.type}".replace("[", r"\[") + r" values, expected numbers\. Declare",
        ):
            read()


def test_flags() -> None:
    values, present, faults = read_flags(pa.array(["1", "true", "False", "0", "2", "no", None, " 1 "]), "y")
    assert values[present].tolist() == [1, 1, 0, 0, 1]
    assert dict(zip(faults.rows, faults.reasons, strict=True)) == {
        4: "y is '2', expected 0 or 1",
        5: "y is 'no', expected a number",
    }
    values, present, faults = read_flags(pa.array([True, None, False]), "y")
    assert (values.tolist(), present.tolist(), len(faults)) == ([1, 0, 0], [True, False, True], 0)
    assert read_flags(pa.array([1, 0, 3]), "y")[2].reasons == ["y is '3', expected 0 or 1"]


def test_the_edge_of_float32() -> None:
    largest = float(np.finfo(np.float32).max)
    assert float(str(np.float32(largest))) > largest  # as NumPy and Java write it
    for inside in (largest, -largest, 3.4028235e38, np.nextafter(largest, np.inf), 3.4028235677973362e38):
        assert in_float32(np.array([inside])).tolist() == [True]
        assert np.float32(abs(inside)) == largest
    for beyond in (3.4028235677973366e38, -1e39, np.inf, np.nan):
        assert in_float32(np.array([beyond])).tolist() == [False]


def test_long_values_are_cut_in_messages() -> None:
    reason = read_numbers(pa.array(["x" * 500]), "x", "float", "bad")[2].reasons[0]
    assert "... (502 characters), expected a number" in reason
    assert len(reason) < 130
