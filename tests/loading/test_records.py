"""Records: the same batches as from columns, whatever the columns are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.loading import Bitmap, Fixed, Label, Ragged, Rows, Scalar
from headrace.loading.columns import Column
from headrace.loading.records import pack, record_dtype, unpack
from headrace.testing import assert_batches_equal

DTYPES = ("uint8", "uint16", "uint32", "uint64", "float32", "int64")


@st.composite
def shards_of_columns(draw: st.DrawFn) -> list[list[Column]]:
    """Draw the columns of one to three shards, each alone."""
    sizes = draw(st.lists(st.integers(0, 6), min_size=1, max_size=3))
    kinds = draw(st.lists(st.sampled_from(["scalar", "list", "label", "vector"]), max_size=6))
    dtypes = [draw(st.sampled_from(DTYPES)) for _ in kinds]
    generator = np.random.default_rng(draw(st.integers(0, 1000)))  # noqa: TID251
    wide = draw(st.booleans())

    def column(kind: str, name: str, dtype: str, rows: int) -> Column:
        values = generator.integers(0, 200, rows).astype(dtype)
        if kind == "scalar":
            return Scalar(name, [values], [Bitmap.pack(values > 100)])
        if kind == "label":
            known = [Bitmap.pack(values > 50)] if rows % 2 else None
            return Label(name, [values.astype(np.float32)], known, [generator.random(rows, np.float32)])
        if kind == "vector":
            return Fixed(name, [generator.random((rows, 3), np.float32)])
        lengths = generator.integers(0, 4, rows)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64 if wide else np.int32)
        elements = generator.integers(0, 200, offsets[-1]).astype(np.uint16)
        return Ragged(name, [offsets], [elements], 3, "left")

    return [
        [
            column(kind, f"c{place}", dtype, rows)
            for place, (kind, dtype) in enumerate(zip(kinds, dtypes, strict=True))
        ]
        for rows in sizes
    ]


def joined(shards: list[list[Column]]) -> list[Column]:
    """Return the columns of several shards from those of each."""

    def together(parts: list[Column]) -> Column:
        first = parts[0]
        fields = {
            name: [shard for part in parts for shard in (getattr(part, name) or [None])]
            for name in ("values", "offsets", "weights", "validity")
            if getattr(first, name, None) is not None
        }
        return type(first)(**{**first.__dict__, **fields})

    return [together([shard[place] for shard in shards]) for place in range(len(shards[0]))]


def rows_in(columns: list[Column]) -> int:
    if not columns:
        return 3
    first = columns[0]
    return len(first.offsets[0]) - 1 if isinstance(first, Ragged) else len(first.values[0])


@given(shards_of_columns(), st.integers(1, 4))
def test_batches_are_the_same(shards: list[list[Column]], piece: int) -> None:
    columns = joined(shards)
    sizes = [rows_in(shard) for shard in shards]
    dtype = record_dtype(columns)
    records = [
        np.concatenate([pack(shard, dtype, a, min(a + piece, rows + 1)) for a in range(0, rows + 1, piece)])
        for shard, rows in zip(shards, sizes, strict=True)
    ]
    assert [len(each) for each in records] == [rows + 1 for rows in sizes]
    expected = Rows(columns, sizes, "x", masks=True)
    found = Rows(unpack(columns, records), sizes, "x", masks=True)
    everything = np.arange(sum(sizes), dtype=np.int64)[::-1].copy()
    keys = everything.astype(np.uint64)
    assert_batches_equal(found.gather(everything, keys), expected.gather(everything, keys))


def test_a_record_has_scalars_labels_weights_and_where_lists_begin() -> None:
    columns: list[Column] = [
        Scalar("slot", [np.array([1, 2], np.uint8)]),
        Scalar("user", [np.array([70000, 80000], np.uint32)]),
        Ragged("history", [np.array([0, 2, 3], np.int32)], [np.array([5, 6, 7], np.uint16)], 2, "left"),
        Fixed("vector", [np.zeros((2, 3), np.float32)]),
        Label("click", [np.array([0, 1], np.float32)], None, [np.array([0.5, 2], np.float32)]),
    ]
    dtype = record_dtype(columns)
    assert dtype.itemsize == 20  # four fields of 4 bytes, one of 1, and the end of the last
    assert dtype.names == ("1.values", "2.offsets", "4.values", "4.weights", "0.values")
    assert pack(columns, dtype, 0, 3).tolist() == [
        (70000, 0, 0.0, 0.5, 1),
        (80000, 2, 1.0, 2.0, 2),
        (0, 3, 0.0, 0.0, 0),
    ]
