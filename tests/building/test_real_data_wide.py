"""Stores of real logs with many columns, held against pandas and plain Python."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import headrace as hr


def text_table(path: Path, **options: Any) -> pd.DataFrame:
    """Every field as text, as written; an empty one as None."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False, **options).astype(object)
    return table.where(table != "", None)


def categorical(**options: Any) -> dict[str, Any]:
    return {"kind": "categorical", **options}


def as_floats(column: pd.Series) -> list[float | None]:
    return [None if value is None else float(value) for value in column]


def test_criteo(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    folder = shared_data / "criteo_tiny"
    numbers = [f"I{n}" for n in range(1, 14)]
    tokens = [f"C{n}" for n in range(1, 27)]
    spec = {
        "name": "criteo",
        "source": {"files": [str(folder / "train.tiny.csv"), str(folder / "test.tiny.csv")]},
        "split": {"by": "file", "train": "train.tiny.csv", "test": "test.tiny.csv"},
        "features": {
            **{name: {"kind": "numeric", "dtype": "int", "missing": -5.0} for name in numbers},
            **{name: categorical(min_count=2) for name in tokens},
            "I13_bucket": {"kind": "numeric", "column": "I13", "transform": "bucketize", "buckets": 7},
        },
        "labels": {"Label": {"kind": "binary"}},
        "id": {"column": "Id"},
    }
    splits = hr.build(spec, out=tmp_path / "store", threads=2)
    tables = {split: text_table(folder / f"{split}.tiny.csv") for split in ("train", "test")}
    check = compare(splits)
    for name in numbers:
        check.numeric(name, {split: as_floats(t[name]) for split, t in tables.items()}, fill=-5.0)
    for name in tokens:
        check.categorical(name, {split: t[name] for split, t in tables.items()}, min_count=2)
    check.label("Label", {split: t["Label"].astype(int) for split, t in tables.items()})
    present = sorted(value for value in as_floats(tables["train"]["I13"]) if value is not None)
    borders = [present[-(-k * len(present) // 7) - 1] for k in range(1, 7)]
    check.own_ids(
        "I13_bucket",
        {
            split: [None if v is None else sum(border < v for border in borders) for v in as_floats(t["I13"])]
            for split, t in tables.items()
        },
    )
    check.everything_was_checked()
    for split, table in tables.items():
        assert splits[split].ids(range(len(table))) == table["Id"].tolist()


def test_criteo_ids_that_look_like_numbers_stay_as_written(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "criteo_tiny"
    tokens = [f"C{n}" for n in range(1, 27)]
    spec = {
        "name": "criteo",
        "source": {"files": str(folder / "train.tiny.csv")},
        "vocabularies": {"token": {}},
        "features": {name: categorical(vocabulary="token") for name in tokens},
    }
    splits = hr.build(spec, out=tmp_path / "store")
    table = text_table(folder / "train.tiny.csv")
    expected = {value for value in table[tokens].to_numpy().ravel() if value is not None}
    assert len(expected) == 13_077
    vocabulary = splits.vocabularies["token"]
    assert set(vocabulary.values.to_pylist()) == expected
    assert vocabulary["623049e6"] > 2
    assert sum(value.isdigit() for value in expected) == 300
    assert sum(value.isdigit() and value[0] == "0" for value in expected) == 33


def test_avazu(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    path = shared_data / "avazu_tiny" / "tr.rx.csv"
    table = text_table(path)
    tokens = [name for name in table.columns if name not in ("click", "hour", "C20")]
    spec = {
        "name": "avazu",
        "source": {"files": str(path), "missing_values": ["-1"]},
        "time": {"column": "hour", "format": "%y%m%d%H"},
        "split": {"by": "random", "train": 0.8, "valid": 0.2, "seed": 3},
        "features": {
            **{name: categorical() for name in tokens},
            "C20": categorical(),
            "hour": {"kind": "time", "part": "hour"},
            "weekday": {"kind": "time", "column": "hour", "part": "weekday"},
        },
        "labels": {"click": {"kind": "binary"}},
    }
    splits = hr.build(spec, out=tmp_path / "store", threads=2)
    check = compare(splits)
    places = {split: splits[split].to_arrow()["__row__"].to_pylist() for split in splits}
    assert sorted(places["train"] + places["valid"]) == list(range(len(table)))
    assert abs(len(places["valid"]) / len(table) - 0.2) < 0.03
    assert all(rows == sorted(rows) for rows in places.values())
    assert splits["valid"].ids([0, 1]) == [f"{path}:{row}" for row in places["valid"][:2]]
    rows = {split: table.iloc[places[split]] for split in splits}
    for name in tokens:
        check.categorical(name, {split: t[name] for split, t in rows.items()})
    check.categorical(
        "C20", {split: [None if v == "-1" else v for v in t["C20"]] for split, t in rows.items()}
    )
    moment = datetime.datetime(2014, 10, 21, 0)
    check.own_ids("hour", {split: [moment.hour] * len(t) for split, t in rows.items()})
    check.own_ids("weekday", {split: [moment.weekday()] * len(t) for split, t in rows.items()})
    check.label("click", {split: t["click"].astype(int) for split, t in rows.items()})
    check.everything_was_checked()
    assert sum(int(value) >= 2**63 for value in table["id"]) == 2754
    assert max(table["id"], key=int) == "10072393214139415292"


def test_open_bandit(tmp_path: Path, compare: Any) -> None:
    folder = Path(__file__).resolve().parents[2] / "examples" / "open_bandit" / "data"
    log = text_table(folder / "men.csv.gz")
    items = text_table(folder / "item_context.csv").set_index("item_id")
    affinities = [name for name in log.columns if name.startswith("user-item_affinity_")]
    users = [f"user_feature_{n}" for n in range(4)]
    spec = {
        "name": "bandit",
        "source": {"files": str(folder / "men.csv.gz"), "columns": ["row", *log.columns[1:]]},
        "time": {"column": "timestamp"},
        "split": {
            "by": "time",
            "train": {"until": "2019-11-28"},
            "valid": {"from": "2019-11-28T06:00:00Z", "until": "2019-11-29"},
            "test": {"from": "2019-11-29"},
        },
        "tables": {
            "item": {
                "files": str(folder / "item_context.csv"),
                "key": "item_id",
                "columns": ["row", *items.columns[:0], "item_id", *items.columns[1:]],
            }
        },
        "features": {
            "item_id": categorical(),
            "position": categorical(),
            **{name: categorical(min_count=5) for name in users},
            **{name.replace("-", "_"): {"kind": "numeric", "column": name} for name in affinities},
            "item_number": {"kind": "numeric", "column": "item.item_feature_0", "transform": "standardize"},
            "item_kind": categorical(column="item.item_feature_1"),
            "hour": {"kind": "time", "column": "timestamp", "part": "hour", "timezone": "Asia/Tokyo"},
            "second": {"kind": "time", "column": "timestamp", "part": "second"},
        },
        "labels": {"click": {"kind": "binary", "weight": "propensity_score"}},
        "weight": {"column": "propensity_score"},
        "id": {"column": "row"},
    }
    splits = hr.build(spec, out=tmp_path / "store", threads=2)
    times = [datetime.datetime.fromisoformat(text) for text in log["timestamp"]]
    log["moment"] = times

    def day(number: int, hour: int = 0) -> datetime.datetime:
        return datetime.datetime(2019, 11, number, hour, tzinfo=datetime.UTC)

    rows = {
        "train": log[[t < day(28) for t in times]],
        "valid": log[[day(28, 6) <= t < day(29) for t in times]],
        "test": log[[t >= day(29) for t in times]],
    }
    accounting = splits.accounting
    assert accounting["written"] == {split: len(t) for split, t in rows.items()}
    assert accounting["outside"] == sum(day(28) <= t < day(28, 6) for t in times)
    check = compare(splits)
    for name in ("item_id", "position"):
        check.categorical(name, {split: t[name] for split, t in rows.items()})
    for name in users:
        check.categorical(name, {split: t[name] for split, t in rows.items()}, min_count=5)
    for name in affinities:
        check.numeric(name.replace("-", "_"), {split: as_floats(t[name]) for split, t in rows.items()})
    item_numbers = {
        split: [float(items["item_feature_0"][i]) for i in t["item_id"]] for split, t in rows.items()
    }
    mean = float(np.mean(item_numbers["train"]))
    deviation = float(np.std(item_numbers["train"]))
    for split in splits:
        np.testing.assert_allclose(
            check.batches[split]["item_number"],
            (np.array(item_numbers[split]) - mean) / deviation,
            rtol=1e-6,
            atol=1e-6,
        )
    check.checked.add("item_number")
    check.categorical(
        "item_kind", {split: [items["item_feature_1"][i] for i in t["item_id"]] for split, t in rows.items()}
    )
    check.own_ids("hour", {s: [(m.hour + 9) % 24 for m in t["moment"]] for s, t in rows.items()})
    check.own_ids("second", {s: [m.second for m in t["moment"]] for s, t in rows.items()})
    check.label("click", {split: t["click"].astype(int) for split, t in rows.items()})
    for split, table in rows.items():
        weights = np.array(as_floats(table["propensity_score"]), np.float32)
        np.testing.assert_array_equal(check.batches[split]["weight"], weights)
        np.testing.assert_array_equal(check.batches[split]["click_weight"], weights)
        assert splits[split].ids(range(len(table))) == table.iloc[:, 0].tolist()
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        micros = [(m - epoch) // datetime.timedelta(microseconds=1) for m in table["moment"]]
        assert splits[split].to_arrow()["__time__"].to_pylist() == micros
    check.checked.add("click_weight")
    check.everything_was_checked()


@pytest.mark.parametrize("campaign", ["bts/women", "random/men", "random/women"])
def test_the_other_open_bandit_logs(shared_data: Path, tmp_path: Path, campaign: str, compare: Any) -> None:
    (path,) = (shared_data / "open_bandit" / campaign).glob("*.csv.gz")
    log = text_table(path)
    spec = {
        "name": "bandit",
        "source": {"files": str(path)},
        "split": {"by": "group", "key": "user_feature_1", "train": 0.7, "test": 0.3},
        "features": {"item_id": categorical(), "user_feature_1": categorical()},
        "labels": {"click": {"kind": "binary"}},
    }
    splits = hr.build(spec, out=tmp_path / "store", threads=2)
    check = compare(splits)
    rows = {s: log.iloc[splits[s].to_arrow()["__row__"].to_pylist()] for s in splits}
    assert sum(map(len, rows.values())) == len(log) == 10_000
    assert not set(rows["train"]["user_feature_1"]) & set(rows["test"]["user_feature_1"])
    check.categorical("item_id", {s: t["item_id"] for s, t in rows.items()})
    check.categorical("user_feature_1", {s: t["user_feature_1"] for s, t in rows.items()})
    check.label("click", {s: t["click"].astype(int) for s, t in rows.items()})
    check.everything_was_checked()


def test_fuxictr_multi_task(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    folder = shared_data / "fuxictr_tiny" / "mtl"
    tables = {split: text_table(folder / f"{split}.csv") for split in ("train", "test")}
    tokens = ["search_id", *(f"categorical_{n}" for n in range(1, 17))]
    numbers = [f"numerical_{n}" for n in range(1, 64)]
    spec = {
        "name": "mtl",
        "source": {"files": str(folder / "*.csv")},
        "split": {"by": "file", "train": "train.csv", "test": "test.csv"},
        "features": {
            **{name: categorical() for name in tokens},
            **{name: {"kind": "numeric"} for name in numbers},
        },
        "labels": {"click": {"kind": "binary"}, "conversion": {"kind": "binary"}},
    }
    check = compare(hr.build(spec, out=tmp_path / "store"))
    for name in tokens:
        check.categorical(name, {split: t[name] for split, t in tables.items()})
    for name in numbers:
        check.numeric(name, {split: as_floats(t[name]) for split, t in tables.items()})
    for name in ("click", "conversion"):
        check.label(name, {split: t[name].astype(int) for split, t in tables.items()})
    check.everything_was_checked()


def test_deepctr_criteo_and_avazu(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    folder = shared_data / "deepctr_samples"
    criteo = text_table(folder / "criteo_sample.txt")
    numbers, tokens = [f"I{n}" for n in range(1, 14)], [f"C{n}" for n in range(1, 27)]
    spec = {
        "name": "criteo",
        "source": {"format": "csv", "files": str(folder / "criteo_sample.txt")},
        "features": {
            **{name: {"kind": "numeric", "dtype": "int"} for name in numbers},
            **{name: categorical() for name in tokens},
        },
        "labels": {"label": {"kind": "binary"}},
    }
    check = compare(hr.build(spec, out=tmp_path / "criteo"))
    for name in numbers:
        check.numeric(name, {"train": as_floats(criteo[name])})
    for name in tokens:
        check.categorical(name, {"train": criteo[name]})
    check.label("label", {"train": criteo["label"].astype(int)})
    check.everything_was_checked()

    avazu = text_table(folder / "avazu_sample.txt")
    names = [name for name in avazu.columns if name != "click"]
    spec = {
        "name": "avazu",
        "source": {"format": "csv", "files": str(folder / "avazu_sample.txt")},
        "features": {name: categorical() for name in names},
        "labels": {"click": {"kind": "class", "values": ["0", "1"]}},
    }
    check = compare(hr.build(spec, out=tmp_path / "avazu"))
    for name in names:
        check.categorical(name, {"train": avazu[name]})
    check.label("click", {"train": avazu["click"].astype(int)}, np.int64)
    check.everything_was_checked()


def test_deepctr_byterec(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    path = shared_data / "deepctr_samples" / "byterec_sample.txt"
    names = [
        "uid",
        "user_city",
        "item_id",
        "author_id",
        "item_city",
        "channel",
        "finish",
        "like",
        "music_id",
        "did",
        "creat_time",
        "video_duration",
    ]
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    table = {name: [line[place] for line in lines] for place, name in enumerate(names)}
    tokens = [name for name in names if name not in ("finish", "like", "creat_time", "video_duration")]
    spec = {
        "name": "byterec",
        "source": {
            "format": "tsv",
            "files": str(path),
            "header": False,
            "columns": names,
            "missing_values": ["-1"],
        },
        "features": {
            **{name: categorical() for name in tokens},
            "creat_time": {"kind": "numeric", "dtype": "int"},
            "video_duration": {"kind": "numeric", "transform": "log1p", "missing": 9.0},
        },
        "labels": {"finish": {"kind": "binary"}, "like": {"kind": "continuous"}},
    }
    check = compare(hr.build(spec, out=tmp_path / "store"))
    for name in tokens:
        check.categorical(name, {"train": [None if v == "-1" else v for v in table[name]]})
    check.numeric("creat_time", {"train": [None if v == "-1" else float(v) for v in table["creat_time"]]})
    check.numeric(
        "video_duration",
        {"train": [None if v == "-1" else float(v) for v in table["video_duration"]]},
        fill=9.0,
        function=np.log1p,
    )
    for name in ("finish", "like"):
        check.label(name, {"train": [None if v == "-1" else int(v) for v in table[name]]})
    check.everything_was_checked()


def test_deepctr_census(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    path = shared_data / "deepctr_samples" / "census-income.sample"
    lines = [line.split(",") for line in path.read_text().splitlines() if line]
    width = len(lines[0])
    assert {len(line) for line in lines} == {width}
    names = [f"c{n}" for n in range(width)]
    spec = {
        "name": "census",
        "source": {
            "format": "csv",
            "files": str(path),
            "header": False,
            "columns": names,
            "missing_values": [" ?"],
        },
        "features": {name: categorical() for name in names[:-1]},
        "labels": {"income": {"kind": "class", "column": names[-1], "values": [" - 50000.", " 50000+."]}},
    }
    check = compare(hr.build(spec, out=tmp_path / "store"))
    for place, name in enumerate(names[:-1]):
        check.categorical(name, {"train": [None if line[place] == " ?" else line[place] for line in lines]})
    check.label("income", {"train": [int(line[-1] == " 50000+.") for line in lines]}, np.int64)
    check.everything_was_checked()
