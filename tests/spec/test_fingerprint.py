"""Equal declarations have equal fingerprints, in every form and process; other ones do not."""

from __future__ import annotations

import copy
import datetime
import hashlib
import json
import os
import pickle  # noqa: TID251 - worker processes are sent specs this way
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.spec import (
    Attribution,
    Binary,
    Bounds,
    Categorical,
    Cross,
    Hashed,
    Id,
    Numeric,
    Reserved,
    Sequence,
    Set,
    Source,
    Spec,
    Table,
    Time,
    TimePart,
    TimeSplit,
    Vector,
    VocabularySpec,
    Weight,
    WeightedSet,
)

TOML = """
name = "ads"
version = 3
[source]
format = "jsonl"
files = "raw/*.jsonl.gz"
missing_values = [""]
[time]
column = "ts"
unit = "ms"
[split]
by = "time"
train = { from = 2020-01-01, until = 2025-06-01T08:00:00+08:00 }
valid = { from = "2025-06-02", until = 2025-06-08 }
test = { from = 2025-06-08T00:00:00 }
late = { from = 1_000, until = 2_000 }
[vocabularies.creative]
min_count = 5
max_size = 8_000_000
reserved = { pad = 0, unknown = 0 }
[features.user_id]
kind = "categorical"
description = "who saw the ad"
min_count = 5
missing = "own"
[features.history]
kind = "sequence"
vocabulary = "creative"
time = "history_ts"
max_length = 50
[features.clicked]
kind = "sequence"
from = "events"
column = "creative_id"
time = "ts"
with = ["action"]
lag = "60m"
max_length = 5
[features.tags]
kind = "set"
max_length = 10
[features.interest]
kind = "weighted_set"
max_length = 20
[features.price]
kind = "numeric"
transform = "log1p"
missing = -1
[features.hour]
kind = "time"
column = "ts"
part = "hour"
[features.user_x_slot]
kind = "cross"
columns = ["user_id", "slot"]
buckets = 1_000_000
[features.device_id]
kind = "hashed"
buckets = 1_000_000
[features.image]
kind = "vector"
dim = 64
[labels.click]
kind = "binary"
column = "click"
[labels.convert]
kind = "attribution"
click_time = "ts"
convert_time = "conv_ts"
window = "168h"
given = "click"
observed_until = 2025-06-30
weight = "w_convert"
[weight]
column = "w"
[id]
column = "request_id"
[tables.ad]
files = ["raw/ads.csv"]
key = "creative_id"
[tables.events]
files = "raw/events.parquet"
key = "user_id"
"""
JUNE = datetime.datetime(2025, 6, 1, tzinfo=datetime.UTC)


def from_python() -> Spec:
    return Spec(
        name="ads",
        version=3,
        source=Source(files=["raw/*.jsonl.gz"]),
        time=Time(column="ts", unit="ms"),
        split=TimeSplit(
            train=Bounds(from_="2020-01-01", until=JUNE),
            valid=Bounds(from_=datetime.date(2025, 6, 2), until="2025-06-08"),
            test=Bounds(from_="2025-06-08T00:00:00Z"),
            late=Bounds(from_=1000.0, until=2000),
        ),
        vocabularies={
            "creative": VocabularySpec(min_count=5, max_size=8_000_000, reserved=Reserved(unknown=0))
        },
        features={
            "user_id": Categorical(min_count=5),
            "history": Sequence(vocabulary="creative", time="history_ts", max_length=50),
            "clicked": Sequence(
                from_="events", column="creative_id", time="ts", with_=["action"], lag="1h", max_length=5
            ),
            "tags": Set(max_length=10),
            "interest": WeightedSet(max_length=20),
            "price": Numeric(transform="log1p", missing=-1.0),
            "hour": TimePart(column="ts", part="hour"),
            "user_x_slot": Cross(columns=["user_id", "slot"], buckets=1_000_000),
            "device_id": Hashed(buckets=1_000_000),
            "image": Vector(dim=64),
        },
        labels={
            "click": Binary(),
            "convert": Attribution(
                click_time="ts",
                convert_time="conv_ts",
                window=datetime.timedelta(days=7),
                given="click",
                observed_until="2025-06-30",
                weight="w_convert",
            ),
        },
        weight=Weight(column="w"),
        id=Id(column="request_id"),
        tables={
            "ad": Table(files="raw/ads.csv", key="creative_id"),
            "events": Table(files="raw/events.parquet", format="parquet", key="user_id"),
        },
    )


def load(text: str, folder: Path) -> Spec:
    path = folder / "ads.toml"
    path.write_text(text)
    return Spec.load(path)


def test_toml_dict_and_python_are_one_thing(tmp_path: Path) -> None:
    loaded = load(TOML, tmp_path)
    from_dict = Spec.from_dict(tomllib.loads(TOML))
    again = Spec.from_dict(json.loads(json.dumps(loaded.to_dict())))
    assert loaded.fingerprint == from_dict.fingerprint == again.fingerprint == from_python().fingerprint
    assert loaded == from_dict == again
    assert hash(loaded) == hash(again)
    assert from_python() != loaded  # its user_id has no description


def test_the_fingerprint_is_known() -> None:
    """Fails when the plain form changes: then every store is rebuilt, so raise its version and say so."""
    spec = Spec.from_dict({"name": "x", "source": {"files": "a.csv"}, "features": {"a": {"kind": "numeric"}}})
    plain = (
        '["headrace spec 1",{"features":[["a",{"kind":"numeric"}]],"labels":[],"name":"x",'
        '"source":{"files":["a.csv"],"format":"csv"},"version":1}]'
    )
    expected = "d775ee5b87611d26c8704c281c2a2f48"  # printf '%s' "$plain" | b2sum -l 128
    assert hashlib.blake2b(plain.encode(), digest_size=16).hexdigest() == expected
    assert spec.fingerprint == expected


def test_the_fingerprint_is_the_same_in_other_processes(tmp_path: Path) -> None:
    expected = load(TOML, tmp_path).fingerprint
    code = "import sys; from headrace.spec import Spec; print(Spec.load(sys.argv[1]).fingerprint)"
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "ads.toml")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        assert found == expected


def test_the_fingerprint_survives_a_move(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = load(TOML, tmp_path / "a"), load(TOML, tmp_path / "b")
    assert one.fingerprint == other.fingerprint
    assert one == other
    assert one.locate("raw/x.csv") == str(tmp_path / "a" / "raw" / "x.csv")
    assert other.folder == tmp_path / "b"


def reordered(value: Any, keep: bool = False) -> Any:
    """Return the same declaration with its keys backwards, features and labels apart."""
    if not isinstance(value, dict):
        return value
    keys = list(value) if keep else list(value)[::-1]
    return {key: reordered(value[key], keep=key in ("features", "labels")) for key in keys}


def test_the_order_of_keys_does_not_count() -> None:
    declared = tomllib.loads(TOML)
    other = reordered(declared)
    assert list(other) == list(declared)[::-1]
    assert Spec.from_dict(other).fingerprint == Spec.from_dict(declared).fingerprint


@pytest.mark.parametrize("section", ["features", "labels"])
def test_the_order_of_columns_counts(section: str) -> None:
    declared = tomllib.loads(TOML)
    other = {**declared, section: dict(reversed(declared[section].items()))}
    assert Spec.from_dict(other).fingerprint != Spec.from_dict(declared).fingerprint


def test_descriptions_do_not_count() -> None:
    declared = tomllib.loads(TOML)
    for table in (
        declared,
        declared["vocabularies"]["creative"],
        declared["features"]["tags"],
        declared["tables"]["ad"],
    ):
        table["description"] = "for people"
    declared["labels"]["click"]["description"] = "for people"
    other = Spec.from_dict(declared)
    assert other.fingerprint == Spec.from_dict(tomllib.loads(TOML)).fingerprint
    assert other != Spec.from_dict(tomllib.loads(TOML))


def test_a_feature_named_description_counts() -> None:
    def named(kind: str) -> str:
        features = {"description": {"kind": "categorical"}, "a": {"kind": kind, "max_length": 3}}
        return Spec.from_dict({"name": "x", "source": {"files": "a.csv"}, "features": features}).fingerprint

    without = {"name": "x", "source": {"files": "a.csv"}, "features": {"a": {"kind": "set", "max_length": 3}}}
    assert len({named("set"), named("sequence"), Spec.from_dict(without).fingerprint}) == 3


CHANGES: list[Callable[[dict[str, Any]], Any]] = [
    lambda d: d.update(name="other"),
    lambda d: d.update(version=4),
    lambda d: d["source"].update(files="raw/*.jsonl"),
    lambda d: d["source"].update(max_bad_fraction=0.1),
    lambda d: d["source"].update(on_bad_row="fail"),
    lambda d: d["time"].update(unit="s"),
    lambda d: d["time"].update(timezone="Asia/Shanghai"),
    lambda d: d["split"].update(train={"from": "2020-01-01", "until": "2025-06-01T00:00:01"}),
    lambda d: d["split"].pop("late"),
    lambda d: d["split"].update(require_gap=False, column="other"),
    lambda d: d["vocabularies"]["creative"].update(min_count=6),
    lambda d: d["vocabularies"]["creative"].pop("reserved"),
    lambda d: d["features"]["user_id"].update(column="user"),
    lambda d: d["features"]["user_id"].update(missing="unknown"),
    lambda d: d["features"]["history"].update(max_length=51),
    lambda d: d["features"]["history"].update(keep="first"),
    lambda d: d["features"]["clicked"].update(lag="61m"),
    lambda d: d["features"]["price"].update(missing=-2),
    lambda d: d["features"]["user_x_slot"].update(columns=["slot", "user_id"]),
    lambda d: d["features"].pop("image"),
    lambda d: d["labels"]["convert"].update(window="8d"),
    lambda d: d["labels"]["convert"].update(observed_until="log"),
    lambda d: d["labels"]["click"].update(at_least=1),
    lambda d: d["weight"].update(column="v"),
    lambda d: d.pop("id"),
    lambda d: d["tables"]["ad"].update(gather="load", key="history"),
    lambda d: d["tables"]["ad"].update(encoding="latin-1"),
]


def test_every_other_change_counts() -> None:
    found = {Spec.from_dict(tomllib.loads(TOML)).fingerprint}
    for change in CHANGES:
        declared = tomllib.loads(TOML)
        change(declared)
        found.add(Spec.from_dict(declared).fingerprint)
    assert len(found) == len(CHANGES) + 1


def test_a_spec_is_frozen_and_travels_to_other_processes(tmp_path: Path) -> None:
    spec = load(TOML, tmp_path)
    with pytest.raises(ValueError, match="frozen"):
        spec.version = 4
    for other in (copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))):  # noqa: S301
        assert other == spec
        assert other.fingerprint == spec.fingerprint
        assert other.folder == tmp_path


@pytest.mark.parametrize("file", ["s3://bucket/a.csv", os.path.abspath("a.csv")])
def test_whole_paths_stay(file: str, tmp_path: Path) -> None:
    assert load(TOML, tmp_path).locate(file) == file


def test_without_a_folder_files_start_where_the_program_does() -> None:
    spec = Spec.from_dict(tomllib.loads(TOML))
    assert spec.folder is None
    assert spec.locate("raw/x.csv") == "raw/x.csv"
    assert Spec.from_dict(spec.to_dict(), folder="data").locate("x.csv") == os.path.join("data", "x.csv")


def test_paths_are_their_texts() -> None:
    features = {"x": {"kind": "numeric"}}
    text = Spec.from_dict({"name": "t", "source": {"files": "logs/a.csv"}, "features": features})
    for files in (Path("logs/a.csv"), [Path("logs/a.csv")], ("logs/a.csv",)):
        spec = Spec.from_dict({"name": "t", "source": {"files": files}, "features": features})
        assert spec == text
        assert spec.fingerprint == text.fingerprint
        assert json.loads(json.dumps(spec.to_dict())) == text.to_dict()
