"""Rows, columns and slices of datasets, against plain lists; and the splits of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.errors import SourceError, StoreError

ROWS = [{"a": 1, "b": "x"}, {"a": None, "b": "y"}, {"a": 3, "b": None}, {"a": 4, "b": "z"}]


@pytest.fixture
def dataset() -> hr.Dataset:
    return hr.Dataset.from_list(ROWS)


@pytest.fixture
def store(tmp_path: Path) -> hr.DatasetDict:
    path = tmp_path / "log.csv"
    path.write_text("id,x,t\n" + "".join(f"r{n},{'abc'[n % 3]},{n}\n" for n in range(10)))
    spec = {
        "name": "t",
        "source": {"files": str(path)},
        "time": {"column": "t"},
        "split": {"by": "time", "train": {"until": 7}, "test": {"from": 7}},
        "features": {"x": {"kind": "categorical", "description": "a letter"}},
        "id": {"column": "id"},
    }
    return hr.build(spec, out=tmp_path / "store")


def test_one_content_in_three_forms(dataset: hr.Dataset) -> None:
    columns = {"a": [1, None, 3, 4], "b": ["x", "y", None, "z"]}
    same = [hr.Dataset.from_dict(columns), hr.Dataset.from_arrow(pa.table(columns))]
    for one in [dataset, *same]:
        assert one.column_names == ["a", "b"]
        assert len(one) == one.num_rows == 4
        assert one.to_dict() == columns
        assert one.to_list() == list(one) == ROWS
        assert one.fingerprint == dataset.fingerprint
    assert hr.Dataset.from_dict({"a": [1]}).fingerprint != hr.Dataset.from_dict({"a": [2]}).fingerprint
    assert dataset.to_pandas()["b"].iloc[3] == "z"


@pytest.mark.parametrize("tensors", [False, True])
def test_arrays_of_several_dimensions_and_tensors_are_lists(tensors: bool) -> None:
    torch = pytest.importorskip("torch")
    of = torch.tensor if tensors else np.array
    columns = {
        "flat": (of([1, 2]), [1, 2]),
        "two": (of([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        "three": (of([[[1.0]], [[2.0]]]), [[[1.0]], [[2.0]]]),
        "ragged": ([of([1]), of([2, 3])], [[1], [2, 3]]),
        "of rows": ([of([[1, 2]]), of([[3], [4]])], [[[1, 2]], [[3], [4]]]),
        "with none": ([None, of([2, 3])], [None, [2, 3]]),
    }
    made = hr.Dataset.from_dict({name: given for name, (given, _) in columns.items()})
    assert made.to_dict() == {name: right for name, (_, right) in columns.items()}
    assert hr.Dataset.from_dict({"a": of(np.empty((0, 2)))}).to_dict() == {"a": []}
    assert hr.Dataset.from_list([{"a": of([1, 2])}, {"a": of([3])}]).to_dict() == {"a": [[1, 2], [3]]}


@pytest.mark.parametrize("key", [0, 3, -1, -4, np.int64(2)])
def test_a_row(dataset: hr.Dataset, key: Any) -> None:
    assert dataset[key] == ROWS[int(key)]


@pytest.mark.parametrize("key", [4, -5, 10**12])
def test_a_row_that_is_not_there(dataset: hr.Dataset, key: int) -> None:
    with pytest.raises(IndexError, match=rf"row {key}: the dataset has 4 rows\."):
        dataset[key]
    with pytest.raises(IndexError):
        dataset[[0, key]]
    with pytest.raises(IndexError):
        dataset.select([key])


def test_a_column(dataset: hr.Dataset) -> None:
    assert dataset["b"] == ["x", "y", None, "z"]
    with pytest.raises(KeyError, match=r"there is no column 'bb'\. Did you mean 'b'\?"):
        dataset["bb"]


@given(
    start=st.none() | st.integers(-7, 7),
    stop=st.none() | st.integers(-7, 7),
    step=st.none() | st.integers(-3, 3).filter(bool),
    chosen=st.lists(st.integers(-4, 3), max_size=6),
)
@settings(deadline=None, max_examples=60)
def test_slices_and_selections(
    start: int | None, stop: int | None, step: int | None, chosen: list[int]
) -> None:
    dataset = hr.Dataset.from_list(ROWS)
    rows = ROWS[slice(start, stop, step)]
    assert dataset[start:stop:step] == {name: [row[name] for row in rows] for name in ("a", "b")}
    assert dataset[chosen] == {name: [ROWS[i][name] for i in chosen] for name in ("a", "b")}
    selected = dataset.select(chosen)
    assert selected.to_list() == [ROWS[i] for i in chosen]
    assert selected["a"] == [ROWS[i]["a"] for i in chosen]
    if chosen:
        assert selected[-1] == ROWS[chosen[-1]]
        assert selected.select([0]).to_list() == [ROWS[chosen[0]]]
        assert selected.fingerprint != dataset.fingerprint


def test_an_empty_dataset() -> None:
    empty = hr.Dataset.from_arrow(pa.table({"a": pa.array([], pa.int64())}))
    assert len(empty) == 0
    assert list(empty) == []
    assert empty[0:5] == {"a": []}


def test_rows_without_a_spec_have_no_batches(dataset: hr.Dataset) -> None:
    with pytest.raises(
        StoreError, match=r"were not encoded by a spec, so that they have no batches\. Build a store"
    ):
        dataset.loader(batch_size=2)
    with pytest.raises(StoreError, match="have no ids"):
        dataset.ids([0])


def test_splits(store: hr.DatasetDict) -> None:
    assert list(store) == ["train", "test"]
    assert len(store) == 2
    assert store.num_rows == {"train": 7, "test": 3}
    assert "valid" not in store
    assert store["train"] is store["train"]
    with pytest.raises(KeyError, match=r"has no split 'tset'\. Did you mean 'test'\?"):
        store["tset"]
    assert repr(store) == f"DatasetDict({store.folder}, train: 7, test: 3)"
    assert store.features["x"].description == "a letter"
    assert store.spec.to_dict() == store.manifest.details["spec"]


def test_a_selection_keeps_ids_and_batches(store: hr.DatasetDict) -> None:
    chosen = store["train"].select([5, 0, 5])
    assert chosen["__id__"] == ["r5", "r0", "r5"]
    (batch,) = chosen.loader(batch_size=3, shuffle=False, output="numpy")
    assert batch["sample_id"].tolist() == [5, 0, 5]
    assert store["train"].ids(batch["sample_id"]) == ["r5", "r0", "r5"]
    assert batch["x"].tolist() == [store["train"][row]["x"] for row in (5, 0, 5)]


def test_any_arrow_reader_opens_a_shard(store: hr.DatasetDict) -> None:
    polars = pytest.importorskip("polars")
    path = store.folder / "train" / "00000.arrow"
    table = pa.ipc.open_file(path).read_all()
    assert table.to_pylist() == store["train"].to_list()
    assert polars.read_ipc(path)["x"].to_list() == store["train"]["x"]
    assert pa.ipc.open_file(path).num_record_batches == 1


# What does not fit


@pytest.mark.parametrize(
    "rows",
    [
        np.array([True, False]),
        [True, False],
        [1.5],
        np.array([0.0]),
        ["0"],
        "0",
        b"0",
        None,
        [[0]],
        np.eye(2),
    ],
)
def test_rows_are_chosen_by_integers(store: hr.DatasetDict, rows: Any) -> None:
    train = store["train"]
    calls = [lambda: train.select(rows), lambda: train.ids(rows)]
    if not isinstance(rows, str):  # the name of a column
        calls.append(lambda: train[rows])
    for call in calls:
        with pytest.raises(TypeError, match="integers"):
            call()


def test_integers_of_any_kind_choose_rows(store: hr.DatasetDict) -> None:
    train = store["train"]
    for rows in ([2, 0], (2, 0), range(2, -1, -2), np.array([2, 0], np.uint8), iter([2, 0])):
        assert train.select(rows)["__id__"] == ["r2", "r0"]
    assert train[np.array([2, 0], np.int32)]["__id__"] == ["r2", "r0"]
    assert train.select([])["__id__"] == train[np.array([])]["__id__"] == train.ids([]) == []
    with pytest.raises(TypeError, match=r"np\.flatnonzero"):
        train[np.ones(len(train), bool)]
    with pytest.raises(TypeError, match="integers"):
        train[True]


def test_a_name_that_only_later_rows_have_is_a_column() -> None:
    dataset = hr.Dataset.from_list([{"a": 1}, {"b": "x", "a": 2}, {}])
    assert dataset.to_dict() == {"a": [1, 2, None], "b": [None, "x", None]}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hr.Dataset.from_dict({"a": [1], "b": [1, 2]}), "different lengths: a 1, b 2"),
        (lambda: hr.Dataset.from_dict({"a": [1, "x"]}), "column 'a': .*'x'"),
        (lambda: hr.Dataset.from_dict({"a": [object()]}), "column 'a'"),
        (lambda: hr.Dataset.from_dict({"a": 1}), "column 'a'"),
        (lambda: hr.Dataset.from_dict({"a": np.array(5)}), "column 'a'"),
        (lambda: hr.Dataset.from_dict({"a": ["\ud800"]}), "column 'a'"),
        (lambda: hr.Dataset.from_dict({"a": [10**30]}), "column 'a'"),
        (lambda: hr.Dataset.from_dict({1: [2]}), "the name 1; names are texts"),
        (lambda: hr.Dataset.from_dict([1]), "expected columns by name, found list"),
        (lambda: hr.Dataset.from_list([{"a": 1}, 2]), "row 1 is a int"),
        (lambda: hr.Dataset.from_list("ab"), "expected a list of dicts, found str"),
        (lambda: hr.Dataset.from_list({"a": [1]}), "expected a list of dicts, found dict"),
        (lambda: hr.Dataset.from_list(3), "expected a list of dicts, found int"),
        (lambda: hr.Dataset.from_arrow({"a": [1]}), "expected an Arrow table, found dict"),
    ],
)
def test_what_is_no_table_is_refused(make: Any, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        make()
