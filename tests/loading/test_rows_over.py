"""Other arrays below the layout of rows that were made before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.errors import LoaderError
from headrace.loading.columns import Bitmap, Column, Fixed, Label, Ragged, Scalar
from headrace.loading.rows import Rows


def columns_of(rows: int, seed: int) -> list[Column]:
    """One column of each kind."""
    numbers = np.arange(rows) * 7 + seed
    offsets = np.concatenate([[0], np.cumsum(numbers % 4)]).astype(np.int64)
    elements = (np.arange(offsets[-1]) + seed) % 200
    known = numbers % 3 > 0
    return [
        Scalar("user", [(numbers % 90).astype(np.uint16)]),
        Ragged("seen", [offsets], [elements.astype(np.uint8)], 3, "left"),
        Ragged("likes", [offsets], [elements.astype(np.uint8)], 2, weights=[elements.astype(np.float32)]),
        Fixed("image", [np.outer(numbers, [1, 2]).astype(np.float32)]),
        Label("click", [known.astype(np.float32)], [Bitmap.pack(known)], [numbers.astype(np.float32)]),
        Label("sale", [known.astype(np.float32)]),
    ]


def gathered(rows: Rows) -> dict[str, Any]:
    indices = np.arange(len(rows), dtype=np.int64)
    return rows.gather(indices, indices.astype(np.uint64))


@pytest.mark.parametrize("size", [0, 1, 50])
def test_rows_over_other_arrays_are_rows_of_those(size: int) -> None:
    before = gathered(layout := Rows(columns_of(9, 0), [9], "x"))
    over, made = (
        gathered(layout.over(columns_of(size, 5), size)),
        gathered(Rows(columns_of(size, 5), [size], "y")),
    )
    assert over.keys() == made.keys()
    for name, array in made.items():
        assert over[name].dtype == array.dtype
        np.testing.assert_array_equal(over[name], array, err_msg=name)
    for name, array in gathered(layout).items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


def test_other_columns_are_refused() -> None:
    layout = Rows(columns_of(3, 0), [3], "x")
    with pytest.raises(LoaderError, match="of other columns, or of other dtypes"):
        layout.over([Scalar("user", [np.zeros(3, np.uint32)]), *columns_of(3, 0)[1:]], 3)
    with pytest.raises(LoaderError, match="of other columns, or of other dtypes"):
        layout.over(columns_of(3, 0)[1:], 3)
