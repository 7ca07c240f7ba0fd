"""Codes of few rows, one for each element, beside those of the interner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.arrays import texts_of
from headrace.kernels.lookup import NULL_CODE
from headrace.parse.codes import Codes, OwnCodes
from headrace.parse.interner import Interner

TYPES = {
    "string": (pa.string(), st.text("ab7é", max_size=3)),
    "large_string": (pa.large_string(), st.text("ab7é", max_size=3)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
}


def decoded(codes: Codes, found: np.ndarray[Any, Any]) -> list[str | None]:
    texts = codes.values().to_pylist()
    return [None if code == NULL_CODE else texts[code] for code in found.tolist()]


@settings(deadline=None)
@given(data=st.data(), name=st.sampled_from(list(TYPES)))
def test_both_kinds_of_codes_mean_the_same_texts(data: st.DataObject, name: str) -> None:
    kind, element = TYPES[name]
    values = data.draw(st.lists(st.none() | element, max_size=6))
    array = pa.array([*values[:1], *values], kind)[1:] if values else pa.array(values, kind)
    own, interner = OwnCodes(), Interner()
    expected = [None if value is None else str(value) for value in values]
    assert decoded(own, own.intern(array)) == decoded(interner, interner.intern(array)) == expected
    assert own.values().null_count == 0


@pytest.mark.parametrize("values", [[], ["a"], ["a", None, "", "a"]])
def test_texts_without_an_array(values: list[str | None]) -> None:
    codes = OwnCodes()
    assert decoded(codes, codes.texts(texts_of(pa.array(values, pa.string())))) == values


def test_nothing_but_nulls() -> None:
    codes = OwnCodes()
    assert codes.intern(pa.nulls(2, pa.string())).tolist() == [NULL_CODE] * 2
    assert OwnCodes().values().to_pylist() == []
