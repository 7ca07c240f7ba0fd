"""Every kind of feature and each of its options, with expected values by hand."""

from __future__ import annotations

import datetime
import math
import zoneinfo
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

import headrace as hr
from headrace.errors import BuildError, SourceError, SpecError, VocabularyError
from headrace.sources.quarantine import read_quarantine


def batch_of(splits: hr.DatasetDict, split: str = "train", **options: Any) -> dict[str, Any]:
    dataset = splits[split]
    options = {"masks": True, **options}
    return next(iter(dataset.loader(batch_size=max(len(dataset), 1), output="numpy", **options)))


def reasons(splits: hr.DatasetDict) -> dict[int, str]:
    paths = sorted(splits.folder.glob("quarantine/*.jsonl"))
    return {row.line: row.reason for path in paths for row in read_quarantine(path)}


LENIENT = {"max_bad_fraction": 1.0}


# -- vocabularies -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "ids", "counts"),
    [
        ({}, [3, 3, 4, 2], [0, 0, 1, 2, 1]),
        ({"missing": "unknown"}, [2, 2, 3, 1], [0, 1, 2, 1]),
        ({"missing": "pad"}, [2, 2, 3, 0], [1, 0, 2, 1]),
        ({"min_count": 2}, [3, 3, 1, 2], [0, 1, 1, 2]),
        ({"min_count": 2, "missing": "unknown"}, [2, 2, 1, 1], [0, 2, 2]),
        ({"max_size": 1}, [3, 3, 1, 2], [0, 1, 1, 2]),
        ({"max_size": 1, "missing": "pad"}, [2, 2, 1, 0], [1, 1, 2]),
        ({"reserved": {"pad": 0, "unknown": 0}}, [2, 2, 3, 1], [0, 1, 2, 1]),
        ({"reserved": {"pad": 0, "unknown": 0, "missing": 0}}, [1, 1, 2, 0], [1, 2, 1]),
        ({"reserved": {"missing": 1}, "min_count": 2}, [2, 2, 1, 1], [0, 2, 2]),
        ({"reserved": {"missing": 0}}, [2, 2, 3, 0], [1, 0, 2, 1]),
        ({"unseen": "hash", "unknown_buckets": 1, "min_count": 2}, [3, 3, 4, 2], [0, 0, 1, 2, 1]),
    ],
)
def test_reserved_ids(built: Any, options: dict[str, Any], ids: list[int], counts: list[int]) -> None:
    """The values a, a, b, null."""
    rows = [{"x": "a"}, {"x": "a"}, {"x": "b"}, {"x": None}]
    splits = built(rows, features={"x": {"kind": "categorical", **options}})
    batch = batch_of(splits)
    assert batch["x"].tolist() == ids
    assert batch["x_present"].tolist() == [True, True, True, False]
    assert splits.features["x"].vocabulary.counts.tolist() == counts
    assert splits.features["x"].size == len(counts) == splits.embedding_sizes()["x"]
    assert sum(counts) == 4
    (new, null) = hr.Encoder(splits.folder).encode([{"x": "new"}, {}])["x"].tolist()
    unknown = splits.features["x"].vocabulary.unk
    assert new == (len(counts) - 1 if "unknown_buckets" in options else unknown)
    assert null == ids[-1]


def test_unseen_values_are_hashed_into_the_last_ids(built: Any) -> None:
    rows = [{"x": value} for value in ["a", "a", "b", "c", "d", "007"]]
    options = {"min_count": 2, "unseen": "hash", "unknown_buckets": 5}
    splits = built(rows, features={"x": {"kind": "categorical", **options}})

    def bucket(text: str) -> int:
        return 4 + xxhash.xxh64(text.encode()).intdigest() % 5

    assert batch_of(splits)["x"].tolist() == [3, 3, *map(bucket, ["b", "c", "d", "007"])]
    counts = splits.features["x"].vocabulary.counts
    assert counts[:4].tolist() == [0, 0, 0, 2]
    assert counts.sum() == 6
    assert splits.features["x"].size == 9
    assert hr.Encoder(splits.folder).encode([{"x": "later"}])["x"].tolist() == [bucket("later")]
    assert splits.vocabularies["x"].decode([bucket("b")]) == [f"<bucket {bucket('b') - 4}>"]


@pytest.mark.parametrize("kind", ["categorical", "sequence", "set", "weighted_set"])
def test_an_unseen_value_can_be_an_error(built: Any, kind: str) -> None:
    def value(text: str) -> Any:
        return {"categorical": text, "weighted_set": {text: 1.0}}.get(kind, [text])

    feature = {"kind": kind, "unseen": "error"} | ({} if kind == "categorical" else {"max_length": 2})
    rows = [{"t": 1, "x": value("a")}, {"t": 5, "x": value("zebra")}]
    split = {"by": "time", "train": {"until": 3}, "test": {"from": 3}}
    with pytest.raises(
        VocabularyError, match=r"features\.x: 'zebra' is not in the vocabulary .* unseen = \"error\""
    ):
        built(rows, time={"column": "t"}, split=split, features={"x": feature})
    splits = built(rows[:1], features={"x": feature})
    with pytest.raises(VocabularyError, match="'zebra'"):
        hr.Encoder(splits.folder).encode([{"x": value("zebra")}])
    assert hr.Encoder(splits.folder).encode([{"x": value("a")}, {"x": None}])["x"].shape[0] == 2


def test_a_vocabulary_from_another_store(built: Any) -> None:
    one = built([{"x": "b"}, {"x": "b"}, {"x": "a"}], features={"x": {"kind": "categorical"}})
    source = str(one.folder)
    taken = built(
        [{"x": "z"}, {"x": "z"}, {"x": "a"}, {"x": None}],
        features={"x": {"kind": "categorical", "from": source}},
    )
    assert batch_of(taken)["x"].tolist() == [1, 1, 4, 2]
    assert taken.vocabularies["x"].token_freqs == [("b", 2), ("a", 1)]
    assert hr.verify(taken.folder) == []
    shared = built(
        [{"h": ["a", "q", None]}],
        vocabularies={"x": {"from": source}},
        features={"h": {"kind": "sequence", "vocabulary": "x", "max_length": 3}},
    )
    assert batch_of(shared)["h"].tolist() == [[4, 1, 2]]
    with pytest.raises(BuildError, match=r"vocabularies\.y: the store .* has no vocabulary of this name"):
        built([{"y": 1}], features={"y": {"kind": "categorical", "from": source}})
    bare = built([{"x": "a"}], features={"x": {"kind": "categorical", "missing": "unknown"}})
    with pytest.raises(BuildError, match=r'features\.x: missing = "own", and the vocabulary \'x\' of'):
        built([{"x": "a"}], features={"x": {"kind": "categorical", "from": str(bare.folder)}})
    assert batch_of(
        built(
            [{"x": None}],
            features={"x": {"kind": "categorical", "from": str(bare.folder), "missing": "unknown"}},
        )
    )["x"].tolist() == [1]


def test_missing_in_different_ways_on_one_vocabulary(built: Any) -> None:
    rows = [{"a": "v", "b": None, "c": None}, {"a": None, "b": "v", "c": "w"}]
    splits = built(
        rows,
        vocabularies={"v": {}},
        features={
            "a": {"kind": "categorical", "vocabulary": "v"},
            "b": {"kind": "categorical", "vocabulary": "v", "missing": "unknown"},
            "c": {"kind": "categorical", "vocabulary": "v", "missing": "pad"},
        },
    )
    batch = batch_of(splits)
    assert [batch[name].tolist() for name in "abc"] == [[3, 2], [1, 3], [0, 4]]
    assert splits.vocabularies["v"].counts.tolist() == [1, 1, 1, 2, 1]
    assert [splits.features[name].missing for name in "abc"] == [
        "the id MISSING",
        "the id UNKNOWN",
        "the id PAD",
    ]


def test_ties_in_count_are_ordered_by_bytes(built: Any) -> None:
    values = ["é", "z", "Z", "10", "9", "", " ", "\U0001f600", "ｚ"]
    splits = built([{"x": value} for value in values], features={"x": {"kind": "categorical"}})
    assert splits.vocabularies["x"].values.to_pylist() == sorted(values, key=str.encode)


# -- sets ---------------------------------------------------------------------------------------


def test_sets(built: Any) -> None:
    """Train counts once a row: a 4, b 3, c 2, d 1."""
    rows = [{"s": s} for s in [["d", "c", "b", "a", "a"], ["a", "b", "a"], ["c", "b", "a"], ["a"], [], None]]
    new = [{"s": ["d", "zz", "c", None]}, {"s": ["zz", None, "yy"]}, {"s": [None, None, "a"]}]
    splits = built(rows, features={"s": {"kind": "set", "max_length": 2, "min_count": 2}})
    batch = batch_of(splits)
    assert splits.vocabularies["s"].token_freqs == [("a", 4), ("b", 3), ("c", 2)]
    assert batch["s"].tolist() == [[3, 4], [3, 4], [3, 4], [3, 0], [0, 0], [0, 0]]
    assert batch["s_lengths"].tolist() == [2, 2, 2, 1, 0, 0]
    assert batch["s_mask"].sum() == 7
    assert batch["s_present"].tolist() == [True] * 5 + [False]
    encoded = hr.Encoder(splits.folder).encode(new)
    assert encoded["s"].tolist() == [[1, 5], [1, 2], [2, 3]]  # values first, then reserved ids, ascending


def test_a_set_whose_unknowns_are_padding_keeps_its_length(built: Any) -> None:
    rows = [{"s": ["a", "a", "q"]}, {"s": ["a", "r"]}]
    options = {"min_count": 2, "reserved": {"unknown": 0}, "missing": "unknown"}
    batch = batch_of(built(rows, features={"s": {"kind": "set", "max_length": 3, **options}}))
    assert batch["s"].tolist() == [[0, 1, 0], [0, 1, 0]]
    assert batch["s_lengths"].tolist() == [2, 2]
    assert batch["s_mask"].tolist() == [[True, True, False]] * 2


def test_weighted_sets(built: Any, tmp_path: Path) -> None:
    rows = [
        {"w": {"a": 0.5, "b": 2, "c": "1.25"}},
        {"w": {"a": 0.1}},
        {"w": {}},
        {"w": None},
        {"w": {"c": -1.0, "b": -2.0, "a": -3.0}},
    ]
    splits = built(rows, features={"w": {"kind": "weighted_set", "max_length": 2}})
    assert splits.vocabularies["w"].token_freqs == [("a", 3), ("b", 2), ("c", 2)]
    batch = batch_of(splits)
    assert batch["w"].tolist() == [[4, 5], [3, 0], [0, 0], [0, 0], [4, 5]]
    assert batch["w_weights"].tolist() == [[2.0, 1.25], [np.float32(0.1), 0.0], [0, 0], [0, 0], [-2.0, -1.0]]
    assert batch["w_lengths"].tolist() == [2, 1, 0, 0, 2]
    assert batch["w_present"].tolist() == [True, True, True, False, True]
    path = tmp_path / "pairs.csv"
    path.write_text('w\n"a=0.5;b=2;c=1.25"\na=0.1\n""\n\\N\nc=-1;b=-2;a=-3\nurl=x=4\na;b=1\na=many\na=inf\n')
    feature = {"kind": "weighted_set", "max_length": 2, "separator": ";", "pair_separator": "="}
    source = {**LENIENT, "missing_values": ["\\N"]}
    splits = built(str(path), source=source, features={"w": feature})
    again = batch_of(splits)
    for name in ("w", "w_weights", "w_lengths", "w_present"):
        np.testing.assert_array_equal(again[name][:5], batch[name])
    assert splits.vocabularies["w"].decode(again["w"][5, :1]) == ["url=x"]
    assert again["w_weights"][5].tolist() == [4.0, 0.0]
    assert reasons(splits) == {
        8: "w holds 'a', expected a value and a finite weight, as in a=0.5",
        9: "w holds 'a=many', expected a value and a finite weight, as in a=0.5",
        10: "w holds 'a=inf', expected a value and a finite weight, as in a=0.5",
    }


def test_equal_ids_in_a_weighted_set_add_their_weights(built: Any) -> None:
    rows = [{"w": {"a": 1.0, "rare": 0.5, "rarer": 0.25}}, {"w": {"a": 3.0}}]
    splits = built(rows, features={"w": {"kind": "weighted_set", "max_length": 2, "min_count": 2}})
    batch = batch_of(splits)
    assert batch["w"].tolist() == [[1, 3], [3, 0]]
    assert batch["w_weights"].tolist() == [[0.75, 1.0], [3.0, 0.0]]


def test_weights_that_add_up_beyond_float32_are_the_largest(built: Any, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('w\n"a:3e38,a:3e38"\n"a:-3e38,a:-3e38"\n"a:3e38,a:-3e38"\n')
    batch = batch_of(
        built(str(path), source={"format": "csv"}, features={"w": {"kind": "weighted_set", "max_length": 1}})
    )
    largest = np.finfo(np.float32).max
    assert batch["w_weights"][:, 0].tolist() == [largest, -largest, 0]


# -- numbers ------------------------------------------------------------------------------------


def test_transforms(built: Any) -> None:
    """Train holds 0, 1, 3 and a missing one; test 7, -0.5 and a missing one."""
    rows = [
        {"t": t, "x": x} for t, x in [(0, 0), (0, "1"), (0, 3.0), (0, None), (9, 7), (9, -0.5), (9, None)]
    ]
    number = {"kind": "numeric", "column": "x", "missing": -9}
    splits = built(
        rows,
        time={"column": "t"},
        split={"by": "time", "train": {"until": 5}, "test": {"from": 5}},
        features={
            "plain": number,
            "zero": {"kind": "numeric", "column": "x"},
            "log": {**number, "transform": "log1p"},
            "standard": {**number, "transform": "standardize"},
            "unit": {**number, "transform": "minmax"},
            "bucket": {"kind": "numeric", "column": "x", "transform": "bucketize", "buckets": 3},
        },
    )
    train, test = batch_of(splits), batch_of(splits, "test")
    assert train["plain"].tolist() == [0, 1, 3, -9]
    assert train["zero"].tolist() == [0, 1, 3, 0]
    assert test["zero"].tolist() == [7, -0.5, 0]
    assert train["plain_present"].tolist() == [True, True, True, False]
    for batch, values in ((train, [0, 1, 3]), (test, [7, -0.5])):
        assert batch["log"].tolist() == [*(np.float32(math.log1p(v)) for v in values), -9]
        mean, deviation = 4 / 3, math.sqrt((16 / 9 + 1 / 9 + 25 / 9) / 3)
        np.testing.assert_allclose(
            batch["standard"][:-1], [(v - mean) / deviation for v in values], rtol=1e-6
        )
        np.testing.assert_allclose(batch["unit"][:-1], [v / 3 for v in values], rtol=1e-6)
        assert batch["standard"][-1] == batch["unit"][-1] == -9
        assert batch["standard"].dtype == np.float32
    assert train["bucket"].tolist() == [3, 4, 5, 2]
    assert test["bucket"].tolist() == [5, 3, 2]
    assert train["bucket"].dtype == np.int64
    assert splits.features["bucket"].size == 6
    assert splits.features["plain"].size is None
    assert splits.embedding_sizes() == {"bucket": 6}


@pytest.mark.parametrize("transform", ["none", "standardize", "minmax"])
def test_numbers_as_far_away_as_they_go(built: Any, transform: str) -> None:
    """In train and after it: no infinity, no NaN, and 1e39, which is no float32, is a bad row."""
    feature = {"kind": "numeric", "transform": transform}
    rows = [{"t": 0, "x": x} for x in (-3e38, 3e38, 1e39, -1e308)] + [{"t": 9, "x": 3.4e38}]
    splits = built(
        rows,
        time={"column": "t"},
        split={"by": "time", "train": {"until": 5}, "test": {"from": 5}},
        features={"x": feature},
        source={"max_bad_fraction": 0.5},
    )
    assert splits.accounting["quarantined"] == 2
    found = [*batch_of(splits)["x"], *batch_of(splits, "test")["x"]]
    expected = {"none": [-3e38, 3e38, 3.4e38], "standardize": [-1, 1, 3.4 / 3], "minmax": [0, 1, 6.4 / 6]}
    np.testing.assert_allclose(found, expected[transform], rtol=1e-6)


@pytest.mark.parametrize("transform", ["standardize", "minmax"])
def test_a_scaled_number_beyond_float32_is_the_largest(built: Any, transform: str) -> None:
    rows = [{"t": 0, "x": x} for x in (0, 1e-30)] + [{"t": 9, "x": x} for x in (1e30, -1e30)]
    splits = built(
        rows,
        time={"column": "t"},
        split={"by": "time", "train": {"until": 5}, "test": {"from": 5}},
        features={"x": {"kind": "numeric", "transform": transform}},
    )
    largest = np.finfo(np.float32).max
    assert batch_of(splits, "test")["x"].tolist() == [largest, -largest]


def test_a_feature_with_one_value_or_none_in_train(built: Any) -> None:
    rows = [{"t": 0, "x": 5, "y": None}, {"t": 0, "x": 5, "y": None}, {"t": 9, "x": 6, "y": 2}]
    split = {"by": "time", "train": {"until": 5}, "test": {"from": 5}}
    transforms = {"standardize": {}, "minmax": {}, "bucketize": {"buckets": 2}}
    features = {
        f"{column}_{name}": {"kind": "numeric", "column": column, "transform": name, **options}
        for column in "xy"
        for name, options in transforms.items()
    }
    splits = built(rows, time={"column": "t"}, split=split, features=features)
    train, test = batch_of(splits), batch_of(splits, "test")
    for name in ("standardize", "minmax"):
        assert train[f"x_{name}"].tolist() == [0, 0]
        assert test[f"x_{name}"].tolist() == test[f"y_{name}"].tolist() == [0]
    assert train["x_bucketize"].tolist() == [3, 3]
    assert test["x_bucketize"].tolist() == [4]
    assert train["y_bucketize"].tolist() == [2, 2]


def test_quantiles_are_the_smallest_values_that_cover_their_share(built: Any) -> None:
    values = [5, 1, 1, 1, 2, 8, 9, 9, 4, 7]
    feature = {"kind": "numeric", "transform": "bucketize", "buckets": 4}
    splits = built([{"x": x} for x in values], features={"x": feature})
    borders = [sorted(values)[math.ceil(k * 10 / 4) - 1] for k in (1, 2, 3)]
    assert borders == [1, 4, 8]
    assert batch_of(splits)["x"].tolist() == [3 + sum(border < x for border in borders) for x in values]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_numbers_as_they_are_written(built: Any, tmp_path: Path, form: str) -> None:
    """Each text with what an int column makes of it, and what a float column makes of it (None: bad)."""
    written = {
        "007": (7, 7),
        "-0": (0, 0),
        "1.0": (1, 1),
        "1e2": (100, 100),
        "+3": (3, 3),
        " 5 ": (5, 5),
        "1.5": (None, 1.5),
        "Nan": (None, None),
        "inf": (None, None),
        "-Infinity": (None, None),
        "x": (None, None),
        "1,5": (None, None),
        "0x10": (None, None),
        "1_000": (None, None),
        "1e400": (None, None),
        "1e39": (None, None),
        ".5": (None, 0.5),
        "5.": (5, 5),
        "-1e-3": (None, -0.001),
        "1e": (None, None),
        "--1": (None, None),
        "٣": (None, None),
        "9007199254740993": (9007199254740992, 9007199254740992),
        "123456789012345678901": (123456789012345678901, 123456789012345678901),
    }
    for dtype, place in (("int", 0), ("float", 1)):
        if form == "csv":
            source: Any = str(tmp_path / f"{dtype}.csv")
            Path(source).write_text("n;x\n" + "".join(f"{n};{text}\n" for n, text in enumerate(written)))
            options = {**LENIENT, "delimiter": ";"}
        else:
            source, options = [{"n": n, "x": text} for n, text in enumerate(written)], LENIENT
        features = {"n": {"kind": "categorical"}, "x": {"kind": "numeric", "dtype": dtype}}
        splits = built(source, source=options, features=features)
        found = dict(
            zip(splits.vocabularies["n"].decode(batch_of(splits)["n"]), batch_of(splits)["x"], strict=True)
        )
        expected = {str(n): pair[place] for n, pair in enumerate(written.values()) if pair[place] is not None}
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert found[name] == np.float32(value)


def test_nan_can_be_missing(built: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0, math.nan, math.inf, None]}), tmp_path / "n.parquet")
    number = {"kind": "numeric", "missing": -1}
    splits = built(str(tmp_path / "n.parquet"), source=LENIENT, features={"x": number})
    assert batch_of(splits)["x"].tolist() == [1, -1]
    assert reasons(splits) == {
        2: "x is 'nan', expected a finite number",
        3: "x is 'inf', expected a finite number",
    }
    splits = built(
        str(tmp_path / "n.parquet"), features={"x": {**number, "nan": "missing", "transform": "standardize"}}
    )
    assert batch_of(splits)["x"].tolist() == [0, -1, -1, -1]
    assert batch_of(splits)["x_present"].tolist() == [True, False, False, False]


def test_log1p_needs_more_than_minus_one(built: Any) -> None:
    rows = [{"x": -1}, {"x": -0.5}, {"x": -2}, {"x": None}]
    splits = built(rows, source=LENIENT, features={"x": {"kind": "numeric", "transform": "log1p"}})
    assert reasons(splits) == {1: "x is -1; log1p needs more than -1", 3: "x is -2; log1p needs more than -1"}
    assert batch_of(splits)["x"].tolist() == [np.float32(math.log1p(-0.5)), 0]


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.date32(), pa.timestamp("ns", "UTC")])
def test_a_number_of_a_column_of_times_is_refused_with_words(built: Any, tmp_path: Path, kind: Any) -> None:
    moments = pa.array([datetime.datetime(2024, 1, 1)], pa.timestamp("us")).cast(kind)
    pq.write_table(pa.table({"x": moments}), tmp_path / "t.parquet")
    with pytest.raises(
        SourceError, match=r"x holds timestamp.* values, expected numbers\. Declare the column with"
    ):
        built(str(tmp_path / "t.parquet"), features={"x": {"kind": "numeric"}})


# -- hashed, crossed, vectors ---------------------------------------------------------------------


def test_hashed_features_follow_the_xxhash_package(built: Any) -> None:
    values = ["", "a", 7, "7", "007", "ü", "x" * 100, 2**64 - 1, 1.5, None]
    splits = built([{"x": v} for v in values], features={"x": {"kind": "hashed", "buckets": 1_000_003}})
    expected = [3 + xxhash.xxh64(str(v).encode()).intdigest() % 1_000_003 for v in values[:-1]]
    batch = batch_of(splits)
    assert batch["x"].tolist() == [*expected, 2]
    assert splits.features["x"].size == 1_000_006
    assert splits.features["x"].vocabulary is None
    assert str(splits["train"].schema.field("x").type) == "uint32"


def test_crosses_hash_the_hashes_of_their_columns(built: Any) -> None:
    rows = [
        {"a": "1", "b": "23"},
        {"a": "12", "b": "3"},
        {"a": 1, "b": 23},
        {"a": None, "b": "3"},
        {"a": "3", "b": "12"},
    ]
    splits = built(
        rows,
        features={
            "ab": {"kind": "cross", "columns": ["a", "b"], "buckets": 10_000},
            "ba": {"kind": "cross", "columns": ["b", "a"], "buckets": 10_000},
        },
    )

    def crossed(*texts: str) -> int:
        parts = b"".join(xxhash.xxh64(text.encode()).intdigest().to_bytes(8, "little") for text in texts)
        return 3 + xxhash.xxh64(parts).intdigest() % 10_000

    batch = batch_of(splits)
    assert batch["ab"].tolist() == [
        crossed("1", "23"),
        crossed("12", "3"),
        crossed("1", "23"),
        2,
        crossed("3", "12"),
    ]
    assert batch["ba"].tolist()[:2] == [crossed("23", "1"), crossed("3", "12")]
    assert len(set(batch["ab"][[0, 1, 4]].tolist())) == 3
    assert batch["ab_present"].tolist() == [True, True, True, False, True]


def test_vectors(built: Any, tmp_path: Path) -> None:
    rows = [
        {"v": [1, 2.5, "3"]},
        {"v": None},
        {"v": [1, 2]},
        {"v": [1, 2, None]},
        {"v": [1, 2, "x"]},
        {"v": [1, 2, 1e39]},
        {"v": []},
        {"v": [0, -1, 1e38]},
    ]
    splits = built(rows, source=LENIENT, features={"v": {"kind": "vector", "dim": 3}})
    batch = batch_of(splits)
    assert batch["v"].tolist() == [[1, 2.5, 3], [0, 0, 0], [0, -1, np.float32(1e38)]]
    assert batch["v"].dtype == np.float32
    assert batch["v_present"].tolist() == [True, False, True]
    assert reasons(splits) == {
        3: "v has 2 numbers, expected 3",
        4: "v holds what is no finite float32",
        5: "v holds what is no finite float32",
        6: "v holds what is no finite float32",
        7: "v has 0 numbers, expected 3",
    }
    path = tmp_path / "v.csv"
    path.write_text("v\n1 2.5 3\n\\N\n1 2\n")
    source = {**LENIENT, "missing_values": ["\\N"]}
    splits = built(str(path), source=source, features={"v": {"kind": "vector", "dim": 3, "separator": " "}})
    assert batch_of(splits)["v"].tolist() == [[1, 2.5, 3], [0, 0, 0]]
    table = pa.table({"v": pa.array([[1.0, 2.0, 3.0], None], pa.list_(pa.float32(), 3))})
    pq.write_table(table, tmp_path / "v.parquet")
    splits = built(str(tmp_path / "v.parquet"), features={"v": {"kind": "vector", "dim": 3}})
    assert batch_of(splits)["v"].tolist() == [[1, 2, 3], [0, 0, 0]]


# -- times --------------------------------------------------------------------------------------

PARTS = {
    "second": lambda m: m.second,
    "minute": lambda m: m.minute,
    "hour": lambda m: m.hour,
    "weekday": lambda m: m.weekday(),
    "day": lambda m: m.day - 1,
    "dayofyear": lambda m: m.timetuple().tm_yday - 1,
    "week": lambda m: m.isocalendar().week - 1,
    "month": lambda m: m.month - 1,
    "quarter": lambda m: (m.month - 1) // 3,
    "year": lambda m: m.year - 1970,
}
MOMENTS = [
    "1970-01-01T00:00:00Z",
    "1999-12-31T23:59:59.999999Z",
    "2000-02-29T12:30:15Z",
    "2021-01-03T05:45:00+05:45",
    "2024-03-10T06:59:59Z",
    "2024-12-30T00:00:00Z",
    "2026-11-01T05:30:00Z",
    "2050-07-01T12:00:00Z",
    "2099-12-30T23:00:00Z",
]


@pytest.mark.parametrize("zone", [None, "America/New_York", "Asia/Kathmandu", "Pacific/Auckland"])
def test_parts_of_times(built: Any, zone: str | None) -> None:
    features = {
        part: {"kind": "time", "column": "t", "part": part, **({"timezone": zone} if zone else {})}
        for part in PARTS
    }
    splits = built([{"t": text} for text in [*MOMENTS, None]], features=features)
    batch = batch_of(splits)
    tz = zoneinfo.ZoneInfo(zone or "UTC")
    local = [datetime.datetime.fromisoformat(text).astimezone(tz) for text in MOMENTS]
    for part, of in PARTS.items():
        expected = [1 if part == "year" and not 1970 <= m.year < 2100 else 3 + of(m) for m in local]
        assert batch[part].tolist() == [*expected, 2], part
        assert batch[f"{part}_present"].tolist() == [True] * len(MOMENTS) + [False]


def test_times_in_every_unit_and_type_are_one_moment(built: Any, tmp_path: Path) -> None:
    micros = 1_511_544_070_123_456
    moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=micros)
    columns = {
        "us": [micros],
        "ms": [micros // 1000],
        "s": [micros // 1_000_000],
        "ns": [micros * 1000 + 789],
    }
    for unit, values in columns.items():
        expected = micros - micros % {"us": 1, "ns": 1, "ms": 1000, "s": 1_000_000}[unit]
        pq.write_table(pa.table({"t": values, "x": [1]}), tmp_path / f"{unit}.parquet")
        (tmp_path / f"{unit}.csv").write_text(f"t,x\n{values[0]},1\n")
        sources = [
            str(tmp_path / f"{unit}.parquet"),
            str(tmp_path / f"{unit}.csv"),
            [{"t": values[0], "x": 1}],
            [{"t": str(values[0]), "x": 1}],
        ]
        for source in sources:
            splits = built(
                source, time={"column": "t", "unit": unit}, features={"x": {"kind": "categorical"}}
            )
            assert splits["train"]["__time__"] == [expected], (unit, source)
    for number, kind in enumerate(
        [
            pa.timestamp("us"),
            pa.timestamp("us", "UTC"),
            pa.timestamp("ns", "Asia/Tokyo"),
            pa.timestamp("us", "+02:00"),
        ]
    ):
        array = pa.array([micros], pa.int64()).cast(pa.timestamp("us")).cast(kind)
        pq.write_table(pa.table({"t": array, "x": [1]}), tmp_path / f"{number}.parquet")
        splits = built(
            str(tmp_path / f"{number}.parquet"), time={"column": "t"}, features={"x": {"kind": "categorical"}}
        )
        assert splits["train"]["__time__"] == [micros]
    for text in (
        moment.isoformat(),
        moment.isoformat(" "),
        moment.isoformat().replace("+00:00", "Z"),
        moment.isoformat()[:-6],
    ):
        splits = built([{"t": text, "x": 1}], time={"column": "t"}, features={"x": {"kind": "categorical"}})
        assert splits["train"]["__time__"] == [micros]


@pytest.mark.parametrize(
    ("form", "neighbour"),
    [("parquet", None), ("text", None), ("text", "2024-06-01T00:00:00Z"), ("text", "20240601")],
)
def test_local_times_do_not_depend_on_their_neighbours(
    built: Any, tmp_path: Path, form: str, neighbour: str | None
) -> None:
    """Europe/Berlin: 02:30 comes twice on 27 October 2024 and never on 31 March; PEP 495's fold = 0."""
    zone = zoneinfo.ZoneInfo("Europe/Berlin")
    local = [
        datetime.datetime(2024, 10, 27, 2, 30),
        datetime.datetime(2024, 3, 31, 2, 30),
        datetime.datetime(2024, 7, 1),
    ]
    expected = [int(m.replace(tzinfo=zone).timestamp()) * 1_000_000 for m in local]
    if form == "parquet":
        pq.write_table(
            pa.table({"t": pa.array([*local, None], pa.timestamp("us")), "x": [1] * 4}),
            tmp_path / "t.parquet",
        )
        source: Any = str(tmp_path / "t.parquet")
        expected.append(None)
    else:
        source = [{"t": m.isoformat(" "), "x": 1} for m in local] + (
            [{"t": neighbour, "x": 1}] if neighbour else []
        )
    time = {"column": "t", "timezone": "Europe/Berlin"}
    splits = built(source, time=time, features={"x": {"kind": "categorical"}})
    assert splits["train"]["__time__"][: len(expected)] == expected


def test_times_by_a_format(built: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("t,x\n14102100,1\n14102123,1\n14102124,1\n,1\n")
    time = {"column": "t", "format": "%y%m%d%H", "timezone": "+01:00"}
    features = {"x": {"kind": "categorical"}, "hour": {"kind": "time", "column": "t", "part": "hour"}}
    splits = built(str(tmp_path / "t.csv"), source=LENIENT, time=time, features=features)
    first = int(datetime.datetime(2014, 10, 20, 23, tzinfo=datetime.UTC).timestamp()) * 1_000_000
    assert splits["train"]["__time__"] == [first, first + 23 * 3_600_000_000, None]
    assert batch_of(splits)["hour"].tolist() == [3, 26, 2]
    assert reasons(splits) == {4: "t is '14102124', expected a time written as '%y%m%d%H'"}
    pq.write_table(pa.table({"t": [14102100, 14102123], "x": [1, 1]}), tmp_path / "t.parquet")
    splits = built(str(tmp_path / "t.parquet"), time=time, features=features)
    assert batch_of(splits)["hour"].tolist() == [3, 26]


def test_what_is_no_time_is_a_bad_row(built: Any) -> None:
    texts = ["2024-02-30", "soon", "1e30", "", "2024-13-01T00:00:00", "9" * 25]
    splits = built(
        [{"t": text, "x": 1} for text in [*texts, "5"]],
        source=LENIENT,
        time={"column": "t"},
        features={"x": {"kind": "categorical"}},
    )
    assert sorted(reasons(splits)) == [1, 2, 3, 4, 5, 6]
    assert splits["train"]["__time__"] == [5_000_000]
    assert reasons(splits)[2] == "t is 'soon', expected a time: a number in s or ISO 8601"


# -- tables -------------------------------------------------------------------------------------


def test_joined_tables(built: Any, log: Any) -> None:
    items = [
        {"item": "a", "price": 2, "tags": ["x", "y"], "at": "2024-01-01", "v": [1, 2], "w": {"p": 1}},
        {"item": 7, "price": None, "tags": None, "at": None, "v": None, "w": None},
        {"item": "a", "price": 2, "tags": ["x", "y"], "at": "2024-01-01", "v": [1, 2], "w": {"p": 1}},
        {"item": None, "price": 99, "tags": ["never"], "at": None, "v": None, "w": None},
        {"item": "unused", "price": 5, "tags": ["rare"], "at": "2024-05-01", "v": [3, 4], "w": {"q": 2}},
        {"item": "bad", "price": "dear", "tags": ["bad"], "at": "2024-05-01", "v": [3, 4], "w": {"q": 2}},
    ]
    rows = [{"item": item} for item in ["a", "7", None, "nowhere", "a", "bad"]]
    table = {"files": log(items, "items.jsonl"), "key": "item", **LENIENT}
    splits = built(
        rows,
        tables={"shop": table},
        features={
            "item": {"kind": "categorical"},
            "price": {"kind": "numeric", "column": "shop.price", "missing": -1},
            "tags": {"kind": "sequence", "column": "shop.tags", "max_length": 2},
            "tag_set": {"kind": "set", "column": "shop.tags", "max_length": 2},
            "month": {"kind": "time", "column": "shop.at", "part": "month"},
            "v": {"kind": "vector", "column": "shop.v", "dim": 2},
            "w": {"kind": "weighted_set", "column": "shop.w", "max_length": 1},
            "h": {"kind": "hashed", "column": "shop.price", "buckets": 10},
        },
        labels={"cost": {"kind": "continuous", "column": "shop.price"}},
    )
    batch = batch_of(splits)
    assert batch["price"].tolist() == [2, -1, -1, -1, 2, -1]
    assert batch["price_present"].tolist() == [True, False, False, False, True, False]
    assert splits.vocabularies["tags"].token_freqs == [("x", 2), ("y", 2)]
    assert batch["tags"].tolist() == [[3, 4], [0, 0], [0, 0], [0, 0], [3, 4], [0, 0]]
    assert batch["tags_present"].tolist() == [True, False, False, False, True, False]
    assert batch["tag_set_lengths"].tolist() == [2, 0, 0, 0, 2, 0]
    assert batch["month"].tolist() == [3, 2, 2, 2, 3, 2]
    assert batch["v"].tolist() == [[1, 2], [0, 0], [0, 0], [0, 0], [1, 2], [0, 0]]
    assert batch["w_weights"].tolist() == [[1], [0], [0], [0], [1], [0]]
    assert batch["cost_mask"].tolist() == [True, False, False, False, True, False]
    assert splits.manifest.details["tables"] == {"shop": {"read": 6, "quarantined": 1}}
    (bad,) = read_quarantine(splits.folder / "quarantine" / "tables" / "shop" / "00000.jsonl")
    assert (bad.line, bad.reason) == (6, "price is 'dear', expected a number")
    assert hr.verify(splits.folder) == []
    encoded = hr.Encoder(splits.folder).encode([*rows, {"item": "unused"}])
    for name in encoded:
        np.testing.assert_array_equal(encoded[name][:6], batch[name])
    assert encoded["price"][6] == 5
    new = hr.encode(splits.folder, log(rows, "again.jsonl"), out=splits.folder.parent / "again")
    assert new["cost"] == [2, None, None, None, 2, None]


def test_a_table_with_two_rows_for_one_key(built: Any, log: Any) -> None:
    table = {"files": log([{"i": 1, "p": 1}, {"i": 2, "p": 2}, {"i": 1, "p": 3}], "t.jsonl"), "key": "i"}
    message = (
        r"tables\.t: the key '1' stands in rows 1 and 3 with different values\. Keep one row for each key"
    )
    with pytest.raises(SourceError, match=message):
        built([{"i": 1}], tables={"t": table}, features={"p": {"kind": "categorical", "column": "t.p"}})


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_nothing_at_all(built: Any, tmp_path: Path, form: str) -> None:
    """A header without rows, an empty file, an empty table: stores without rows."""
    (tmp_path / "e.csv").write_text("x,y\n")
    (tmp_path / "e.jsonl").write_text("")
    empty = str(tmp_path / f"e.{form}")
    features = {
        "x": {"kind": "categorical"},
        "s": {"kind": "sequence", "column": "y", "max_length": 2},
        "n": {"kind": "numeric", "column": "x", "transform": "standardize"},
    }
    splits = built(empty, features=features, labels={"y": {"kind": "class", "column": "x"}})
    assert splits.num_rows == {"train": 0}
    assert list(splits["train"].loader(batch_size=4)) == []
    assert splits.embedding_sizes() == {"x": 3, "s": 3}
    assert hr.Encoder(splits.folder).encode([{"x": 4, "y": ["q"]}])["x"].tolist() == [1]
    joined = built(
        [{"x": 1}],
        tables={"t": {"files": empty, "key": "x"}},
        features={"y": {"kind": "categorical", "column": "t.y"}},
    )
    assert batch_of(joined)["y"].tolist() == [2]


def test_a_history_from_events_is_refused_with_words(built: Any, log: Any) -> None:
    events = {"files": log([{"u": 1, "item": 3, "t": 1}], "events.jsonl"), "key": "u"}
    feature = {"kind": "sequence", "from": "events", "column": "item", "time": "t", "max_length": 3}
    with pytest.raises(SpecError, match=r"features\.h\.from: a build makes no histories from events"):
        built([{"u": 1, "ts": 5}], time={"column": "ts"}, tables={"events": events}, features={"h": feature})


# -- what a model is told ------------------------------------------------------------------------


def test_features_tell_what_a_batch_holds(ads: hr.DatasetDict) -> None:
    batch = batch_of(ads)
    narrow = batch_of(ads, id_dtype="int32")
    for name, info in ads.features.items():
        assert batch[name].shape[1:] == info.shape
        assert str(batch[name].dtype) == info.dtype
        assert narrow[name].dtype == ("int32" if info.has_ids else "float32")
        if info.has_ids:
            assert batch[name].min() >= 0
            assert batch[name].max() < info.size
            assert info.pad_id == 0
    assert ads.embedding_sizes()["creative"] == len(ads.vocabularies["creative"])
    assert ads.features["history"].vocabulary_name == ads.features["creative"].vocabulary_name == "creative"
    assert ads.features["history"].length == 4
    assert ads.features["user_x_slot"].columns == ("user", "slot")
    assert ads.features["industry"].columns == ("ad.industry",)
