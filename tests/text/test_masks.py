"""Attention masks and sequence lengths, by hand and against definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import TextError
from headrace.text import cu_seqlens, document_mask

torch = pytest.importorskip("torch")


@st.composite
def segments(draw: st.DrawFn) -> np.ndarray:
    width = draw(st.integers(1, 8))
    rows = draw(st.lists(st.lists(st.integers(1, 4), max_size=4), max_size=4))
    filled = [[n + 1 for n, size in enumerate(row) for _ in range(size)][:width] for row in rows]
    return np.array([row + [0] * (width - len(row)) for row in filled], np.int64).reshape(-1, width)


@given(segments(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_query_sees_its_own_document_and_padding_sees_itself(rows: np.ndarray, causal: bool) -> None:
    mask = document_mask(rows, causal=causal)
    assert mask.dtype == np.bool_
    assert mask.shape == (len(rows), 1, rows.shape[1], rows.shape[1])
    for row, allowed in zip(rows, mask[:, 0], strict=True):
        for query, a in enumerate(row):
            for key, b in enumerate(row):
                right = query == key if a == 0 else a == b and (not causal or key <= query)
                assert allowed[query, key] == right
    np.testing.assert_array_equal(document_mask(torch.tensor(rows), causal=causal).numpy(), mask)


@given(segments())
@settings(max_examples=100, deadline=None)
def test_lengths_are_those_of_the_segments(rows: np.ndarray) -> None:
    cumulative, longest, indices = cu_seqlens(rows)
    sizes = [int((row == segment).sum()) for row in rows for segment in np.unique(row[row > 0])]
    assert cumulative.dtype == np.int32
    assert cumulative.tolist() == [0, *np.cumsum(sizes).tolist()]
    assert longest == max(sizes, default=0)
    np.testing.assert_array_equal(rows.reshape(-1)[indices], rows[rows > 0])


def test_lengths_are_of_the_kind_of_the_segments() -> None:
    rows = np.repeat([[1, 2, 0]], 300, axis=1)  # more tokens than a narrow dtype of segments counts
    found = cu_seqlens(rows)
    assert (found.cu_seqlens.dtype, found.indices.dtype) == (np.int32, np.int64)
    for dtype in (torch.uint8, torch.int32, torch.int64):
        of_torch = cu_seqlens(torch.tensor(rows, dtype=dtype))
        assert (of_torch.cu_seqlens.dtype, of_torch.indices.dtype) == (torch.int32, torch.int64)
        assert of_torch.cu_seqlens.tolist() == found.cu_seqlens.tolist()
        assert of_torch.indices.tolist() == found.indices.tolist()
        assert of_torch.max_seqlen == found.max_seqlen == 300


def test_row_borders_are_always_cut() -> None:
    found = cu_seqlens(np.array([[1, 1, 2, 0], [1, 1, 1, 2]]))
    assert found.cu_seqlens.tolist() == [0, 2, 3, 6, 7]
    assert found.indices.tolist() == [0, 1, 2, 4, 5, 6, 7]
    assert found.max_seqlen == 3


def test_another_shape_is_refused() -> None:
    with pytest.raises(TextError, match=r"expected \[B, W\]"):
        document_mask(np.array([1, 2]))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32"])
def test_any_width_of_integers_will_do(dtype: str) -> None:
    rows = np.repeat([[1, 2, 0]], 100, axis=1)
    mask, lengths = document_mask(rows), cu_seqlens(rows)
    for narrow in (rows.astype(dtype), torch.tensor(rows.astype(dtype))):
        np.testing.assert_array_equal(np.asarray(document_mask(narrow)), mask)
        assert cu_seqlens(narrow).cu_seqlens.tolist() == lengths.cu_seqlens.tolist() == [0, 100, 200]


@pytest.mark.parametrize("shape", [(0, 4), (2, 0), (0, 0)])
@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_no_rows_and_no_columns(shape: tuple[int, int], make: Any) -> None:
    nothing = make(np.zeros(shape, np.int64))
    assert tuple(document_mask(nothing).shape) == (shape[0], 1, shape[1], shape[1])
    assert cu_seqlens(nothing).cu_seqlens.tolist() == [0]
    assert cu_seqlens(nothing).max_seqlen == 0


def test_padding_between_segments_is_cut_out() -> None:
    found = cu_seqlens(np.array([[1, 0, 1], [0, 0, 0], [0, 2, 2]]))
    assert found.cu_seqlens.tolist() == [0, 1, 2, 4]
    assert found.indices.tolist() == [0, 2, 7, 8]


@pytest.mark.parametrize(
    "wrong", [np.ones((1, 3)), np.ones((1, 3), bool), torch.ones(1, 3), np.array([["a"]])]
)
def test_what_is_no_integer_is_refused(wrong: Any) -> None:
    for call in (document_mask, cu_seqlens):
        with pytest.raises(TextError, match="expected integers: 1, 2, "):
            call(wrong)
