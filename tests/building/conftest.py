"""A second encoder in plain Python, and stores held against it column by column."""

from __future__ import annotations

import json
import random  # noqa: TID251 - makes rows for tests, decides nothing
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headrace as hr

PAD, UNKNOWN, MISSING, FIRST = 0, 1, 2, 3
Raw = Mapping[str, Sequence[Any]]


def ranked(values: Iterable[str], min_count: int = 1, max_size: int | None = None) -> list[str]:
    """Values by falling count, ties in byte order: section 3 of the contract in three lines."""
    counted = Counter(values)
    kept = [value for value, count in counted.items() if count >= min_count]
    return sorted(kept, key=lambda value: (-counted[value], value.encode()))[:max_size]


def smallest_dtype(size: int) -> str:
    """The smallest unsigned type for the ids 0 to size - 1."""
    return "uint8" if size <= 256 else "uint16" if size <= 65_536 else "uint32"


class Comparison:
    """A store, and what plain Python says of it. ``raw`` maps a split to a value for each of its rows."""

    def __init__(self, splits: hr.DatasetDict) -> None:
        self.splits = splits
        self.batches = {split: collect(splits[split]) for split in splits}
        self.checked: set[str] = set()
        for split in splits:
            self._shuffled_batches_hold_the_same_rows(split)

    def _shuffled_batches_hold_the_same_rows(self, split: str) -> None:
        dataset = self.splits[split]
        seen = []
        for batch in dataset.loader(batch_size=257, shuffle="global", seed=5, output="numpy", masks=True):
            rows = batch["sample_id"]
            seen.append(rows)
            for name, array in batch.items():
                np.testing.assert_array_equal(array, self.batches[split][name][rows], err_msg=name)
        assert sorted(np.concatenate([*seen, np.empty(0, np.int64)]).tolist()) == list(range(len(dataset)))

    def column(self, split: str, name: str) -> pa.Array:
        self.checked.add(name)
        return self.splits[split].to_arrow()[name].combine_chunks()

    def _vocabulary(self, name: str, values: list[str], counts: Counter[str], missing: int | None) -> None:
        vocabulary = self.splits.features[name].vocabulary
        assert vocabulary is not None
        assert [value for value, _ in vocabulary.token_freqs] == values
        assert [count for _, count in vocabulary.token_freqs] == [counts[value] for value in values]
        if missing is not None:
            assert vocabulary.counts[MISSING] == missing
        assert vocabulary.counts.sum() == counts.total() + (missing or 0)

    def rank(
        self, name: str, elements: Iterable[str | None], min_count: int = 1, max_size: int | None = None
    ) -> dict[str, int]:
        """Check the vocabulary of a feature against the elements of train; return the id of each value."""
        elements = list(elements)
        counts = Counter(element for element in elements if element is not None)
        values = ranked(counts.elements(), min_count, max_size)
        self._vocabulary(name, values, counts, elements.count(None))
        return {value: FIRST + place for place, value in enumerate(values)}

    def categorical(
        self,
        name: str,
        raw: Raw,
        *,
        min_count: int = 1,
        max_size: int | None = None,
        ids: Mapping[str, int] | None = None,
    ) -> None:
        if ids is None:
            ids = self.rank(name, raw["train"], min_count, max_size)
        for split in self.splits:
            values = list(raw[split])
            expected = [MISSING if value is None else ids.get(value, UNKNOWN) for value in values]
            self._scalar_ids(split, name, expected, [value is not None for value in values])
            vocabulary = self.splits.features[name].vocabulary
            assert vocabulary is not None
            decoded = vocabulary.decode(expected)
            for value, text in zip(values, decoded, strict=True):
                assert text == ("<missing>" if value is None else value if value in ids else "<unk>")

    def _scalar_ids(self, split: str, name: str, expected: list[int], present: list[bool]) -> None:
        column = self.column(split, name)
        assert str(column.type) == smallest_dtype(self.splits.features[name].size or 0)
        assert column.is_valid().to_pylist() == present
        under = np.frombuffer(column.buffers()[1], column.type.to_pandas_dtype())
        assert under[column.offset : column.offset + len(column)].tolist() == expected
        batch = self.batches[split]
        assert batch[name].dtype == np.int64
        assert batch[name].tolist() == expected
        assert batch[f"{name}_present"].tolist() == present

    def own_ids(self, name: str, expected: Mapping[str, Sequence[int | None]]) -> None:
        """Hashed, crossed, time and bucketized features: numbers from 0, None where missing."""
        for split in self.splits:
            numbers = list(expected[split])
            ids = [MISSING if number is None else FIRST + number for number in numbers]
            self._scalar_ids(split, name, ids, [number is not None for number in numbers])

    def numeric(
        self, name: str, raw: Raw, *, fill: float = 0.0, function: Callable[[float], float] = float
    ) -> None:
        for split in self.splits:
            values = list(raw[split])
            expected = np.array(
                [np.float32(fill if value is None else function(value)) for value in values], np.float32
            )
            column = self.column(split, name)
            assert column.type == pa.float32()
            assert column.is_valid().to_pylist() == [value is not None for value in values]
            batch = self.batches[split]
            assert batch[name].dtype == np.float32
            np.testing.assert_array_equal(batch[name], expected, err_msg=name)
            assert batch[f"{name}_present"].tolist() == [value is not None for value in values]
            present = [value for value in column.to_pylist() if value is not None]
            assert present == expected[batch[f"{name}_present"]].tolist()

    def sequence(
        self,
        name: str,
        raw: Raw,
        max_length: int,
        *,
        keep: str = "last",
        pad: str = "left",
        min_count: int = 1,
        ids: Mapping[str, int] | None = None,
    ) -> None:
        if ids is None:
            ids = self.rank(name, [e for row in raw["train"] for e in row or []], min_count)
        for split in self.splits:
            rows = []
            for row in raw[split]:
                encoded = [MISSING if e is None else ids.get(e, UNKNOWN) for e in row or []]
                rows.append(encoded[-max_length:] if keep == "last" else encoded[:max_length])
            self._lists(split, name, rows, [row is not None for row in raw[split]], max_length, pad)

    def set(
        self,
        name: str,
        raw: Raw,
        max_length: int,
        *,
        min_count: int = 1,
        ids: Mapping[str, int] | None = None,
    ) -> None:
        if ids is None:
            distinct = [element for row in raw["train"] for element in dict.fromkeys(row or [])]
            ids = self.rank(name, distinct, min_count)
        for split in self.splits:
            rows = [
                most_frequent({MISSING if e is None else ids.get(e, UNKNOWN) for e in row or []}, max_length)
                for row in raw[split]
            ]
            self._lists(split, name, rows, [row is not None for row in raw[split]], max_length, "right")

    def _lists(
        self, split: str, name: str, rows: list[list[int]], present: list[bool], max_length: int, pad: str
    ) -> None:
        column = self.column(split, name)
        assert str(column.type.value_type) == smallest_dtype(self.splits.features[name].size or 0)
        assert column.is_valid().to_pylist() == present
        assert [row or [] for row in column.to_pylist()] == rows
        batch = self.batches[split]
        padded, mask = padded_rows(rows, max_length, pad, PAD, np.int64)
        np.testing.assert_array_equal(batch[name], padded, err_msg=name)
        np.testing.assert_array_equal(batch[f"{name}_mask"], mask, err_msg=name)
        assert batch[name].dtype == np.int64
        assert batch[f"{name}_mask"].dtype == np.bool_
        assert batch[f"{name}_lengths"].dtype == np.int32
        assert batch[f"{name}_lengths"].tolist() == [len(row) for row in rows]
        assert batch[f"{name}_present"].tolist() == present

    def weighted_set(self, name: str, raw: Raw, max_length: int) -> None:
        """``raw``: a list of (value, weight) pairs for each row, or None; values are different in a row."""
        ids = self.rank(name, [value for row in raw["train"] for value, _ in row or []])
        for split in self.splits:
            rows, weights = [], []
            for row in raw[split]:
                pairs = sorted((ids.get(value, UNKNOWN), weight) for value, weight in row or [])
                largest = sorted(range(len(pairs)), key=lambda i: (-pairs[i][1], pairs[i][0]))[:max_length]
                rows.append([pairs[i][0] for i in sorted(largest)])
                weights.append([pairs[i][1] for i in sorted(largest)])
            self._lists(split, name, rows, [row is not None for row in raw[split]], max_length, "right")
            padded, _ = padded_rows(weights, max_length, "right", 0.0, np.float32)
            batch = self.batches[split]
            np.testing.assert_array_equal(batch[f"{name}_weights"], padded, err_msg=name)
            assert batch[f"{name}_weights"].dtype == np.float32
            self.checked.add(f"{name}_weights")

    def label(self, name: str, raw: Raw, dtype: type = np.float32) -> None:
        for split in self.splits:
            values = list(raw[split])
            batch = self.batches[split]
            assert batch[name].dtype == dtype
            np.testing.assert_array_equal(
                batch[name],
                np.array([0 if value is None else value for value in values], dtype),
                err_msg=name,
            )
            known = [value is not None for value in values]
            assert batch[f"{name}_mask"].tolist() == known
            assert self.column(split, name).is_valid().to_pylist() == known

    def everything_was_checked(self) -> None:
        """Every column of the shards was compared, but for those that name a row."""
        columns = set(self.splits["train"].column_names)
        assert columns - self.checked <= {"__file__", "__row__", "__id__", "__time__", "weight"}


def most_frequent(ids: set[int], max_length: int) -> list[int]:
    """The set a store keeps: values by id, which is by falling count, before reserved ids."""
    values = sorted(token for token in ids if token >= FIRST)[:max_length]
    reserved = sorted(token for token in ids if token < FIRST)[: max_length - len(values)]
    return reserved + values


def padded_rows(rows: list[list[Any]], length: int, side: str, fill: Any, dtype: Any) -> tuple[Any, Any]:
    padded = np.full((len(rows), length), fill, dtype)
    mask = np.zeros((len(rows), length), bool)
    for number, row in enumerate(rows):
        if row:
            place = slice(length - len(row), length) if side == "left" else slice(0, len(row))
            padded[number, place] = row
            mask[number, place] = True
    return padded, mask


def collect(dataset: hr.Dataset) -> dict[str, np.ndarray[Any, Any]]:
    """All rows of a split, from its loader, in order."""
    batches = list(dataset.loader(batch_size=1000, shuffle=False, output="numpy", masks=True))
    if not batches:
        return {}
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


@pytest.fixture(scope="session")
def compare() -> type[Comparison]:
    return Comparison


@pytest.fixture(scope="session")
def collect_batches() -> Callable[[hr.Dataset], dict[str, Any]]:
    return collect


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., str]:
    """Writes rows as JSON lines beside the test; gives the path."""

    def log(rows: Iterable[Mapping[str, Any]], name: str = "log.jsonl") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    return log


@pytest.fixture
def built(tmp_path: Path, log: Callable[..., str]) -> Callable[..., hr.DatasetDict]:
    """Builds a store of rows: ``built(rows, features={...}, labels={...})``."""
    number = iter(range(1000))

    def built(rows: Iterable[Mapping[str, Any]] | str, /, **declared: Any) -> hr.DatasetDict:
        count = next(number)
        source = declared.pop("source", {})
        if not isinstance(rows, str):
            rows = log(rows, f"log{count}.jsonl")
        declared = {"name": "test", "source": {"files": rows, **source}, **declared}
        return hr.build(declared, out=tmp_path / f"store{count}", threads=2)

    return built


def ad_log(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """A log with everything in it: nested keys, nulls, lists, pairs, vectors, late conversions, bad rows."""
    draw = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for number in range(count):
        ts = 1000 + 10 * number
        seen = sorted(draw.randrange(ts) for _ in range(draw.randrange(7)))
        row: dict[str, Any] = {
            "request": f"r{number}",
            "ts": ts,
            "user": int(40 * draw.random() ** 2),
            "creative": draw.choice(
                ["c1", "c2", "7", 7, "007", "ü", "", 18446744073709551615, None, draw.randrange(90)]
            ),
            "ad": draw.choice([None, {}, {"industry": draw.choice("xyz")}]),
            "history": draw.choice([None, [draw.choice(["c1", "c2", 7, None, "ü"]) for _ in seen]]),
            "tags": draw.choice([None, [], [draw.choice("abcdefgh") for _ in range(draw.randrange(9))]]),
            "interest": draw.choice([None, {}, {str(draw.randrange(30)): draw.random() for _ in range(6)}]),
            "price": draw.choice([None, 0, 1.5, draw.randrange(1000) / 8, "12.25"]),
            "image": draw.choice([None, [draw.random(), 2.0, -0.5]]),
            "slot": draw.choice([1, 2, 3, None]),
            "click": draw.choice([0, 1, True, None]),
            "conv_ts": draw.choice([None, ts + draw.randrange(2000)]),
            "rating": draw.choice(["good", "bad", None]),
            "w": draw.randrange(1, 9) / 4,
        }
        row["history_ts"] = seen if row["history"] is not None else None
        if draw.random() < 0.2:
            del row[draw.choice(["creative", "tags", "price", "slot"])]
        if draw.random() < 0.03:
            row.update(
                draw.choice(
                    [{"price": "a lot"}, {"w": None}, {"image": [1]}, {"history_ts": [ts]}, {"ts": "?"}]
                )
            )
        rows.append(row)
    return rows


def ad_spec(files: str, last: int) -> dict[str, Any]:
    """A declaration with every kind; ``last`` is the largest number of a row."""
    edge = 1000 + 10 * (last * 6 // 10)
    return {
        "name": "ads",
        "source": {"files": files, "max_bad_fraction": 0.5},
        "time": {"column": "ts"},
        "split": {
            "by": "time",
            "train": {"until": edge},
            "valid": {"from": edge + 500, "until": edge + 1500},
            "test": {"from": edge + 1500},
        },
        "vocabularies": {"creative": {"min_count": 2, "unseen": "hash", "unknown_buckets": 4}},
        "features": {
            "user": {"kind": "categorical", "min_count": 3},
            "creative": {"kind": "categorical", "vocabulary": "creative"},
            "industry": {"kind": "categorical", "column": "ad.industry", "missing": "unknown"},
            "history": {"kind": "sequence", "vocabulary": "creative", "time": "history_ts", "max_length": 4},
            "tags": {"kind": "set", "max_length": 3, "max_size": 5},
            "interest": {"kind": "weighted_set", "max_length": 3},
            "price": {"kind": "numeric", "missing": -1.0},
            "price_log": {"kind": "numeric", "column": "price", "transform": "log1p"},
            "price_z": {"kind": "numeric", "column": "price", "transform": "standardize"},
            "price_unit": {"kind": "numeric", "column": "price", "transform": "minmax"},
            "price_bucket": {"kind": "numeric", "column": "price", "transform": "bucketize", "buckets": 5},
            "minute": {"kind": "time", "column": "ts", "part": "minute"},
            "user_x_slot": {"kind": "cross", "columns": ["user", "slot"], "buckets": 30},
            "device": {"kind": "hashed", "column": "user", "buckets": 7},
            "image": {"kind": "vector", "dim": 3},
        },
        "labels": {
            "click": {"kind": "binary"},
            "convert": {
                "kind": "attribution",
                "click_time": "ts",
                "convert_time": "conv_ts",
                "window": "15m",
                "given": "click",
                "weight": "w",
            },
            "sale": {
                "kind": "attribution",
                "click_time": "ts",
                "convert_time": "conv_ts",
                "window": "5m",
                "censored": "drop",
            },
            "rating": {"kind": "class"},
            "paid": {"kind": "continuous", "column": "price"},
        },
        "weight": {"column": "w"},
        "id": {"column": "request"},
    }


@pytest.fixture(scope="session")
def make_ads() -> Callable[..., list[dict[str, Any]]]:
    return ad_log


@pytest.fixture(scope="session")
def make_spec() -> Callable[[str, int], dict[str, Any]]:
    return ad_spec


@pytest.fixture(scope="session")
def ads_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ads") / "ads.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ad_log(700)))
    return path


@pytest.fixture(scope="session")
def ads_spec(ads_file: Path) -> dict[str, Any]:
    return ad_spec(str(ads_file), 700)


@pytest.fixture(scope="session")
def ads(ads_spec: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> hr.DatasetDict:
    """The store of ``ads_spec``, to be read only."""
    return hr.build(ads_spec, out=tmp_path_factory.mktemp("store") / "ads", threads=1)


@pytest.fixture(scope="session")
def store_bytes() -> Callable[[Path], dict[str, bytes]]:
    """Every file of a store by name, what a build leaves for the next one left out."""

    def store_bytes(folder: Path) -> dict[str, bytes]:
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        names = {path.relative_to(folder).as_posix(): path for path in files}
        return {name: path.read_bytes() for name, path in names.items() if not name.startswith(".build/")}

    return store_bytes
