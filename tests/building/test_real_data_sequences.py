"""Stores of real data with lists, tables, odd separators and broken lines, held against plain Python."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import headrace as hr
from headrace.errors import BuildError, SpecError

SPLITS = ("train", "valid", "test")


def categorical(**options: Any) -> dict[str, Any]:
    return {"kind": "categorical", **options}


def records(path: Path, delimiter: str = ",", names: list[str] | None = None) -> list[dict[str, str | None]]:
    """The rows of a file by Python's own csv module; an empty field as None."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = list(csv.reader(io.StringIO(content.decode(), newline=""), delimiter=delimiter))
    header = names or lines.pop(0)
    return [{name: field or None for name, field in zip(header, line, strict=True)} for line in lines]


def of(rows: dict[str, list[dict[str, Any]]], name: str) -> dict[str, list[Any]]:
    return {split: [row[name] for row in part] for split, part in rows.items()}


def lists_of(rows: dict[str, list[dict[str, Any]]], name: str, separator: str) -> dict[str, list[Any]]:
    return {
        split: [None if row[name] is None else row[name].split(separator) for row in part]
        for split, part in rows.items()
    }


FUXI_TOKENS = [
    "userid",
    "adgroup_id",
    "pid",
    "cate_id",
    "campaign_id",
    "customer",
    "brand",
    "cms_segid",
    "cms_group_id",
    "final_gender_code",
    "age_level",
    "pvalue_level",
    "shopping_level",
    "occupation",
]


@pytest.fixture(scope="module")
def fuxi(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> hr.DatasetDict:
    folder = shared_data / "fuxictr_tiny" / "csv"
    spec = {
        "name": "taobao ads",
        "source": {"files": str(folder / "*_sample.csv")},
        "time": {"column": "time_stamp"},
        "split": {"by": "file", **{split: f"{split}_sample.csv" for split in SPLITS}},
        "vocabularies": {"ad": {}},
        "features": {
            **{name: categorical() for name in FUXI_TOKENS if name != "adgroup_id"},
            "adgroup_id": categorical(vocabulary="ad"),
            "new_user_class_level": categorical(missing="own"),
            "price": {"kind": "numeric"},
            "click_sequence": {"kind": "sequence", "separator": "^", "max_length": 4, "vocabulary": "ad"},
            "first_clicks": {
                "kind": "sequence",
                "column": "click_sequence",
                "separator": "^",
                "max_length": 2,
                "keep": "first",
                "pad": "right",
                "vocabulary": "ad",
            },
            "click_set": {"kind": "set", "column": "click_sequence", "separator": "^", "max_length": 3},
            "price_log": {"kind": "numeric", "column": "price", "transform": "log1p"},
        },
        "labels": {"clk": {"kind": "binary"}},
    }
    return hr.build(spec, out=tmp_path_factory.mktemp("fuxi") / "store", threads=2)


@pytest.fixture(scope="module")
def fuxi_rows(shared_data: Path) -> dict[str, list[dict[str, Any]]]:
    folder = shared_data / "fuxictr_tiny" / "csv"
    return {split: records(folder / f"{split}_sample.csv") for split in SPLITS}


def test_fuxictr_csv(fuxi: hr.DatasetDict, fuxi_rows: Any, compare: Any) -> None:
    check = compare(fuxi)
    for name in [*FUXI_TOKENS, "new_user_class_level"]:
        if name != "adgroup_id":
            check.categorical(name, of(fuxi_rows, name))
    prices = {s: [float(row["price"]) for row in rows] for s, rows in fuxi_rows.items()}
    check.numeric("price", prices)
    check.numeric("price_log", prices, function=np.log1p)
    clicks = lists_of(fuxi_rows, "click_sequence", "^")
    assert sum(row is None for row in clicks["train"]) == 75
    elements = [ad for row in clicks["train"] for ad in row or []]
    # Three features share the vocabulary, and each of their elements counts: the list twice, as declared.
    ids = check.rank("adgroup_id", [*of(fuxi_rows, "adgroup_id")["train"], *elements, *elements])
    check.categorical("adgroup_id", of(fuxi_rows, "adgroup_id"), ids=ids)
    check.sequence("click_sequence", clicks, 4, ids=ids)
    check.sequence("first_clicks", clicks, 2, keep="first", pad="right", ids=ids)
    check.set("click_set", clicks, 3)
    check.label("clk", {s: [int(row["clk"]) for row in rows] for s, rows in fuxi_rows.items()})
    check.everything_was_checked()
    micros = pd.to_datetime([row["time_stamp"] for row in fuxi_rows["valid"]], utc=True).as_unit("us")
    assert fuxi["valid"].to_arrow()["__time__"].to_pylist() == micros.asi8.tolist()


def test_fuxictr_encodes_the_same_values_alike(
    shared_data: Path, fuxi: hr.DatasetDict, fuxi_rows: Any
) -> None:
    """FuxiCTR: 0 is padding, then values by falling count; the last id is both unknown and missing."""
    folder = shared_data / "fuxictr_tiny" / "parquet"
    declared = json.loads((folder / "feature_map.json").read_text())["features"]
    sizes = {name: one["vocab_size"] for feature in declared for name, one in feature.items()}
    theirs = {split: pd.read_parquet(folder / f"{split}.parquet") for split in SPLITS}
    for name in FUXI_TOKENS:
        if name == "adgroup_id":  # shared with the histories here, and not there
            continue
        raw = of(fuxi_rows, name)
        ours = {split: fuxi[split].loader(batch_size=1000, output="numpy") for split in SPLITS}
        batches = {split: next(iter(loader))[name] for split, loader in ours.items()}
        assert fuxi.features[name].size == sizes[name] + 1  # the id MISSING
        for split in SPLITS:
            merged = {
                (1 if their == sizes[name] - 1 else our, their)
                for our, their in zip(batches[split].tolist(), theirs[split][name].tolist(), strict=True)
            }
            assert len({our for our, _ in merged}) == len({their for _, their in merged}) == len(merged)
            reserved = batches[split][theirs[split][name] == sizes[name] - 1]
            assert set(reserved.tolist()) <= {1, 2}
        counts = Counter(value for value in raw["train"] if value is not None)
        order = [value for value, count in counts.most_common() if list(counts.values()).count(count) == 1]
        their_ids = dict(zip(raw["train"], theirs["train"][name], strict=True))
        our_ids = dict(zip(raw["train"], batches["train"].tolist(), strict=True))
        assert sorted(order, key=their_ids.get) == sorted(order, key=our_ids.get) == order


def test_fuxictr_parquet(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    folder = shared_data / "fuxictr_tiny" / "parquet"
    spec = {
        "name": "encoded",
        "source": {"files": str(folder / "*.parquet")},
        "split": {"by": "file", **{split: f"{split}.parquet" for split in SPLITS}},
        "features": {
            **{name: categorical() for name in FUXI_TOKENS},
            "brand_number": {"kind": "numeric", "dtype": "int", "column": "brand", "transform": "minmax"},
        },
        "labels": {"clk": {"kind": "binary"}},
    }
    tables = {split: pd.read_parquet(folder / f"{split}.parquet") for split in SPLITS}
    check = compare(hr.build(spec, out=tmp_path / "store"))
    for name in FUXI_TOKENS:
        check.categorical(name, {split: [str(v) for v in t[name]] for split, t in tables.items()})
    low, high = tables["train"]["brand"].min(), tables["train"]["brand"].max()
    check.numeric(
        "brand_number",
        {split: t["brand"].tolist() for split, t in tables.items()},
        function=lambda v: (v - low) / (high - low),
    )
    check.label("clk", {split: t["clk"].astype(int) for split, t in tables.items()})
    check.everything_was_checked()


def test_amazon_din(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    path = shared_data / "amazon_din_sample" / "sample_data.txt"
    names = ["items", "categories", "item", "category", "label"]
    rows = records(path, ";", names)
    spec = {
        "name": "amazon",
        "source": {"format": "csv", "files": str(path), "delimiter": ";", "header": False, "columns": names},
        "split": {"by": "random", "train": 0.75, "test": 0.25},
        "vocabularies": {"item": {"min_count": 2}, "category": {}},
        "features": {
            "items": {"kind": "sequence", "vocabulary": "item", "separator": " ", "max_length": 20},
            "categories": {
                "kind": "sequence",
                "vocabulary": "category",
                "separator": " ",
                "max_length": 200,
                "pad": "right",
            },
            "item": categorical(vocabulary="item"),
            "category": categorical(vocabulary="category"),
        },
        "labels": {"label": {"kind": "binary"}},
    }
    splits = hr.build(spec, out=tmp_path / "store")
    check = compare(splits)
    parts = {s: [rows[i] for i in splits[s].to_arrow()["__row__"].to_pylist()] for s in splits}
    assert sum(map(len, parts.values())) == len(rows) == 100
    for one, many, length, pad, least in (
        ("item", "items", 20, "left", 2),
        ("category", "categories", 200, "right", 1),
    ):
        lists = lists_of(parts, many, " ")
        elements = [e for row in lists["train"] for e in row or []]
        ids = check.rank(one, [*elements, *of(parts, one)["train"]], least)
        check.sequence(many, lists, length, pad=pad, ids=ids)
        check.categorical(one, of(parts, one), ids=ids)
    check.label("label", {s: [int(row["label"]) for row in part] for s, part in parts.items()})
    check.everything_was_checked()
    assert max(len(row) for row in lists["train"] + lists["test"]) == 152


def test_movielens_of_deepctr(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    path = shared_data / "deepctr_samples" / "movielens_sample.txt"
    rows = records(path)
    spec = {
        "name": "movielens",
        "source": {"format": "csv", "files": str(path)},
        "time": {"column": "timestamp"},
        "split": {
            "by": "time",
            "train": {"until": 970_000_000},
            "valid": {"from": 970_000_000, "until": 975_000_000},
            "test": {"from": "2000-11-24"},
        },
        "features": {
            "user_id": categorical(),
            "title": categorical(),
            "words": {
                "kind": "sequence",
                "column": "title",
                "separator": " ",
                "max_length": 5,
                "keep": "first",
            },
            "genres": {"kind": "set", "separator": "|", "max_length": 3},
            "zip": categorical(),
            "age": {"kind": "numeric", "transform": "minmax"},
            "month": {"kind": "time", "column": "timestamp", "part": "month"},
        },
        "labels": {
            "liked": {"kind": "binary", "column": "rating", "at_least": 4},
            "rating": {"kind": "class", "values": ["1", "2", "3", "4", "5"]},
        },
    }
    with pytest.raises(
        SpecError, match=r"features\.title and features\.words read the column 'title' in two"
    ):
        hr.build(spec, out=tmp_path / "store")
    del spec["features"]["words"]
    splits = hr.build(spec, out=tmp_path / "store")
    edge = 975_024_000  # 2000-11-24T00:00:00Z
    seconds = [int(row["timestamp"]) for row in rows]
    parts = {
        "train": [r for r, t in zip(rows, seconds, strict=True) if t < 970_000_000],
        "valid": [r for r, t in zip(rows, seconds, strict=True) if 970_000_000 <= t < 975_000_000],
        "test": [r for r, t in zip(rows, seconds, strict=True) if t >= edge],
    }
    assert splits.accounting == {
        "read": 200,
        "written": {s: len(part) for s, part in parts.items()},
        "quarantined": 0,
        "outside": 200 - sum(map(len, parts.values())),
        "dropped": 0,
    }
    check = compare(splits)
    for name in ("user_id", "title", "zip"):
        check.categorical(name, of(parts, name))
    assert sum("," in row["title"] for row in rows) == 48
    check.set("genres", lists_of(parts, "genres", "|"), 3)
    ages = {s: [float(row["age"]) for row in part] for s, part in parts.items()}
    low, high = min(ages["train"]), max(ages["train"])
    check.numeric("age", ages, function=lambda v: (v - low) / (high - low))
    moments = {
        s: [datetime.datetime.fromtimestamp(int(row["timestamp"]), datetime.UTC) for row in part]
        for s, part in parts.items()
    }
    check.own_ids("month", {s: [m.month - 1 for m in part] for s, part in moments.items()})
    ratings = {s: [int(row["rating"]) for row in part] for s, part in parts.items()}
    check.label("liked", {s: [int(r >= 4) for r in part] for s, part in ratings.items()})
    check.label("rating", {s: [r - 1 for r in part] for s, part in ratings.items()}, np.int64)
    check.everything_was_checked()


def test_ml_100k(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    folder = shared_data / "ml-100k"

    def table(name: str) -> list[dict[str, str | None]]:
        lines = [line.split("\t") for line in (folder / f"ml-100k.{name}").read_text().splitlines()]
        names = [field.partition(":")[0] for field in lines[0]]
        return [{n: f or None for n, f in zip(names, line, strict=True)} for line in lines[1:]]

    items = {row["item_id"]: row for row in table("item")}
    users = {row["user_id"]: row for row in table("user")}
    rows = [row | items[row["item_id"]] | users[row["user_id"]] for row in table("inter")]
    plain = {"format": "tsv", "quote": ""}
    spec = {
        "name": "ml-100k",
        "source": {
            "files": str(folder / "ml-100k.inter"),
            "columns": ["user_id", "item_id", "rating", "timestamp"],
            **plain,
        },
        "time": {"column": "timestamp"},
        "split": {
            "by": "time",
            "train": {"until": "1998-03-01"},
            "valid": {"from": "1998-03-08", "until": "1998-04-01"},
            "test": {"from": "1998-04-01"},
        },
        "tables": {
            "item": {
                "files": str(folder / "ml-100k.item"),
                "key": "item_id",
                "columns": ["item_id", "movie_title", "release_year", "class"],
                **plain,
            },
            "user": {
                "files": str(folder / "ml-100k.user"),
                "key": "user_id",
                "columns": ["user_id", "age", "gender", "occupation", "zip_code"],
                **plain,
            },
        },
        "features": {
            "user_id": categorical(min_count=3),
            "item_id": categorical(max_size=500),
            "words": {
                "kind": "sequence",
                "column": "item.movie_title",
                "separator": " ",
                "max_length": 4,
                "keep": "first",
                "pad": "right",
            },
            "release_year": categorical(column="item.release_year"),
            "genres": {"kind": "set", "column": "item.class", "separator": " ", "max_length": 2},
            "age": {"kind": "numeric", "column": "user.age", "dtype": "int"},
            "zip_code": categorical(column="user.zip_code", min_count=10),
            "occupation": categorical(column="user.occupation"),
            "weekday": {
                "kind": "time",
                "column": "timestamp",
                "part": "weekday",
                "timezone": "America/Chicago",
            },
        },
        "labels": {"rating": {"kind": "continuous"}},
    }
    splits = hr.build(spec, out=tmp_path / "store", threads=2)

    def at(month: int, day: int) -> float:
        return datetime.datetime(1998, month, day, tzinfo=datetime.UTC).timestamp()

    parts = {
        "train": [r for r in rows if float(r["timestamp"]) < at(3, 1)],
        "valid": [r for r in rows if at(3, 8) <= float(r["timestamp"]) < at(4, 1)],
        "test": [r for r in rows if float(r["timestamp"]) >= at(4, 1)],
    }
    assert splits.accounting["read"] == 100_000
    assert splits.accounting["written"] == {s: len(part) for s, part in parts.items()}
    check = compare(splits)
    check.categorical("user_id", of(parts, "user_id"), min_count=3)
    check.categorical("item_id", of(parts, "item_id"), max_size=500)
    check.categorical("zip_code", of(parts, "zip_code"), min_count=10)
    for name in ("release_year", "occupation"):
        check.categorical(name, of(parts, name))
    check.sequence("words", lists_of(parts, "movie_title", " "), 4, keep="first", pad="right")
    check.set("genres", lists_of(parts, "class", " "), 2)
    check.numeric("age", {s: [float(r["age"]) for r in part] for s, part in parts.items()})
    local = {
        s: pd.to_datetime([int(r["timestamp"]) for r in part], unit="s", utc=True).tz_convert(
            "America/Chicago"
        )
        for s, part in parts.items()
    }
    check.own_ids("weekday", {s: moments.day_of_week.tolist() for s, moments in local.items()})
    check.label("rating", {s: [float(r["rating"]) for r in part] for s, part in parts.items()})
    check.everything_was_checked()


TAOBAO = ["user_id", "item_id", "category_id", "behaviour", "ts"]


def test_taobao_histories(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    """Each event with the items its user saw before, made in plain Python and checked by ``time``."""
    path = shared_data / "taobao_userbehavior" / "UserBehavior.csv"
    seen: dict[str, list[dict[str, Any]]] = {}
    rows = []
    for event in records(path, ",", TAOBAO):
        before = [e for e in seen.setdefault(event["user_id"], []) if int(e["ts"]) < int(event["ts"])]
        rows.append(
            {
                "user": event["user_id"],
                "item": event["item_id"],
                "behaviour": event["behaviour"],
                "ts": int(event["ts"]),
                "history": [e["item_id"] for e in before],
                "history_ts": [int(e["ts"]) for e in before],
            }
        )
        seen[event["user_id"]].append(event)
    log = tmp_path / "events.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "name": "taobao",
        "source": {"files": str(log)},
        "time": {"column": "ts"},
        "split": {
            "by": "time",
            "train": {"from": "2017-11-25", "until": "2017-12-01"},
            "test": {"from": "2017-12-02"},
        },
        "vocabularies": {"item": {"min_count": 2}},
        "features": {
            "user": categorical(),
            "item": categorical(vocabulary="item"),
            "behaviour": categorical(),
            "history": {"kind": "sequence", "vocabulary": "item", "time": "history_ts", "max_length": 30},
        },
        "labels": {"buy": {"kind": "class", "column": "behaviour", "values": ["pv", "buy", "cart", "fav"]}},
    }
    splits = hr.build(spec, out=tmp_path / "store", threads=2)
    first, gap, end = 1_511_568_000, 1_512_086_400, 1_512_172_800
    parts = {
        "train": [r for r in rows if first <= r["ts"] < gap],
        "test": [r for r in rows if r["ts"] >= end],
    }
    accounting = splits.accounting
    assert accounting["quarantined"] == 0
    assert accounting["written"] == {s: len(part) for s, part in parts.items()}
    assert accounting["outside"] == len(rows) - sum(map(len, parts.values()))
    check = compare(splits)
    check.categorical("user", of(parts, "user"))
    check.categorical("behaviour", of(parts, "behaviour"))
    elements = [e for row in parts["train"] for e in [row["item"], *row["history"]]]
    ids = check.rank("item", elements, 2)
    check.categorical("item", of(parts, "item"), ids=ids)
    check.sequence("history", of(parts, "history"), 30, ids=ids)
    order = ["pv", "buy", "cart", "fav"]
    check.label(
        "buy", {s: [order.index(r["behaviour"]) for r in part] for s, part in parts.items()}, np.int64
    )
    check.everything_was_checked()


def test_taobao_hour_with_its_broken_last_line(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    path = shared_data / "taobao_userbehavior" / "UserBehavior_hour.csv.gz"
    rows = records(path, ",", TAOBAO)
    spec = {
        "name": "hour",
        "source": {"files": str(path), "header": False, "columns": TAOBAO},
        "time": {"column": "ts"},
        "split": {
            "by": "time",
            "train": {"from": 1_511_650_000, "until": 1_511_661_600},
            "test": {"from": 1_511_661_600},
        },
        "features": {
            "item_id": categorical(min_count=2),
            "category_id": categorical(),
            "user": {"kind": "hashed", "column": "user_id", "buckets": 1000},
            "minute": {"kind": "time", "column": "ts", "part": "minute"},
        },
        "labels": {"behaviour": {"kind": "class"}},
    }
    splits = hr.build(spec, out=tmp_path / "store", threads=2)
    assert rows[-1]["ts"] == "15"  # the cut timestamp is a number, fifteen seconds into 1970
    parts = {
        "train": [r for r in rows if 1_511_650_000 <= int(r["ts"]) < 1_511_661_600],
        "test": [r for r in rows if int(r["ts"]) >= 1_511_661_600],
    }
    outside = len(rows) - sum(map(len, parts.values()))
    assert outside >= 1
    assert splits.accounting == {
        "read": 96_169,
        "written": {s: len(part) for s, part in parts.items()},
        "quarantined": 0,
        "outside": outside,
        "dropped": 0,
    }
    check = compare(splits)
    check.categorical("item_id", of(parts, "item_id"), min_count=2)
    check.categorical("category_id", of(parts, "category_id"))
    xxhash = pytest.importorskip("xxhash")
    check.own_ids(
        "user",
        {
            s: [xxhash.xxh64(r["user_id"].encode()).intdigest() % 1000 for r in part]
            for s, part in parts.items()
        },
    )
    check.own_ids("minute", {s: [int(r["ts"]) // 60 % 60 for r in part] for s, part in parts.items()})
    order = sorted({r["behaviour"] for r in parts["train"]})
    check.label(
        "behaviour", {s: [order.index(r["behaviour"]) for r in part] for s, part in parts.items()}, np.int64
    )
    check.everything_was_checked()


def test_tencent_2020(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    folder = shared_data / "tencent2020_small"
    ads = {row["creative_id"]: row for row in records(folder / "ad.csv")}
    users = {row["user_id"]: row for row in records(folder / "user.csv")}
    rows = [r | ads[r["creative_id"]] | users[r["user_id"]] for r in records(folder / "click_log.csv")]
    for row in rows:
        row.update({name: None for name, value in row.items() if value == r"\N"})
    columns = ["ad_id", "product_id", "product_category", "advertiser_id", "industry"]
    spec = {
        "name": "tencent",
        "source": {"files": str(folder / "click_log.csv"), "missing_values": [r"\N"]},
        "split": {"by": "group", "key": "user_id", "train": 0.6, "valid": 0.2, "test": 0.2, "seed": 1},
        "tables": {
            "ad": {"files": str(folder / "ad.csv"), "key": "creative_id", "missing_values": [r"\N"]},
            "user": {"files": str(folder / "user.csv"), "key": "user_id"},
        },
        "features": {
            "creative_id": categorical(),
            **{name: categorical(column=f"ad.{name}") for name in columns},
            "click_times": {"kind": "numeric", "dtype": "int"},
            "product_x_industry": {
                "kind": "cross",
                "columns": ["ad.product_category", "ad.industry"],
                "buckets": 50,
            },
        },
        "labels": {
            "age": {"kind": "class", "column": "user.age", "values": [str(n) for n in range(1, 11)]},
            "gender": {"kind": "binary", "column": "user.gender", "at_least": 2},
        },
    }
    splits = hr.build(spec, out=tmp_path / "store", threads=2)
    parts = {s: [rows[i] for i in splits[s].to_arrow()["__row__"].to_pylist()] for s in splits}
    assert sum(map(len, parts.values())) == len(rows) == 3189
    groups = [{row["user_id"] for row in part} for part in parts.values()]
    assert sum(map(len, groups)) == len(set().union(*groups)) == 100
    check = compare(splits)
    for name in ("creative_id", *columns):
        check.categorical(name, of(parts, name))
    check.numeric("click_times", {s: [float(r["click_times"]) for r in part] for s, part in parts.items()})
    import xxhash

    def crossed(row: dict[str, Any]) -> int | None:
        texts = [row["product_category"], row["industry"]]
        if None in texts:
            return None
        joined = b"".join(xxhash.xxh64(t.encode()).intdigest().to_bytes(8, "little") for t in texts)
        return int(xxhash.xxh64(joined).intdigest() % 50)

    check.own_ids("product_x_industry", {s: [crossed(r) for r in part] for s, part in parts.items()})
    check.label("age", {s: [int(r["age"]) - 1 for r in part] for s, part in parts.items()}, np.int64)
    check.label("gender", {s: [int(r["gender"] == "2") for r in part] for s, part in parts.items()})
    check.everything_was_checked()
    assert sum(row["product_id"] is None for row in rows) == 1175


def test_ipinyou_pairs(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    """``label index:1 ... index:1``, always sixteen of them: a csv file with blanks between its fields."""
    folder = shared_data / "ipinyou_fm"
    slots = [f"slot{n}" for n in range(16)]
    rows = {
        split: records(folder / f"{split}.fm.txt.gz", " ", ["click", *slots]) for split in ("train", "test")
    }
    spec = {
        "name": "ipinyou",
        "source": {
            "format": "csv",
            "files": [str(folder / "train.fm.txt.gz"), str(folder / "test.fm.txt.gz")],
            "delimiter": " ",
            "quote": "",
            "header": False,
            "columns": ["click", *slots],
        },
        "split": {"by": "file", "train": "train.fm.txt.gz", "test": "test.fm.txt.gz"},
        "vocabularies": {"index": {}},
        "features": {
            **{n: {"kind": "weighted_set", "vocabulary": "index", "max_length": 1} for n in slots[:2]},
            **{name: {"kind": "weighted_set", "max_length": 1} for name in slots[2:3]},
            **{name: categorical() for name in slots[3:]},
        },
        "labels": {"click": {"kind": "binary"}},
    }
    splits = hr.build(spec, out=tmp_path / "store", threads=2)
    assert splits.num_rows == {"train": 26_773, "test": 21_150}
    check = compare(splits)
    shared = [row[name].partition(":")[0] for name in slots[:2] for row in rows["train"]]
    ids = check.rank("slot0", shared)
    for name in slots[:2]:
        check.set(
            name, {s: [[r[name].partition(":")[0]] for r in part] for s, part in rows.items()}, 1, ids=ids
        )
        assert set(check.batches["test"][f"{name}_weights"].ravel()) == {1.0}
        check.checked.add(f"{name}_weights")
    for name in slots[2:3]:
        pairs = {s: [[(r[name].partition(":")[0], 1.0)] for r in part] for s, part in rows.items()}
        check.weighted_set(name, pairs, 1)
    for name in slots[3:]:
        check.categorical(name, of(rows, name))
    check.label("click", {s: [int(r["click"]) for r in part] for s, part in rows.items()})
    check.everything_was_checked()
    assert [int(check.batches[s]["click"].sum()) for s in ("train", "test")] == [255, 50]


def test_ipinyou_dictionary_has_more_values_than_uint16_holds(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "ipinyou_fm" / "featindex.fm.txt.gz"
    spec = {
        "name": "index",
        "source": {
            "format": "tsv",
            "files": str(path),
            "quote": "",
            "header": False,
            "columns": ["key", "index"],
        },
        "features": {"key": categorical(), "index": categorical()},
    }
    splits = hr.build(spec, out=tmp_path / "store", threads=2)
    with gzip.open(path, "rt") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    columns = splits["train"].to_arrow()
    for place, name in enumerate(("key", "index")):
        raw = [line[place] for line in lines]
        values = sorted(set(raw), key=lambda v, c=Counter(raw): (-c[v], v.encode()))
        assert str(columns[name].type) == "uint32"
        assert splits.features[name].size == len(values) + 3
        expected = {value: number for number, value in enumerate(values, 3)}
        assert columns[name].to_pylist() == [expected[value] for value in raw]


def test_ali_ccp_ragged_lines_as_text(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    """Ragged ``field:index`` tokens fit no csv; as text a line is one sequence, labels and all."""
    path = shared_data / "aliccp_esmm_small" / "small.txt"
    spec = {
        "name": "aliccp",
        "source": {"format": "text", "files": str(path)},
        "features": {"tokens": {"kind": "sequence", "column": "text", "separator": ",", "max_length": 900}},
    }
    check = compare(hr.build(spec, out=tmp_path / "store"))
    lines = [line.split(",") for line in path.read_text().splitlines()]
    assert len(lines) == 10
    check.sequence("tokens", {"train": lines}, 900)
    check.everything_was_checked()
    ragged = dict(
        spec, source={"format": "csv", "files": str(path), "header": False, "columns": ["row", "click"]}
    )
    ragged["features"] = {"click": categorical()}
    with pytest.raises(BuildError, match=r"10 of 10 rows are bad.*small\.txt:\d+ .*2 fields expected"):
        hr.build(ragged, out=tmp_path / "ragged")


def test_tencent_gr_record_is_no_object(shared_data: Path, tmp_path: Path, compare: Any) -> None:
    """One line is a user's list of events: no row. Its events, one an object, are rows with nested keys."""
    path = shared_data / "tencentgr_example" / "seq_excerpt.jsonl"
    spec = {
        "name": "gr",
        "source": {"files": str(path), "max_bad_fraction": 1.0},
        "features": {"item": categorical()},
    }
    splits = hr.build(spec, out=tmp_path / "raw")
    assert splits.accounting["quarantined"] == 1
    assert splits.num_rows == {"train": 0}
    names = ["user", "item", "user_feature", "item_feature", "action", "ts"]
    (user,) = [json.loads(line) for line in path.read_text().splitlines()]
    events = [dict(zip(names, event, strict=True)) for event in user]
    log = tmp_path / "events.jsonl"
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    keys = sorted({key for event in events for key in event["item_feature"]})
    spec = {
        "name": "gr",
        "source": {"files": str(log)},
        "time": {"column": "ts"},
        "features": {
            "user": categorical(),
            "item": categorical(),
            "user_feature": categorical(),
            **{f"f{key}": categorical(column=f"item_feature.{key}") for key in keys},
            "hour": {"kind": "time", "column": "ts", "part": "hour", "timezone": "Asia/Shanghai"},
        },
        "labels": {"action": {"kind": "binary"}},
    }
    check = compare(hr.build(spec, out=tmp_path / "events"))
    for name in ("user", "item"):
        check.categorical(name, {"train": [str(event[name]) for event in events]})
    check.categorical("user_feature", {"train": [None] * 3})
    for key in keys:
        values = [event["item_feature"].get(key) for event in events]
        check.categorical(f"f{key}", {"train": [None if v is None else str(v) for v in values]})
    check.own_ids("hour", {"train": [(event["ts"] // 3600 + 8) % 24 for event in events]})
    check.label("action", {"train": [event["action"] for event in events]})
    check.everything_was_checked()
