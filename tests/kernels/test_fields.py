"""Texts cut into elements and judged as numbers, against plain Python."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.arrays import Texts, texts_of
from headrace.kernels import fields
from headrace.parse.lists import as_strings, cut_texts

SEPARATORS = st.sampled_from([",", "|", " ", "::", "^|", "ü", "aa"])
ROWS = st.lists(st.none() | st.text(st.sampled_from("ab:,|^ ü12"), max_size=9), max_size=8)


def view(texts: list[str | None]) -> Texts:
    return texts_of(pa.array(texts, pa.large_string()))


@given(rows=ROWS, separator=SEPARATORS)
@example(rows=["aaa", "aaaa"], separator="aa")
@settings(deadline=None, max_examples=80)
def test_elements_are_those_of_split(rows: list[str | None], separator: str) -> None:
    offsets, elements = cut_texts(view(rows), separator)
    found = as_strings(elements).to_pylist()
    expected = [row.split(separator) if row else [] for row in rows]
    assert [found[a:b] for a, b in itertools.pairwise(offsets)] == expected


def test_elements_of_a_slice_are_those_of_its_rows() -> None:
    sliced = pa.array(["x,y", None, "1,2,3", "", "z"], pa.large_string()).slice(1, 3)
    offsets, elements = cut_texts(texts_of(sliced), ",")
    assert offsets.tolist() == [0, 0, 3, 3]
    assert as_strings(elements).to_pylist() == ["1", "2", "3"]


@given(
    elements=st.lists(st.text(st.sampled_from("ab:=é"), max_size=6), max_size=8),
    separator=st.sampled_from([":", "=", "::", "é"]),
)
@settings(deadline=None, max_examples=60)
def test_last_separators_are_those_of_rpartition(elements: list[str], separator: str) -> None:
    texts = view(list(elements))
    places = np.empty(len(elements), np.int64)
    pattern = np.frombuffer(separator.encode(), np.uint8)
    fields.last_separators(texts.data, texts.begins, texts.ends, pattern, places)
    expected = [element.encode().rfind(separator.encode()) for element in elements]
    assert [int(p - b) if p >= 0 else -1 for p, b in zip(places, texts.begins, strict=True)] == expected


NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")
NOT_FINITE = re.compile(r"[ \t]*[+-]?(nan|inf|infinity)[ \t]*", re.IGNORECASE)


def kind_of(text: str) -> int:
    """What the kernel's docstring says, with regular expressions."""
    if NOT_FINITE.fullmatch(text):
        return fields.NOT_FINITE
    if not NUMBER.fullmatch(text):
        return fields.NO_NUMBER
    digits = text.lstrip("-")
    if re.search(r"[ \t]", text) or text.startswith("+") or (digits.isdigit() and len(digits) > 18):
        return fields.UNUSUAL
    return fields.INTEGER if digits.isdigit() else fields.NUMBER


TEXTS = (
    st.text(st.sampled_from("0123456789+-.eE nNaAiIfFtTyY\tx"), max_size=24)
    | st.integers().map(str)
    | st.floats().map(repr)
)


@given(texts=st.lists(st.none() | TEXTS, max_size=12))
@example(
    texts=[
        "",
        "-",
        ".",
        "+",
        "1.",
        ".5",
        "-.5e3",
        "1e",
        "e1",
        "- 1",
        "١",
        "nan",
        "-Inf",
        "infinit",
        "1" * 18,
        "1" * 19,
    ]
)
@settings(deadline=None, max_examples=150)
def test_numbers_are_judged(texts: list[str | None]) -> None:
    seen = view(texts)
    kinds, values = np.empty(len(texts), np.uint8), np.empty(len(texts), np.int64)
    fields.number_kinds(seen.data, seen.begins, seen.ends, seen.valid, kinds, values)
    for text, kind, value in zip(texts, kinds.tolist(), values.tolist(), strict=True):
        if text is None:
            assert (kind, value) == (fields.INTEGER, 0)
            continue
        assert kind == kind_of(text), text
        assert value == (int(text) if kind == fields.INTEGER else 0)
        if kind in (fields.NUMBER, fields.UNUSUAL):
            float(text)


@pytest.mark.parametrize("separator", [",", "::"])
def test_no_rows(separator: str) -> None:
    offsets, elements = cut_texts(view([]), separator)
    assert offsets.tolist() == [0]
    assert len(elements) == 0


@given(texts=st.lists(st.text(st.sampled_from("-0123.x"), max_size=6), max_size=12))
@example(texts=["", "0", ".0", "-.0", "-0.0", "1.", "1.0", "10.00", "--1.0", "1.0.0", "1.01", "x.0", "00.0"])
@settings(deadline=None, max_examples=100)
def test_integers_with_a_point_and_zeros(texts: list[str]) -> None:
    seen, found = view(list(texts)), np.empty(len(texts), np.bool_)
    fields.mark_whole_floats(seen.data, seen.begins, seen.ends, found)
    assert found.tolist() == [re.fullmatch(r"-?[0-9]+\.0+", text) is not None for text in texts]
