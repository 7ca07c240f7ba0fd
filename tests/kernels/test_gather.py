"""The gather kernel, through ``Rows``, against a plain Python reference over lists."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import LoaderError
from headrace.kernels.compile import kernel
from headrace.kernels.gather import locate
from headrace.kernels.gather_scalars import lines_of
from headrace.kernels.operations import OPERATION_FIELDS, PLACE, RECORD
from headrace.loading import Bitmap, Fixed, Label, Ragged, Rows, Scalar
from headrace.loading.tables import build_table

ID_DTYPES = ("uint8", "uint16", "uint32", "uint64")


@dataclass
class Data:
    """Some rows as lists, and as columns cut into shards."""

    ids: list[int]
    numbers: list[float]
    lists: list[list[int]]
    weights: list[list[float]]
    vectors: list[list[float]]
    present: list[bool]
    shard_rows: list[int]
    max_length: int
    pad: str
    columns: list[Any]


def cut(values: list[Any], shard_rows: list[int]) -> list[list[Any]]:
    ends = np.cumsum([0, *shard_rows])
    return [values[start:stop] for start, stop in pairwise(ends)]


def bitmap(present: list[bool], offset: int) -> Bitmap:
    """A bitmap that begins at some bit, with ones before it and behind it."""
    bits = np.ones(offset + len(present) + 3, bool)
    bits[offset : offset + len(present)] = present
    return Bitmap(np.packbits(bits, bitorder="little"), offset)


def ragged_arrays(lists: list[list[Any]], dtype: str, before: int, wide: bool) -> tuple[Any, Any]:
    """Offsets that start at ``before``, and values with foreign ones on both sides."""
    offsets = before + np.cumsum([0, *map(len, lists)])
    values = [9] * before + [value for each in lists for value in each] + [8, 8]
    return offsets.astype(np.int64 if wide else np.int32), np.array(values).astype(dtype)


@st.composite
def data(draw: st.DrawFn) -> Data:
    shard_rows = draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    rows = sum(shard_rows)
    id_dtype = draw(st.sampled_from(ID_DTYPES))
    largest = min(np.iinfo(id_dtype).max, 2**31 - 1)
    ids = st.integers(0, largest)
    many = {"min_size": rows, "max_size": rows}
    max_length = draw(st.integers(0, 9))
    lists = draw(st.lists(st.lists(ids, max_size=max_length + 2), **many))
    present = draw(st.lists(st.booleans(), **many))
    before, wide, offset = draw(st.integers(0, 12)), draw(st.booleans()), draw(st.integers(0, 9))
    pad = draw(st.sampled_from(["left", "right"]))
    floats = [float(place) / 2 for place in range(rows)]
    weights = [[float(value % 7) for value in each] for each in lists]
    vectors = [[float(place), -float(place)] for place in range(rows)]
    row_ids = draw(st.lists(ids, **many))
    pairs = [ragged_arrays(shard, id_dtype, before, wide) for shard in cut(lists, shard_rows)]
    weight_arrays = [ragged_arrays(shard, "float32", before, wide)[1] for shard in cut(weights, shard_rows)]
    validity = [
        bitmap(shard, offset) if draw(st.booleans()) or not all(shard) else None
        for shard in cut(present, shard_rows)
    ]
    columns = [
        Scalar("id", [np.array(shard, id_dtype) for shard in cut(row_ids, shard_rows)], validity),
        Scalar("number", [np.array(shard, np.float32) for shard in cut(floats, shard_rows)]),
        Ragged(
            "list", [pair[0] for pair in pairs], [pair[1] for pair in pairs], max_length, pad, weight_arrays
        ),
        Fixed("vector", [np.array(shard, np.float32).reshape(-1, 2) for shard in cut(vectors, shard_rows)]),
        Label("label", [np.array(shard, np.float32) for shard in cut(floats, shard_rows)], validity),
    ]
    return Data(row_ids, floats, lists, weights, vectors, present, shard_rows, max_length, pad, columns)


def padded(values: list[Any], width: int, pad: str) -> list[Any]:
    if pad == "left":
        own = values[max(len(values) - width, 0) :] if width else []
        return [0] * (width - len(own)) + own
    own = values[:width]
    return own + [0] * (width - len(own))


def expected(rows: Data, index: int, width: int) -> dict[str, Any]:
    """One row of a padded batch, from the lists."""
    values = rows.lists[index]
    length = min(len(values), rows.max_length)
    return {
        "id": rows.ids[index],
        "id_present": rows.present[index],
        "number": rows.numbers[index],
        "number_present": True,
        "list": padded(values, rows.max_length, rows.pad),
        "list_mask": padded([True] * length, width, rows.pad),
        "list_lengths": length,
        "list_weights": padded(rows.weights[index], rows.max_length, rows.pad),
        "list_present": True,
        "vector": rows.vectors[index],
        "vector_present": True,
        "label": rows.numbers[index],
        "label_mask": rows.present[index],
        "sample_id": index,
    }


@settings(deadline=None, max_examples=150)
@given(rows=data(), id_dtype=st.sampled_from(["int64", "int32"]), draw=st.data())
def test_gather_equals_the_lists(rows: Data, id_dtype: str, draw: st.DataObject) -> None:
    total = sum(rows.shard_rows)
    indices = draw.draw(st.lists(st.integers(0, total - 1), max_size=30)) if total else []
    space = Rows(rows.columns, rows.shard_rows, "data", id_dtype=id_dtype, masks=True)
    batch = space.gather(np.array(indices, np.int64), np.zeros(len(indices), np.uint64))
    for place, index in enumerate(indices):
        for name, value in expected(rows, index, rows.max_length).items():
            assert batch[name][place].tolist() == value, (name, place, index)
    assert batch["id"].dtype == batch["list"].dtype == np.dtype(id_dtype)
    assert batch["list_lengths"].dtype == np.int32
    assert batch["list_mask"].dtype == batch["id_present"].dtype == bool
    assert batch["list_weights"].dtype == batch["vector"].dtype == np.float32


@settings(deadline=None, max_examples=60)
@given(rows=data(), draw=st.data())
def test_jagged_and_tight_layouts_hold_the_same_values(rows: Data, draw: st.DataObject) -> None:
    total = sum(rows.shard_rows)
    indices = draw.draw(st.lists(st.integers(0, total - 1), max_size=30)) if total else []
    array, keys = np.array(indices, np.int64), np.zeros(len(indices), np.uint64)
    tight = Rows(rows.columns, rows.shard_rows, "data", pad_to="batch").gather(array, keys)
    jagged = Rows(rows.columns, rows.shard_rows, "data", layout="jagged").gather(array, keys)
    width = max((min(len(rows.lists[index]), rows.max_length) for index in indices), default=0)
    assert tight["list"].shape == tight["list_mask"].shape == (len(indices), width)
    flat = [
        value
        for place, mask in enumerate(tight["list_mask"])
        for value in tight["list"][place][mask].tolist()
    ]
    assert jagged["list"].tolist() == flat
    assert jagged["list_weights"].size == len(flat)
    assert jagged["list_lengths"].tolist() == tight["list_lengths"].tolist()
    assert "list_mask" not in jagged


@pytest.mark.parametrize("dtype", ID_DTYPES)
@pytest.mark.parametrize("id_dtype", ["int64", "int32"])
@pytest.mark.parametrize("pad", ["left", "right"])
def test_batches_of_many_rows_and_long_lists(dtype: str, id_dtype: str, pad: str) -> None:
    generator = np.random.default_rng(3)  # noqa: TID251
    lengths = generator.integers(0, 60, 500)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = generator.integers(0, 200, offsets[-1]).astype(dtype)
    weights = generator.random(offsets[-1], np.float32)
    ids = [generator.integers(0, 200, 500).astype(dtype) for _ in range(3)]
    columns = [Scalar(f"id{number}", [array]) for number, array in enumerate(ids)]
    space = Rows(
        [*columns, Ragged("list", [offsets], [values], 37, pad, [weights])], [500], "x", id_dtype=id_dtype
    )
    chosen = generator.permutation(500)[:300]
    batch = space.gather(chosen, np.zeros(300, np.uint64))
    for place, row in enumerate(chosen):
        own = slice(offsets[row], offsets[row + 1])
        assert batch["list"][place].tolist() == padded(values[own].tolist(), 37, pad)
        assert batch["list_weights"][place].tolist() == padded(weights[own].tolist(), 37, pad)
        assert batch["list_mask"][place].tolist() == padded([True] * min(lengths[row], 37), 37, pad)
    assert all((batch[f"id{number}"] == array[chosen]).all() for number, array in enumerate(ids))


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
@pytest.mark.parametrize("row", [0, 127, 128, 299])
@pytest.mark.parametrize("place", [0, 3, 8, 20])
def test_any_id_that_does_not_fit_is_found_where_it_is(dtype: str, row: int, place: int) -> None:
    fields = np.zeros(300, [("item", dtype), ("city", np.uint16), ("user", dtype)])
    fields["user"][row] = 2**31
    columns = [Scalar(name, [fields[name]]) for name in ("item", "city", "user")]
    space = Rows(columns, [300], "x", id_dtype="int32")
    with pytest.raises(LoaderError, match=rf"user: row {row} holds an id that int32"):
        space.gather(np.arange(300), np.zeros(300, np.uint64))
    values = np.zeros(300 * 21, dtype)
    values[row * 21 + place] = 2**31
    lists = Rows([Ragged("list", [np.arange(301) * 21], [values], 21)], [300], "x", id_dtype="int32")
    with pytest.raises(LoaderError, match=rf"list: row {row} holds an id that int32"):
        lists.gather(np.arange(300), np.zeros(300, np.uint64))


def test_scalars_that_lie_apart_by_chance_as_fields_do_are_read_as_well() -> None:
    block = np.arange(40, dtype=np.uint32)
    columns = [
        Scalar("a", [block[0:5], block[10:15]]),
        Scalar("b", [block[20:25], block[30:35]]),
        Scalar("c", [block[5:10], block[35:40]]),
        Scalar("d", [block[0:10:2], block[20:30:2]]),
    ]
    batch = Rows(columns, [5, 5], "x").gather(np.array([1, 7]), np.zeros(2, np.uint64))
    assert {name: batch[name].tolist() for name in "abcd"} == {
        "a": [1, 12],
        "b": [21, 32],
        "c": [6, 37],
        "d": [2, 24],
    }


def test_fields_lie_less_than_a_stride_apart() -> None:
    block = np.zeros(10_000, np.uint32)
    fields = np.zeros(100, np.dtype([("a", np.uint32), ("b", np.uint32)]))
    columns = [
        Scalar("first", [block[:100]]),
        Scalar("next", [block[100:200]]),
        Scalar("far", [block[-100:]]),
        Scalar("b", [fields["b"]]),
        Scalar("a", [fields["a"]]),
    ]
    operations = build_table(columns, (100,), np.dtype(np.int64), masks=False, flat=False).operations
    assert operations[:, RECORD].tolist() == [0, 1, 2, 3, 3]
    assert operations[:, PLACE].tolist() == [0, 0, 0, 0, -4]


@kernel
def lines_asked_for(operations):  # type: ignore[no-untyped-def]
    return lines_of(operations, 0).copy()


@given(places=st.lists(st.integers(-300, 300), min_size=1, max_size=12), start=st.integers(0, 63))
@settings(deadline=None)
def test_the_lines_of_all_fields_are_asked_for_and_no_others(places: list[int], start: int) -> None:
    operations = np.zeros((len(places), OPERATION_FIELDS), np.int64)
    operations[:, PLACE] = places
    found = lines_asked_for(operations).tolist()
    assert {(start + place) // 64 for place in found} == {(start + place) // 64 for place in places}


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
@pytest.mark.parametrize("layout", ["padded", "jagged"])
def test_ids_that_int32_cannot_hold_are_an_error_and_never_wrap(dtype: str, layout: str) -> None:
    values = [np.array([1, 2**31, 3], dtype)]
    scalar = Rows([Scalar("user", values)], [3], "x", id_dtype="int32", layout=layout)
    ragged = Rows([Ragged("user", [np.arange(4)], values, 2)], [3], "x", id_dtype="int32", layout=layout)
    for space in (scalar, ragged):
        space.gather(np.array([0, 2]), np.zeros(2, np.uint64))
        with pytest.raises(LoaderError, match=r"user: row 1 holds an id that int32 cannot hold.*int64"):
            space.gather(np.array([0, 1]), np.zeros(2, np.uint64))
    wide = Rows([Scalar("user", values)], [3], "x").gather(np.array([1]), np.zeros(1, np.uint64))
    assert wide["user"].tolist() == [2**31]


def test_a_neighbour_that_does_not_fit_is_nobodys_error() -> None:
    values = [np.array([2**40, 5, 2**40, 7], np.uint64)]
    space = Rows([Ragged("user", [np.array([0, 1, 2, 3, 4])], values, 2)], [4], "x", id_dtype="int32")
    assert space.gather(np.array([1, 3]), np.zeros(2, np.uint64))["user"].tolist() == [[5, 0], [7, 0]]


def test_ids_beyond_int64_are_an_error() -> None:
    space = Rows([Scalar("user", [np.array([2**63 - 1, 2**63], np.uint64)])], [2], "x")
    assert space.gather(np.array([0]), np.zeros(1, np.uint64))["user"].tolist() == [2**63 - 1]
    with pytest.raises(LoaderError, match="row 1 holds an id that int64 cannot hold"):
        space.gather(np.array([1]), np.zeros(1, np.uint64))


@pytest.mark.parametrize("offsets", [[0, 5, 9], [0, -1, 2], [3, 1, 2], [-1, 1, 2]])
def test_damaged_offsets_are_an_error_and_not_a_crash(offsets: list[int]) -> None:
    space = Rows([Ragged("list", [np.array(offsets)], [np.zeros(4, np.uint8)], 3)], [2], "x")
    with pytest.raises(LoaderError, match=r"list: the offsets of row \d point outside.*headrace verify"):
        space.gather(np.array([1, 0]), np.zeros(2, np.uint64))


@pytest.mark.parametrize("index", [-1, 3, 2**40])
def test_indices_outside_are_an_error(index: int) -> None:
    space = Rows([Scalar("id", [np.zeros(3, np.uint8)])], [3], "x")
    with pytest.raises(LoaderError, match=rf"sample {index} is not in \[0, 3\)"):
        space.gather(np.array([0, index]), np.zeros(2, np.uint64))


@settings(deadline=None, max_examples=60)
@given(shard_rows=st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_locate_finds_shard_and_row(shard_rows: list[int]) -> None:
    starts = np.cumsum([0, *shard_rows])
    indices = np.arange(starts[-1])
    shard, row = np.empty(indices.size, np.int32), np.empty(indices.size, np.int64)
    assert locate(indices, starts, shard, row) == -1
    np.testing.assert_array_equal(shard, np.repeat(np.arange(len(shard_rows)), shard_rows))
    np.testing.assert_array_equal(starts[shard] + row, indices)
