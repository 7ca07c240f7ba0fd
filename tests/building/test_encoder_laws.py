"""One row, a block, a file, many threads, text or lists: an encoder gives the same bits."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.building.settings import Settings
from headrace.errors import SourceError

Batch = dict[str, Any]


def assert_equal(one: Batch, other: Batch, names: Any = None) -> None:
    for name in set(one) - {"sample_id"} if names is None else names:
        assert one[name].dtype == other[name].dtype
        np.testing.assert_array_equal(one[name].view(np.uint8), other[name].view(np.uint8), err_msg=name)


def rows_of(batch: Batch, place: int) -> Batch:
    return {name: array[place : place + 1] for name, array in batch.items()}


# -- new files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threads", "memory", "part", "block"),
    [(1, None, None, None), (3, "128MiB", None, None), (2, None, 20_000, 3_000), (4, None, 60_000, 20_000)],
)
def test_new_files_in_any_blocks_by_any_threads(
    ads: hr.DatasetDict,
    encoded_ads: Path,
    ads_file: Path,
    tmp_path: Path,
    store_bytes: Any,
    monkeypatch: pytest.MonkeyPatch,
    threads: int,
    memory: str | None,
    part: int | None,
    block: int | None,
) -> None:
    if part and block:
        monkeypatch.setattr(Settings, "part_bytes", property(lambda _: part))
        monkeypatch.setattr(Settings, "block_bytes", property(lambda _: block))
    hr.encode(ads.folder, ads_file, out=tmp_path / "new", threads=threads, memory=memory)
    assert store_bytes(tmp_path / "new") == store_bytes(encoded_ads)


@pytest.fixture(scope="module")
def encoded_ads(ads: hr.DatasetDict, ads_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "ads"
    hr.encode(ads.folder, ads_file, out=folder, threads=2)
    return folder


# -- one encoder, many threads ------------------------------------------------------------------


def test_one_encoder_used_by_many_threads_at_once(ads: hr.DatasetDict, ads_file: Path) -> None:
    encoder = hr.Encoder(ads.folder)
    rows = [row for row in map(json.loads, ads_file.read_text().splitlines()) if is_good(encoder, row)][:120]
    expected = [encoder.encode([row]) for row in rows]
    together = threading.Barrier(6)
    found: list[list[Batch]] = [[] for _ in range(6)]

    def work(number: int) -> None:
        together.wait()
        for start in range(0, len(rows), number + 1):
            batch = encoder.encode(rows[start : start + number + 1])
            found[number] += [rows_of(batch, place) for place in range(len(batch["sample_id"]))]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for batches in found:
        assert len(batches) == len(rows)
        for one, other in zip(batches, expected, strict=True):
            assert_equal(other, one)


def is_good(encoder: hr.Encoder, row: Any) -> bool:
    try:
        encoder.encode([row])
    except SourceError:
        return False
    return True


def test_batches_of_an_encoder_do_not_share_memory(ads: hr.DatasetDict) -> None:
    encoder = hr.Encoder(ads.folder)
    first, second = encoder.encode([{"ts": 1, "user": 1}]), encoder.encode([{"ts": 1, "user": 2}])
    for name, array in first.items():
        assert array.flags.writeable
        assert not any(np.shares_memory(array, other) for other in second.values()), name


# -- any values, in a row or in a file ----------------------------------------------------------

NUMBERS = (
    st.none()
    | st.integers(-(2**70), 2**70)
    | st.integers(-9, 9)
    | st.floats(-1e12, 1e12)
    | st.sampled_from([0.0, -0.0, 1500.0, 2.5, "2.5", "7", " 7", "1e3", 1_748_736_000_123_456_789])
)
IDS = st.none() | st.sampled_from(["x", "y", "z", "", "é", "007"]) | st.integers(-3, 9) | st.just(2**64 - 1)
ROWS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "a": IDS,
            "b": IDS,
            "h": st.none() | st.lists(IDS, max_size=5),
            "w": st.none() | st.dictionaries(st.sampled_from("xyzq"), st.floats(-4, 4, width=32), max_size=4),
            "n": NUMBERS,
            "t": st.none() | st.integers(0, 2**62) | st.sampled_from([1500.0, 1499.0, 2.5, "2025-06-01"]),
            "v": st.none()
            | st.lists(st.floats(-9, 9, width=32) | st.integers(-9, 9), min_size=2, max_size=2),
        },
    ),
    min_size=1,
    max_size=12,
)


@pytest.fixture(scope="module")
def any_store(tmp_path_factory: pytest.TempPathFactory) -> hr.DatasetDict:
    folder = tmp_path_factory.mktemp("any")
    rows: list[dict[str, Any]] = [
        {"a": "x", "b": 1, "h": ["x", 7, "y"], "w": {"x": 1}, "n": 1, "t": 5, "v": [1, 2]},
        {"a": "y", "b": "z", "h": ["x"], "w": {"y": 0.5}, "n": 4.5, "t": 5, "v": [1, 2]},
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "name": "any",
        "source": {"files": str(folder / "log.jsonl")},
        "time": {"column": "t", "unit": "ns"},
        "vocabularies": {"v": {"min_count": 1, "unseen": "hash", "unknown_buckets": 5}},
        "features": {
            "a": {"kind": "categorical", "vocabulary": "v"},
            "b": {"kind": "categorical", "missing": "unknown"},
            "h": {"kind": "sequence", "vocabulary": "v", "max_length": 3},
            "s": {"kind": "set", "column": "h", "max_length": 2},
            "w": {"kind": "weighted_set", "max_length": 2},
            "n": {"kind": "numeric", "transform": "standardize"},
            "minute": {"kind": "time", "column": "t", "part": "minute"},
            "a_x_b": {"kind": "cross", "columns": ["a", "b"], "buckets": 99},
            "hashed": {"kind": "hashed", "column": "a", "buckets": 99},
            "v": {"kind": "vector", "dim": 2},
        },
        "id": {"column": "b"},
    }
    return hr.build(spec, out=folder / "store")


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_rows_in_memory_are_rows_of_a_file(
    any_store: hr.DatasetDict, rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    everything = dict.fromkeys(["a", "b", "h", "w", "n", "t", "v"])
    rows = [everything, *rows]  # every column is there
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    new = hr.encode(any_store.folder, folder / "log.jsonl", out=folder / "new", threads=1)
    in_file = next(iter(new.loader(batch_size=len(rows), output="numpy")))
    encoder = hr.Encoder(any_store.folder)
    whole = encoder.encode(rows)
    assert_equal(whole, in_file)
    for place in range(len(rows)):
        assert_equal(encoder.encode(rows[place : place + 1]), rows_of(whole, place))


@pytest.mark.parametrize(
    "row",
    [
        {"a": 5},
        {"a": "x"},
        {"a": [{"b": "x"}]},
        {"a": True},
        {"a": {"b": {}}},
        {"a": None},
        {"a": {}},
        {"a": {"b": None}},
        {"a.b": None, "a": {"b": "x"}},
        {"a.b": "x", "a": 5},
        {},
    ],
)
def test_nested_keys_in_memory_are_those_of_a_file(built: Any, tmp_path: Path, row: dict[str, Any]) -> None:
    """What a file quarantines is refused in memory, and what is missing in one is in the other."""
    good = {"a": {"b": "x"}}
    store = built(
        [good], features={"b": {"kind": "categorical", "column": "a.b"}}, source={"max_bad_fraction": 1}
    )
    path = tmp_path / "new.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in (good, row)))
    new = hr.encode(store.folder, path, out=tmp_path / "new")
    encoder = hr.Encoder(store.folder)
    if len(new) == 2:
        in_file = next(iter(new.loader(batch_size=2, output="numpy")))
        assert encoder.encode([good, row])["b"].tolist() == in_file["b"].tolist()
    else:
        with pytest.raises(SourceError, match=r"row 1: a\.b: .*(found|is a)"):
            encoder.encode([good, row])


# -- stores of CSV ------------------------------------------------------------------------------

CSV = r"""user;tags;seen;seen_ts;interest;image;price;ts
u1;a|b|c;x|y;1|2;a=0.5|b=2;0.5|1;3.5;10
u2;a;;;;2|3;\N;11
;;x|x;3|3;a=1;;1e2;12
"u1";"b|a";"";"";"b=0.25";"1|-1";"7";13
\N;\N;y;1;\N;\N;;14
"""
LIST_COLUMNS = ("tags", "seen", "seen_ts", "image")


@pytest.fixture(scope="module")
def csv_store(tmp_path_factory: pytest.TempPathFactory) -> hr.DatasetDict:
    folder = tmp_path_factory.mktemp("csv")
    (folder / "log.csv").write_text(CSV)
    spec = {
        "name": "csv",
        "source": {"files": str(folder / "log.csv"), "delimiter": ";", "missing_values": ["", "\\N"]},
        "time": {"column": "ts"},
        "features": {
            "user": {"kind": "categorical"},
            "tags": {"kind": "set", "max_length": 2, "separator": "|"},
            "seen": {"kind": "sequence", "time": "seen_ts", "max_length": 2, "separator": "|"},
            "interest": {"kind": "weighted_set", "max_length": 2, "separator": "|", "pair_separator": "="},
            "image": {"kind": "vector", "dim": 2, "separator": "|"},
            "price": {"kind": "numeric", "transform": "log1p", "missing": -1.0},
        },
    }
    return hr.build(spec, out=folder / "store")


@pytest.fixture(scope="module")
def csv_batch(csv_store: hr.DatasetDict) -> Batch:
    batch: Batch = next(iter(csv_store["train"].loader(batch_size=9, shuffle=False, output="numpy")))
    return batch


@pytest.fixture
def fields() -> list[dict[str, Any]]:
    return list(csv.DictReader(CSV.splitlines(), delimiter=";"))


def as_lists(row: dict[str, Any]) -> dict[str, Any]:
    """The row as JSON would give it."""
    values: dict[str, Any] = {key: None if value in ("", "\\N") else value for key, value in row.items()}
    for name in LIST_COLUMNS:
        values[name] = values[name] and values[name].split("|")
    pairs = [pair.split("=") for pair in (values["interest"] or "").split("|") if pair]
    values["interest"] = {key: float(weight) for key, weight in pairs} if pairs else None
    return values


def ways(fields: list[dict[str, Any]]) -> Iterator[Any]:
    lists = [as_lists(row) for row in fields]
    yield fields
    yield lists
    yield [one if place % 2 else other for place, (one, other) in enumerate(zip(fields, lists, strict=True))]
    yield pa.Table.from_pylist(fields)


@pytest.mark.parametrize("way", range(4))
def test_rows_of_a_csv_store_as_text_or_as_lists(
    csv_store: hr.DatasetDict, csv_batch: Batch, fields: list[dict[str, Any]], way: int
) -> None:
    rows = list(ways(fields))[way]
    encoder = hr.Encoder(csv_store.folder)
    assert_equal(encoder.encode(rows), csv_batch)
    for place in range(len(fields)):
        one = rows.slice(place, 1) if isinstance(rows, pa.Table) else rows[place : place + 1]
        assert_equal(encoder.encode(one), rows_of(csv_batch, place))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"interest": "a"},
            r"^row 1: interest holds 'a', expected a value and a finite weight, as in a=0\.5\.$",
        ),
        ({"image": "1|2|3"}, r"^row 1: image has 3 numbers, expected 2\.$"),
        ({"tags": 5}, r"^row 1: tags: expected a list, found 5\.$"),
        ({"interest": ["a"]}, r"^row 1: interest: expected a dict of values and weights, found \['a'\]\.$"),
        ({"user": "\ud800"}, r"^row 1: user: a text is not valid Unicode \(surrogates not allowed\)\.$"),
        ({"tags": ["a", "\ud800"]}, r"^row 1: tags: a text is not valid Unicode"),
        ({"user": b"\xff"}, r"^row 1: user: 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_what_a_csv_store_refuses(csv_store: hr.DatasetDict, row: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        hr.Encoder(csv_store.folder).encode([{"ts": 1}, {"ts": 1, **row}])
