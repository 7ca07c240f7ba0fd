"""Codes of texts and integers, and look-ups in an index, against Python's dict."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.fit.index import ABSENT, NULL, Index, buckets_of
from headrace.kernels.lookup import NULL_CODE
from headrace.parse.interner import Interner

TEXT = (
    st.sampled_from(
        [
            "",
            "0",
            "-0",
            "00",
            "7",
            "007",
            "-1",
            "ü",
            "x" * 40,
            "18446744073709551615",
            "999999999999999999",
            "1000000000000000000",
            "-9223372036854775808",
        ]
    )
    | st.text(max_size=4)
    | st.integers(-30, 30).map(str)
)
BATCH = st.one_of(
    st.tuples(st.just("text"), st.lists(st.none() | TEXT, max_size=30)),
    st.tuples(
        st.just("int64"),
        st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), max_size=30),
    ),
    st.tuples(
        st.just("uint64"), st.lists(st.none() | st.integers(0, 2**64 - 1) | st.integers(0, 9), max_size=30)
    ),
    st.tuples(st.just("null"), st.lists(st.none(), max_size=3)),
)
TYPES = {"text": pa.large_string(), "int64": pa.int64(), "uint64": pa.uint64(), "null": pa.null()}


@given(batches=st.lists(BATCH, max_size=5))
@settings(deadline=None, max_examples=80)
def test_codes_follow_first_sight_whatever_the_type(batches: list[tuple[str, list[object]]]) -> None:
    interner = Interner(slots=4)
    known: dict[str, int] = {}
    for kind, values in batches:
        codes = interner.intern(pa.array(values, TYPES[kind]))
        expected = [NULL_CODE if v is None else known.setdefault(str(v), len(known)) for v in values]
        assert codes.tolist() == expected
    assert len(interner) == len(known)
    assert interner.values().to_pylist() == list(known)


@given(values=st.lists(TEXT, unique=True, max_size=40), batch=BATCH)
@settings(deadline=None, max_examples=80)
def test_an_index_finds_what_a_dict_finds(values: list[str], batch: tuple[str, list[object]]) -> None:
    index = Index.build(pa.array(values, pa.large_string()))
    places = {value: place for place, value in enumerate(values)}
    kind, asked = batch
    found = index.find(pa.array(asked, TYPES[kind]))
    assert found.tolist() == [NULL if one is None else places.get(str(one), ABSENT) for one in asked]
    assert index.find(pa.array(values, pa.large_string())).tolist() == list(range(len(values)))


def test_many_values_that_fill_the_table_again_and_again() -> None:
    numbers = np.arange(50_000, dtype=np.int64) * 2654435761 % 100_003 - 40_000
    texts = [str(n) if n % 2 else f"t{n}" for n in numbers.tolist()]
    interner = Interner(slots=4)
    codes = interner.intern(pa.array(texts))
    known: dict[str, int] = {}
    assert codes.tolist() == [known.setdefault(text, len(known)) for text in texts]
    index = Index.build(interner.values())
    assert index.find(interner.values()).tolist() == list(range(len(known)))
    absent = pa.array([f"{n}x" for n in range(5_000)])
    assert set(index.find(absent).tolist()) == {ABSENT}


def test_slices_are_looked_up_as_they_are() -> None:
    array = pa.array(["a", None, "7", "b", "a"]).slice(1, 3)
    assert Interner().intern(array).tolist() == [NULL_CODE, 0, 1]
    assert Index.build(pa.array(["b", "7"], pa.large_string())).find(array).tolist() == [NULL, 1, 0]
    integers = pa.array([1, 2, None, 7]).slice(1)
    assert Index.build(pa.array(["7", "2"], pa.large_string())).find(integers).tolist() == [1, NULL, 0]


def test_buckets_follow_the_xxhash_package() -> None:
    import xxhash

    texts = ["", "7", "007", "ü", "x" * 100]
    expected = [xxhash.xxh64(text.encode(), seed=3).intdigest() % 11 for text in texts]
    assert buckets_of(pa.array(texts), 11, seed=3).tolist() == expected
