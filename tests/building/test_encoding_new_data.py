"""``hr.encode`` and ``hr.Encoder``: new data with a store's tables."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import BuildError, SourceError, StoreError

FEATURES = {
    "x": {"kind": "categorical"},
    "h": {"kind": "sequence", "max_length": 3},
    "n": {"kind": "numeric", "transform": "standardize"},
}
ROWS = [{"x": "a", "h": ["p", "q"], "n": 1, "y": 1}, {"x": 7, "h": ["p"], "n": 3, "y": 0}]


@pytest.fixture
def store(built: Any) -> hr.DatasetDict:
    return built(ROWS, features=FEATURES, labels={"y": {"kind": "binary"}})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"x": 1}, {"n": "abc"}], r"row 1: n is 'abc', expected a number\.$"),
        ([{"x": {"a": 1}}], r"row 0: x: \{'a': 1\} is a dict; an id is a text, a number or missing\.$"),
        ([{"h": "p"}], r"row 0: h: expected a list, found 'p'\.$"),
        ([{"h": {"p": 1}}], r"row 0: h: expected a list, found"),
        ({"x": 1}, r"expected a list of dicts or an Arrow table, found dict\.$"),
        (["x"], r"row 0: expected a dict, found str\.$"),
        ([{"x": 1}, None], r"row 1: expected a dict, found NoneType\.$"),
        ("", r"expected a list of dicts or an Arrow table, found str\.$"),
        (None, "expected a list of dicts or an Arrow table, found NoneType"),
        ((row for row in [{"x": 1}]), "expected a list of dicts or an Arrow table, found generator"),
        (pa.table({"n": ["1", "two"]}), r"row 1: n is 'two', expected a number\.$"),
        (pa.table({"h": [1]}), r"h"),
    ],
)
def test_what_an_encoder_refuses(store: hr.DatasetDict, rows: Any, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        hr.Encoder(store.folder).encode(rows)


def test_values_that_are_one_id(store: hr.DatasetDict) -> None:
    encoder = hr.Encoder(store.folder)
    for value in (7, "7", 7.0, np.int64(7), np.float32(7)):
        assert encoder.encode([{"x": value}])["x"].tolist() == [3]  # 7 and a are met once: bytes decide
    for kind in (pa.int8(), pa.uint64(), pa.float32(), pa.string(), pa.large_string()):
        table = pa.table({"x": pa.array(["7"]).cast(kind)})
        assert encoder.encode(table)["x"].tolist() == [3]
    assert encoder.encode(pa.table({"x": pa.array(["a", None]).dictionary_encode()}))["x"].tolist() == [4, 2]
    batch = encoder.encode([{"h": ("q", None, "p")}, {"h": np.array(["p"])}, {"h": []}, {}])
    assert batch["h"].tolist() == [[4, 2, 3], [0, 0, 3], [0, 0, 0], [0, 0, 0]]
    assert batch["h_lengths"].tolist() == [3, 1, 0, 0]


def test_no_rows(store: hr.DatasetDict) -> None:
    for rows in ([], pa.table({"x": pa.array([], pa.string())})):
        batch = hr.Encoder(store.folder).encode(rows)
        assert batch["h"].shape == (0, 3)
        assert batch["x"].dtype == np.int64


def test_labels_when_they_are_asked_for(store: hr.DatasetDict) -> None:
    assert "y" not in hr.Encoder(store.folder).encode(ROWS)
    batch = hr.Encoder(store.folder, labels=True).encode([*ROWS, {"x": 1}])
    assert batch["y"].tolist() == [1, 0, 0]
    assert batch["y_mask"].tolist() == [True, True, False]


def test_datetimes_are_times(built: Any) -> None:
    features = {"hour": {"kind": "time", "column": "t", "part": "hour"}}
    splits = built([{"t": "2024-01-01T05:00:00Z"}], features=features)
    tokyo = datetime.timezone(datetime.timedelta(hours=9))
    moments = [
        datetime.datetime(2024, 1, 1, 5, tzinfo=datetime.UTC),
        datetime.datetime(2024, 1, 1, 14, tzinfo=tokyo),
        datetime.datetime(2024, 1, 1, 5),
        "2024-01-01 05:30",
        1_704_085_200,
    ]
    for moment in moments:
        assert hr.Encoder(splits.folder).encode([{"t": moment}])["hour"].tolist() == [8]


def test_a_store_that_encodes_keeps_its_tables_and_needs_no_raw_file(
    store: hr.DatasetDict, log: Any, tmp_path: Path
) -> None:
    for path in tmp_path.glob("log*.jsonl"):
        path.unlink()
    new = hr.encode(store.folder, log(ROWS, "again.jsonl"), out=tmp_path / "again")
    assert (
        new.to_arrow().drop_columns(["__file__"]).equals(store["train"].to_arrow().drop_columns(["__file__"]))
    )
    third = hr.encode(
        tmp_path / "again",
        log([{"x": "a", "h": None, "n": None}], "third.jsonl"),
        out=tmp_path / "third",
        labels=False,
    )
    assert third["x"] == [4]
    assert hr.Encoder(tmp_path / "again").encode(ROWS)["x"].tolist() == [4, 3]
    assert hr.verify(tmp_path / "again") == []


def test_many_files_in_byte_order(store: hr.DatasetDict, log: Any, tmp_path: Path) -> None:
    for name in ("b", "a", "Z"):
        log([{"x": name, "h": [], "n": 1, "y": 1}], f"new/{name}.jsonl")
    new = hr.encode(store.folder, tmp_path / "new" / "*.jsonl", out=tmp_path / "n1")
    assert [name.rpartition("/")[2] for name in new.ids(range(3))] == ["Z.jsonl:0", "a.jsonl:0", "b.jsonl:0"]
    listed = [str(tmp_path / "new" / "b.jsonl"), str(tmp_path / "new" / "a.jsonl")]
    assert hr.encode(store.folder, listed, out=tmp_path / "n2")["x"] == [4, 1]


def test_every_row_of_new_data_is_written_or_quarantined(
    store: hr.DatasetDict, log: Any, tmp_path: Path
) -> None:
    rows = [*ROWS, {"x": 1, "n": "bad"}]
    with pytest.raises(BuildError, match="1 of 3 rows are bad"):
        hr.encode(store.folder, log(rows, "new.jsonl"), out=tmp_path / "new")
    good = log(ROWS * 600 + rows, "many.jsonl")
    hr.encode(store.folder, good, out=tmp_path / "many")
    accounting = hr.load_from_disk(tmp_path / "many").accounting
    assert accounting == {
        "read": 1203,
        "written": {"data": 1202},
        "quarantined": 1,
        "outside": 0,
        "dropped": 0,
    }


def test_places_where_nothing_may_be_written(store: hr.DatasetDict, log: Any, tmp_path: Path) -> None:
    path = log(ROWS, "new.jsonl")
    with pytest.raises(BuildError, match=r"is the store that encodes\. Choose another folder"):
        hr.encode(store.folder, path, out=store.folder / ".." / store.folder.name)
    assert hr.verify(store.folder) == []
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(BuildError, match="full is not empty and holds no store"):
        hr.encode(store.folder, path, out=tmp_path / "full")
    with pytest.raises(StoreError, match="nowhere: no such folder"):
        hr.encode(tmp_path / "nowhere", path, out=tmp_path / "out")
    with pytest.raises(StoreError, match="nowhere: no such folder"):
        hr.Encoder(tmp_path / "nowhere")


def test_files_are_a_path_or_several(store: hr.DatasetDict, tmp_path: Path) -> None:
    with pytest.raises(
        SourceError, match=r"files: found 3, expected a path, a glob or a URL, or several in a list\."
    ):
        hr.encode(store.folder, 3, out=tmp_path / "new")  # type: ignore[arg-type]


def test_a_feature_must_be_there_and_a_label_need_not(built: Any, tmp_path: Path, log: Any) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,1\n")
    (tmp_path / "b.csv").write_text("x\n1\n")
    (tmp_path / "c.csv").write_text("y\n1\n")
    splits = built(
        str(tmp_path / "a.csv"), features={"x": {"kind": "categorical"}}, labels={"y": {"kind": "binary"}}
    )
    assert hr.encode(splits.folder, tmp_path / "b.csv", out=tmp_path / "b").column_names == [
        "x",
        "__file__",
        "__row__",
    ]
    with pytest.raises(SourceError, match=r"c\.csv: there is no column 'x'"):
        hr.encode(splits.folder, tmp_path / "c.csv", out=tmp_path / "c")
    lines = built(
        [{"x": 1, "y": 1}], features={"x": {"kind": "categorical"}}, labels={"y": {"kind": "binary"}}
    )
    late = log([{"x": 1}] * 1200 + [{"x": 1, "y": 1}], "late.jsonl")
    assert hr.encode(lines.folder, late, out=tmp_path / "late")["y"][-2:] == [None, 1]
    assert hr.encode(lines.folder, log([{"x": 2}], "no.jsonl"), out=tmp_path / "no")["y"] == [None]
    with pytest.raises(SourceError, match=r"there is no column 'x'"):
        hr.encode(lines.folder, log([{"y": 1}], "nox.jsonl"), out=tmp_path / "nox")
