"""Rows: the contract's batch, views, what does not fit."""

from __future__ import annotations

import pickle  # noqa: TID251  (what a worker process does)

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import LoaderError
from headrace.loading import Bitmap, Fixed, Label, Loader, Ragged, Rows, Scalar
from headrace.testing import assert_batches_equal, check_sample_space

NO_KEYS = np.empty(0, np.uint64)


def history(*rows: list[int], pad: str = "left", max_length: int = 3) -> Rows:
    offsets = np.cumsum([0, *map(len, rows)])
    values = np.array([value for row in rows for value in row], np.uint16)
    return Rows([Ragged("history", [offsets], [values], max_length, pad)], [len(rows)], "x")


def take(space: Rows, *indices: int) -> dict[str, np.ndarray]:
    return space.gather(np.array(indices, np.int64), np.zeros(len(indices), np.uint64))


def everything(**options) -> Rows:
    counts = [4, 0, 6]
    lists = [[place] * (place % 4) for place in range(10)]
    shards = [lists[:4], [], lists[4:]]
    offsets = [np.cumsum([0, *map(len, shard)]).astype(np.int32) for shard in shards]
    values = [np.array([value for each in shard for value in each], np.uint8) for shard in shards]
    columns = [
        Scalar(
            "user",
            [np.arange(count, dtype=np.uint32) for count in counts],
            [None, None, Bitmap.pack(np.arange(6) > 2)],
        ),
        Scalar("price", [np.arange(count, dtype=np.float32) for count in counts]),
        Ragged("tags", offsets, values, 3, weights=[each.astype(np.float32) for each in values]),
        Fixed("image", [np.ones((count, 2), np.float32) for count in counts]),
        Label("click", [np.zeros(count, np.float32) for count in counts]),
        Label(
            "delay",
            [np.arange(count, dtype=np.int64) for count in counts],
            [None] * 3,
            [np.ones(count, np.float32) for count in counts],
        ),
        Scalar("weight", [np.ones(count, np.float32) for count in counts]),
    ]
    return Rows(columns, counts, "everything", **options)


def test_a_batch_is_what_the_contract_says() -> None:
    batch = take(everything(masks=True), 0, 5, 9)
    assert {name: (array.dtype.name, array.shape) for name, array in batch.items()} == {
        "user": ("int64", (3,)),
        "user_present": ("bool", (3,)),
        "price": ("float32", (3,)),
        "price_present": ("bool", (3,)),
        "tags": ("int64", (3, 3)),
        "tags_mask": ("bool", (3, 3)),
        "tags_lengths": ("int32", (3,)),
        "tags_weights": ("float32", (3, 3)),
        "tags_present": ("bool", (3,)),
        "image": ("float32", (3, 2)),
        "image_present": ("bool", (3,)),
        "click": ("float32", (3,)),
        "delay": ("int64", (3,)),
        "delay_mask": ("bool", (3,)),
        "delay_weight": ("float32", (3,)),
        "weight": ("float32", (3,)),
        "weight_present": ("bool", (3,)),
        "sample_id": ("int64", (3,)),
    }
    assert batch["user_present"].tolist() == [True, False, True]


def test_roles_group_the_batch() -> None:
    loader = Loader(everything(), batch_size=4, group=True, last="pad")
    batch = next(iter(loader))
    assert set(batch["targets"]) == {"click", "delay", "delay_mask", "delay_weight"}
    assert set(batch["meta"]) == {"weight", "sample_id", "valid"}
    assert "user" in batch["inputs"]


@pytest.mark.parametrize(
    ("rows", "pad", "ids", "mask"),
    [
        ([1, 2, 3, 4, 5], "left", [3, 4, 5], [1, 1, 1]),
        ([1, 2], "left", [0, 1, 2], [0, 1, 1]),
        ([1, 2], "right", [1, 2, 0], [1, 1, 0]),
        ([], "left", [0, 0, 0], [0, 0, 0]),
        ([], "right", [0, 0, 0], [0, 0, 0]),
    ],
)
def test_sequence_cut_and_pad(rows: list[int], pad: str, ids: list[int], mask: list[int]) -> None:
    batch = take(history(rows, pad=pad), 0)
    assert batch["history"].tolist() == [ids]
    assert batch["history_mask"].tolist() == [[bool(bit) for bit in mask]]
    assert batch["history_lengths"].tolist() == [sum(mask)]
    total = (batch["history"] * batch["history_mask"]).sum() / max(batch["history_lengths"][0], 1)
    assert not np.isnan(total)


def test_a_real_zero_is_not_padding() -> None:
    batch = take(history([0, 7]), 0)
    assert batch["history"].tolist() == [[0, 0, 7]]
    assert batch["history_mask"].tolist() == [[False, True, True]]


@pytest.mark.parametrize("layout", ["padded", "jagged"])
@pytest.mark.parametrize("pad_to", ["max", "batch"])
@pytest.mark.parametrize("masks", [False, True])
def test_keeps_the_laws_of_a_sample_space(layout: str, pad_to: str, masks: bool) -> None:
    rows = everything(layout=layout, pad_to=pad_to, masks=masks)
    check_sample_space(rows, seeds=(0,))
    check_sample_space(rows.select([9, 0, 0, 4]), seeds=(0,))
    check_sample_space(rows.select(range(8, 0, -3)), seeds=(0,))


@settings(deadline=None, max_examples=60)
@given(
    first=st.one_of(st.lists(st.integers(0, 9), max_size=8), st.just(range(9, -1, -2)), st.just(range(2, 9))),
    data=st.data(),
)
def test_views_of_views(first, data) -> None:
    rows = everything()
    view = rows.select(first)
    assert len(view) == len(first)
    inner = st.integers(0, max(len(first) - 1, 0))
    second = data.draw(st.lists(inner, max_size=6)) if len(first) else []
    expected = [list(first)[place] for place in second]
    assert take(view.select(second), *range(len(second)))["sample_id"].tolist() == expected
    backwards = view.select(range(len(view) - 1, -1, -1))
    assert take(backwards, *range(len(view)))["sample_id"].tolist() == list(first)[::-1]


def test_views_have_fingerprints_of_their_own() -> None:
    rows = everything()
    views = [rows, rows.select([0, 1]), rows.select([1, 0]), rows.select(range(2)), rows.select(range(3))]
    assert len({view.fingerprint for view in views}) == len(views)
    assert rows.select([0, 1]).fingerprint == everything().select([0, 1]).fingerprint


def test_a_view_outside_is_refused() -> None:
    with pytest.raises(LoaderError, match=r"row 10 is not in \[0, 10\)"):
        everything().select([0, 10])
    with pytest.raises(LoaderError, match=r"row -1 is not in \[0, 10\)"):
        everything().select(range(-1, 3))
    with pytest.raises(LoaderError, match=r"not in \[0, 2\)"):
        take(everything().select([0, 1]), 2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.ones(10, bool), r"for a mask give np.flatnonzero\(mask\)"),
        ([True, False], "for a mask"),
        ([0.5, 1.7], "must be integers"),
        ([[1], [2, 3]], "lists of unlike lengths"),
        (slice(2), "a list or an array of integers"),
        ("01", "a list or an array of integers"),
        (None, "a list or an array of integers"),
    ],
)
def test_what_selects_no_rows_is_refused(wrong, message: str) -> None:
    with pytest.raises(LoaderError, match=rf"select\(rows\): .*{message}"):
        everything().select(wrong)


def test_lengths_for_bucketing() -> None:
    rows = everything()
    assert rows.lengths("tags").tolist() == [place % 4 for place in range(10)]
    assert rows.select([3, 2]).sample_lengths().tolist() == [3, 2]
    with pytest.raises(LoaderError, match="'user' is not a ragged column"):
        rows.lengths("user")
    with pytest.raises(LoaderError, match="no column here is ragged"):
        Rows([Scalar("a", [np.zeros(1, np.uint8)])], [1], "x").sample_lengths()


def reopened() -> Rows:
    return everything()


@pytest.mark.parametrize("reopen", [None, (reopened, ())])
def test_rows_travel_to_other_processes(reopen) -> None:
    rows = everything(reopen=reopen, id_dtype="int32").select([3, 1])
    travelled = pickle.loads(pickle.dumps(rows))  # noqa: S301
    assert travelled.fingerprint == rows.fingerprint
    assert take(travelled, 0, 1)["sample_id"].tolist() == [3, 1]
    if reopen is None:
        assert_batches_equal(take(rows, 0, 1), take(travelled, 0, 1))


def ragged_with(offsets, values, **options) -> Ragged:
    return Ragged("list", [np.array(offsets)], [np.array(values, np.uint8)], 3, **options)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (Scalar("a", [np.zeros(2, np.float64)]), "a: dtype float64; it must be one of uint8"),
        (Scalar("a", [np.zeros(3, np.uint8)]), "a: shard 0 has 3 values for 2 rows"),
        (Scalar("a", []), "a: 0 arrays for 1 shards"),
        (Scalar("a", [np.zeros(2, np.uint8)], [None, None]), "a: 2 bitmaps for 1 shards"),
        (Label("a", [np.zeros(2, np.float32)], [Bitmap(np.zeros(1, np.uint8), 7)]), "bitmap is shorter"),
        (Fixed("a", [np.zeros(2, np.float32)]), r"a: vectors have shapes \[\(\)\]"),
        (ragged_with([0, 1], [1]), "list: shard 0 has 2 offsets for 2 rows"),
        (Ragged("list", [np.zeros(3, np.int16)], [np.zeros(1, np.uint8)], 3), "list: dtype int16"),
        (ragged_with([0, 1, 1], [1], weights=[np.zeros(2, np.float32)]), "1 values, 2 weights"),
        (Ragged("list", [np.zeros(3, np.int64)], [np.zeros(1, np.uint8)], -1), "max_length=-1"),
        (Scalar("sample_id", [np.zeros(2, np.uint8)]), "two columns give 'sample_id'"),
    ],
)
def test_arrays_that_do_not_fit_are_named(column, message: str) -> None:
    with pytest.raises(LoaderError, match=message):
        Rows([column], [2], "x")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"id_dtype": "int16"}, "id_dtype='int16'; it is 'int64' or 'int32'"),
        ({"id_dtype": np.int16}, "id_dtype=<class 'numpy.int16'>; it is"),
        ({"id_dtype": None}, "id_dtype=None; it is"),
        ({"id_dtype": ">i4"}, "id_dtype='>i4'; it is"),
        ({"layout": "flat"}, "layout='flat'"),
        ({"pad_to": "min"}, "pad_to='min'"),
    ],
)
def test_options_that_do_not_exist_are_named(option, message: str) -> None:
    with pytest.raises(LoaderError, match=message):
        everything(**option)


@pytest.mark.parametrize("id_dtype", [np.int32, np.dtype(np.int32), "i4"])
def test_dtypes_are_named_in_any_of_numpys_ways(id_dtype) -> None:
    rows = pickle.loads(pickle.dumps(everything(id_dtype=id_dtype)))  # noqa: S301
    assert take(rows, 0)["user"].dtype == np.int32


@pytest.mark.parametrize("layout", ["padded", "jagged"])
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize(
    ("largest", "dtype", "id_dtype", "message"),
    [
        (2**31 - 1, np.uint32, "int32", None),
        (2**31, np.uint32, "int32", "an id that int32 cannot hold; load it with id_dtype='int64'"),
        (2**31, np.uint32, "int64", None),
        (2**63 - 1, np.uint64, "int64", None),
        (2**63, np.uint64, "int64", r"an id that int64 cannot hold; ids are below 2\*\*63"),
        (2**63, np.uint64, "int32", "an id that int32 cannot hold"),
    ],
)
def test_ids_never_wrap(layout, ragged, largest, dtype, id_dtype, message) -> None:
    values = np.array([1, 2, largest], dtype)
    column = Ragged("user", [np.array([0, 1, 3])], [values], 2) if ragged else Scalar("user", [values])
    rows = Rows([column], [2 if ragged else 3], "ids", id_dtype=id_dtype, layout=layout)
    loader = Loader(rows, batch_size=3)
    if message is None:
        (batch,) = loader
        assert batch["user"].dtype == id_dtype
        assert batch["user"].max() == largest
    else:
        place = 1 if ragged else 2
        with pytest.raises(LoaderError, match=f"step 0, .*user: row {place} holds {message}"):
            list(loader)


def test_no_columns_and_no_rows() -> None:
    assert list(take(Rows([], [3], "x"), 0, 2)) == ["sample_id"]
    empty = Rows([Scalar("a", [])], [], "x")
    assert len(empty) == 0
    assert take(empty)["a"].shape == (0,)


@pytest.mark.parametrize("id_dtype", ["int64", "int32"])
def test_fields_of_records_are_columns_too(id_dtype: str) -> None:
    record = np.dtype([("user", "u4"), ("price", "f4"), ("begin", "i4"), ("slot", "u1")])
    values = np.arange(100, 130, dtype=np.uint16)
    records = np.zeros(11, record)
    records["user"], records["price"], records["slot"] = np.arange(11) * 7, np.arange(11) / 2, np.arange(11)
    records["begin"] = np.arange(11) * 3
    names = ("user", "price", "slot")

    def rows_of(pack) -> Rows:
        shards = [pack(records[:5]), pack(records[4:])]  # four rows and six; an end of offsets behind them
        scalars = [Scalar(name, [shard[name][:-1] for shard in shards]) for name in names]
        offsets = [shard["begin"] for shard in shards]
        return Rows(
            [*scalars, Ragged("history", offsets, [values, values], 3, "left")],
            [4, 6],
            "x",
            id_dtype=id_dtype,
        )

    packed = rows_of(lambda part: {name: part[name].copy() for name in record.names})
    strided = rows_of(lambda part: part)
    order = np.array([9, 0, 3, 4, 9, 5], np.int64)
    expected, found = take(packed, *order), take(strided, *order)
    assert_batches_equal(found, expected)
    assert found["user"].tolist() == [63, 0, 21, 28, 63, 35]
    assert found["history"][0].tolist() == [127, 128, 129]
    one = [Scalar(name, [packed._columns[place].values[0][:1]]) for place, name in enumerate(names)]
    history_of_one = Ragged("history", [np.array([0, 1], np.int32)], [values[:1]], 3, "left")
    over = strided.over([*one, history_of_one], 1)
    assert take(over, 0)["history"].tolist() == [[0, 0, 100]]
    strided.will_read(np.array([[0, 10]]))
