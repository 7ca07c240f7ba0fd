"""Codes in order of first sight, against a plain dictionary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.arrays import texts_of
from headrace.kernels.lookup import NULL_CODE
from headrace.parse.interner import Interner

id_texts = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.text(max_size=12),
    st.sampled_from(["007", "7", "-0", "0", "", "1001.0", "18446744073709551615"]),
    st.none(),
)


def _reference(values: list[str | None]) -> tuple[list[int], list[str]]:
    codes: dict[str, int] = {}
    out = [NULL_CODE if value is None else codes.setdefault(value, len(codes)) for value in values]
    return out, list(codes)


@given(values=st.lists(id_texts, max_size=60), cut=st.integers(0, 60))
@settings(deadline=None, max_examples=150)
def test_codes_are_those_of_a_dictionary_however_the_values_are_cut(
    values: list[str | None], cut: int
) -> None:
    interner = Interner(slots=4)
    parts = [interner.intern(pa.array(part, pa.string())).tolist() for part in (values[:cut], values[cut:])]
    codes, texts = _reference(values)
    assert parts[0] + parts[1] == codes
    assert interner.values().to_pylist() == texts


@given(values=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9) | st.none(), max_size=60))
@settings(deadline=None, max_examples=100)
def test_an_integer_and_its_decimal_text_are_one_entry(values: list[int | None]) -> None:
    interner = Interner(slots=4)
    as_texts = interner.intern(pa.array([None if v is None else str(v) for v in values], pa.large_string()))
    as_integers = interner.intern(pa.array(values, pa.uint64()))
    assert as_texts.tolist() == as_integers.tolist()
    small = [value if value is None or value < 2**63 else 5 for value in values]
    signed = interner.intern(pa.array(small, pa.int64())).tolist()
    assert signed == interner.intern(pa.array(small, pa.uint64())).tolist()


def test_an_array_of_nothing_but_nulls_has_no_entry() -> None:
    interner = Interner()
    assert interner.intern(pa.nulls(3)).tolist() == [NULL_CODE] * 3
    assert len(interner) == 0
    assert interner.values().to_pylist() == []


@given(
    rows=st.lists(st.none() | st.lists(id_texts.filter(bool), max_size=9), max_size=8),
    separator=st.sampled_from([",", "|", "-", "1", "::", "ü"]),
    cut=st.integers(0, 8),
)
@settings(deadline=None, max_examples=150)
def test_elements_of_written_lists_are_those_of_split(
    rows: list[list[str] | None], separator: str, cut: int
) -> None:
    texts = [None if row is None else separator.join(row) for row in rows]
    interner, known = Interner(slots=4), dict[str, int]()
    for part in (texts[:cut], texts[cut:]):
        offsets, codes = interner.lists(texts_of(pa.array(part, pa.string())), separator)
        elements = [text.split(separator) if text else [] for text in part]
        assert np.diff(offsets).tolist() == list(map(len, elements))
        flat = [element for row in elements for element in row]
        assert codes.tolist() == [known.setdefault(element, len(known)) for element in flat]
    assert interner.values().to_pylist() == list(known)


def test_texts_of_every_length_beside_one_another_and_at_the_end_of_their_bytes() -> None:
    texts = ["x" * length + last for length in range(20) for last in ("", "\0", "\0\0", "y", "é")]
    texts = list(dict.fromkeys(texts)) * 3
    interner = Interner(slots=4)
    for text in texts:
        interner.intern(pa.array([text]))
    expected = [texts.index(text) for text in texts]
    assert interner.intern(pa.array(texts)).tolist() == expected
    assert interner.values().to_pylist() == texts[: len(interner)]


def test_more_values_than_the_memo_holds() -> None:
    numbers = (np.arange(60_000) * 48271) % 30_011
    interner = Interner()
    codes = interner.lists(texts_of(pa.array(["|".join(map(str, numbers.tolist()))])), "|")[1]
    known: dict[int, int] = {}
    assert codes.tolist() == [known.setdefault(number, len(known)) for number in numbers.tolist()]
    assert interner.intern(pa.array(numbers)).tolist() == codes.tolist()
