"""XXH64 and decimal integers against the xxhash package and Python's int."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.arrays import texts_of
from headrace.kernels import hashing
from headrace.kernels.compile import kernel

texts = st.lists(st.binary(max_size=80), min_size=1, max_size=20)


@given(texts=texts, seed=st.sampled_from([0, 7, 2**64 - 1]))
@settings(deadline=None, max_examples=60)
def test_xxh64_is_what_the_xxhash_package_gives(texts: list[bytes], seed: int) -> None:
    view = texts_of(pa.array(texts, pa.large_binary()))
    hashes = np.empty(len(texts), np.uint64)
    hashing.hash_texts(view.data, view.begins, view.ends, np.uint64(seed), hashes)
    assert hashes.tolist() == [xxhash.xxh64_intdigest(text, seed=seed) for text in texts]


@kernel
def _decimal(data):  # type: ignore[no-untyped-def]
    return hashing.decimal_value(data, 0, len(data))


def _reference(text: bytes) -> tuple[bool, int]:
    try:
        value = int(text.decode("ascii"))
    except ValueError:
        return False, 0
    canonical = str(value).encode() == text and len(text.lstrip(b"-")) <= 18
    return canonical, value if canonical else 0


@given(
    text=st.one_of(
        st.integers().map(lambda value: str(value).encode()),
        st.text("-+0123456789 _x", max_size=22).map(str.encode),
        st.binary(max_size=5),
    )
)
@settings(deadline=None, max_examples=200)
def test_a_text_is_an_integer_only_in_its_canonical_form(text: bytes) -> None:
    assert _decimal(np.frombuffer(text, np.uint8)) == _reference(text)


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
@settings(deadline=None, max_examples=100)
def test_signed_integers_are_written_as_python_writes_them(values: list[int]) -> None:
    assert _written(np.array(values, np.int64)) == [str(value) for value in values]


@given(values=st.lists(st.integers(0, 2**64 - 1), max_size=20))
@settings(deadline=None, max_examples=100)
def test_unsigned_integers_are_written_as_python_writes_them(values: list[int]) -> None:
    assert _written(np.array(values, np.uint64)) == [str(value) for value in values]


def _written(values: np.ndarray) -> list[str]:
    data = np.empty(20 * len(values), np.uint8)
    offsets = np.empty(len(values) + 1, np.int64)
    hashing.write_decimals(values, data, offsets)
    return [bytes(data[a:b]).decode() for a, b in pairwise(offsets)]
