"""What a declaration says about arrays, columns, vocabularies and times, by hand."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from headrace.spec import TIME_PARTS, ColumnUse, ReservedIds, Spec


def spec_of(**parts: Any) -> Spec:
    declared = {"name": "x", "source": {"files": "a.jsonl"}, "features": {"n": {"kind": "numeric"}}, **parts}
    return Spec.from_dict(declared)


def test_the_arrays_of_each_kind() -> None:
    spec = spec_of(
        time={"column": "ts"},
        tables={"events": {"files": "e.csv", "key": "u"}},
        weight={"column": "w"},
        features={
            "c": {"kind": "categorical"},
            "s": {"kind": "sequence", "max_length": 3},
            "h": {
                "kind": "sequence",
                "max_length": 3,
                "from": "events",
                "time": "t",
                "with": ["ts", "action"],
            },
            "m": {"kind": "set", "max_length": 3},
            "ws": {"kind": "weighted_set", "max_length": 3},
            "n": {"kind": "numeric"},
            "t": {"kind": "time", "part": "hour"},
            "x": {"kind": "cross", "columns": ["c", "d"], "buckets": 4},
            "d": {"kind": "hashed", "buckets": 4},
            "v": {"kind": "vector", "dim": 2},
        },
        labels={"y": {"kind": "binary"}, "z": {"kind": "continuous", "weight": "w_z"}},
    )
    assert spec.batch_names() == {
        "features.c": ("c", "c_present"),
        "features.s": ("s", "s_mask", "s_lengths", "s_present"),
        "features.h": ("h", "h_mask", "h_lengths", "h_ts", "h_action", "h_present"),
        "features.m": ("m", "m_mask", "m_lengths", "m_present"),
        "features.ws": ("ws", "ws_mask", "ws_lengths", "ws_weights", "ws_present"),
        "features.n": ("n", "n_present"),
        "features.t": ("t", "t_present"),
        "features.x": ("x", "x_present"),
        "features.d": ("d", "d_present"),
        "features.v": ("v", "v_present"),
        "labels.y": ("y", "y_mask"),
        "labels.z": ("z", "z_mask", "z_weight"),
        "weight": ("weight",),
    }


def test_the_columns_and_what_they_are_for() -> None:
    spec = spec_of(
        time={"column": "ts"},
        split={"by": "group", "key": "u", "train": 0.5},
        id={"column": "r"},
        weight={"column": "w"},
        tables={"ad": {"files": "e.csv", "key": "a"}, "events": {"files": "e.csv", "key": "u"}},
        features={
            "u": {"kind": "categorical"},
            "b": {"kind": "set", "max_length": 2, "column": "ad.brands"},
            "nested": {"kind": "weighted_set", "max_length": 2, "column": "deep.er"},
            "s": {"kind": "sequence", "max_length": 3, "time": "s_ts"},
            "h": {
                "kind": "sequence",
                "max_length": 3,
                "from": "events",
                "time": "t",
                "with": ["k"],
                "key": "v",
            },
            "n": {"kind": "numeric"},
            "vec": {"kind": "vector", "dim": 2},
            "hour": {"kind": "time", "part": "hour", "column": "ts"},
            "x": {"kind": "cross", "columns": ["u", "d"], "buckets": 4},
        },
        labels={
            "y": {"kind": "binary"},
            "stars": {"kind": "binary", "at_least": 4},
            "c": {"kind": "class", "weight": "w_c"},
            "conv": {"kind": "attribution", "click_time": "ts", "convert_time": "conv_ts", "window": "1d"},
        },
    )

    def use(*path: str | int, reads: Any, optional: bool = False) -> ColumnUse:
        return ColumnUse(path, reads, optional)

    assert spec.columns() == {
        "u": (
            use("features", "u", "column", reads="id"),
            use("features", "x", "columns", 0, reads="id"),
            use("tables", "events", "key", reads="id"),
            use("split", "key", reads="id", optional=True),
        ),
        "ad.brands": (use("features", "b", "column", reads="ids"),),
        "deep.er": (use("features", "nested", "column", reads="weighted_ids"),),
        "s": (use("features", "s", "column", reads="ids"),),
        "s_ts": (use("features", "s", "time", reads="times"),),
        "v": (use("features", "h", "key", reads="id"),),
        "events.h": (use("features", "h", "column", reads="id"),),
        "events.t": (use("features", "h", "time", reads="time"),),
        "events.k": (use("features", "h", "with", 0, reads="id"),),
        "n": (use("features", "n", "column", reads="number"),),
        "vec": (use("features", "vec", "column", reads="numbers"),),
        "ts": (
            use("features", "hour", "column", reads="time"),
            use("labels", "conv", "click_time", reads="time", optional=True),
            use("time", "column", reads="time"),
        ),
        "d": (use("features", "x", "columns", 1, reads="id"),),
        "y": (use("labels", "y", "column", reads="id", optional=True),),
        "stars": (use("labels", "stars", "column", reads="number", optional=True),),
        "c": (use("labels", "c", "column", reads="id", optional=True),),
        "w_c": (use("labels", "c", "weight", reads="number", optional=True),),
        "conv_ts": (use("labels", "conv", "convert_time", reads="time", optional=True),),
        "a": (use("tables", "ad", "key", reads="id"),),
        "ad.a": (use("tables", "ad", "key", reads="id"),),
        "events.u": (use("tables", "events", "key", reads="id"),),
        "w": (use("weight", "column", reads="number", optional=True),),
        "r": (use("id", "column", reads="id"),),
    }
    assert spec.table_of("ad.brands") == ("ad", "brands")
    assert spec.table_of("deep.er") == (None, "deep.er")
    assert spec.table_of("ad") == (None, "ad")
    assert spec.columns()["events.k"][0].where == "features.h.with[0]"


def test_shared_and_own_vocabularies() -> None:
    spec = spec_of(
        vocabularies={"shared": {"min_count": 5}, "unused": {}},
        features={
            "own": {"kind": "categorical", "min_count": 2, "unseen": "hash", "unknown_buckets": 3},
            "a": {"kind": "categorical", "vocabulary": "shared", "missing": "unknown"},
            "b": {"kind": "set", "max_length": 2, "vocabulary": "shared", "missing": "unknown"},
            "stored": {"kind": "categorical", "from": "stores/x"},
            "n": {"kind": "numeric"},
        },
    )
    assert list(spec.vocabulary_specs) == ["own", "shared", "stored"]
    name, own = spec.vocabulary_of("own")
    assert (name, own.min_count, own.unseen, own.unknown_buckets, own.max_size) == ("own", 2, "hash", 3, None)
    assert spec.vocabulary_of("b") == ("shared", spec.vocabularies["shared"])
    assert spec.vocabulary_of("stored")[1].from_ == "stores/x"
    assert spec.features_on("shared") == ("a", "b")
    assert spec.reserved_ids("own") == ReservedIds(pad=0, unknown=1, missing=2, first=3)
    assert spec.reserved_ids("shared") == ReservedIds(pad=0, unknown=1, missing=None, first=2)
    for feature in ("n", "none"):
        with pytest.raises(KeyError):
            spec.vocabulary_of(feature)


@pytest.mark.parametrize(
    ("reserved", "has_missing", "ids"),
    [
        ({}, True, (0, 1, 2, 3)),
        ({}, False, (0, 1, None, 2)),
        ({"unknown": 0}, True, (0, 0, 1, 2)),
        ({"unknown": 0}, False, (0, 0, None, 1)),
        ({"pad": 0, "unknown": 0, "missing": 0}, True, (0, 0, 0, 1)),
        ({"missing": 1}, True, (0, 1, 1, 2)),
        ({"missing": 0}, True, (0, 1, 0, 2)),
        ({"missing": 2}, True, (0, 1, 2, 3)),
    ],
)
def test_reserved_ids(reserved: dict[str, int], has_missing: bool, ids: tuple[int | None, ...]) -> None:
    missing = "own" if has_missing else "unknown"
    spec = spec_of(features={"a": {"kind": "categorical", "reserved": reserved, "missing": missing}})
    assert spec.reserved_ids("a") == ids


DAY = 86_400_000_000


def test_bounds_and_times() -> None:
    spec = spec_of(
        time={"column": "ts", "unit": "ms"},
        split={
            "by": "time",
            "test": {"from": "1970-01-03"},
            "late": {"from": -5, "until": 0},
            "train": {"from": 0, "until": 86_400_000},
        },
        labels={
            "a": {
                "kind": "attribution",
                "click_time": "c",
                "convert_time": "d",
                "window": "1d",
                "observed_until": 7,
            },
            "b": {"kind": "attribution", "click_time": "c", "convert_time": "d", "window": "1d"},
            "y": {"kind": "binary"},
        },
    )
    assert spec.split_names == ("train", "test", "late")
    assert spec.split_bounds() == {"train": (0, DAY), "test": (2 * DAY, None), "late": (-5_000, 0)}
    assert spec.split_time == spec.time
    assert spec.observed_until("a") == 7_000
    assert spec.observed_until("b") == "split"
    with pytest.raises(KeyError):
        spec.observed_until("y")


def test_a_split_has_a_time_of_its_own() -> None:
    spec = spec_of(
        time={"column": "ts", "unit": "ms"},
        split={"by": "time", "column": "day", "unit": "us", "train": {"until": 5}},
    )
    assert spec.split_time is not None
    assert (spec.split_time.column, spec.split_time.unit) == ("day", "us")
    assert spec.split_bounds() == {"train": (None, 5)}


def test_without_a_split_all_is_train() -> None:
    spec = spec_of()
    assert spec.split_names == ("train",)
    assert spec.split_bounds() == {}
    assert spec.split_time is None


def test_formats_by_ending() -> None:
    endings = {
        "a.csv": "csv",
        "a.CSV.GZ": "csv",
        "a.tsv.zst": "tsv",
        "raw/*.jsonl": "jsonl",
        "s3://b/*.ndjson.gz": "jsonl",
        "a.parquet": "parquet",
        "a.feather": "arrow",
        "a.txt": "text",
    }
    assert {file: spec_of(source={"files": file}).source.format for file in endings} == endings


def test_delimiters() -> None:
    assert spec_of(source={"files": "a.csv"}).source.field_delimiter == ","
    assert spec_of(source={"files": "a.csv", "delimiter": "^"}).source.field_delimiter == "^"
    assert spec_of(source={"files": "a.tsv"}).source.field_delimiter == "\t"


def test_columns_are_filled_in() -> None:
    spec = spec_of(
        features={"a": {"kind": "numeric"}, "b": {"kind": "numeric", "column": "c"}},
        labels={"y": {"kind": "binary"}},
    )
    assert [one.column for one in spec.features.values()] == ["a", "c"]
    assert spec.labels["y"].column == "y"


def test_classes_are_texts_as_ids_are() -> None:
    spec = spec_of(labels={"y": {"kind": "class", "values": [1, "2", 10]}})
    assert spec.labels["y"].values == ("1", "2", "10")


def test_time_parts_have_room_for_their_values() -> None:
    assert TIME_PARTS["hour"] == (0, 24)
    assert TIME_PARTS["week"] == (1, 53)
    assert TIME_PARTS["dayofyear"] == (1, 366)


def test_a_spec_needs_no_numpy() -> None:
    code = (
        "import sys, headrace.spec; print(sorted({'numpy', 'pyarrow', 'numba', 'torch'} & set(sys.modules)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )
