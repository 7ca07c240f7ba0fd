"""The cases of bad and drifting data that touch a store, with their siblings: other formats and types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.errors import SpecError, VocabularyError
from headrace.sources.quarantine import read_quarantine

FORMATS = ["csv", "tsv", "jsonl", "parquet", "arrow"]


@pytest.fixture
def as_format(tmp_path: Path) -> Callable[..., str]:
    """Writes one column of texts in any format; gives the path."""

    def as_format(form: str, name: str, values: Iterable[str]) -> str:
        path = tmp_path / f"data.{form}"
        values = list(values)
        if form in ("csv", "tsv"):
            path.write_text("".join(f"{line}\n" for line in [name, *values]))
        elif form == "jsonl":
            path.write_text("".join(json.dumps({name: value}) + "\n" for value in values))
        elif form == "parquet":
            pq.write_table(pa.table({name: values}), path)
        else:
            table = pa.table({name: values})
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
        return str(path)

    return as_format


def batch_of(dataset: hr.Dataset, **options: Any) -> dict[str, Any]:
    return next(iter(dataset.loader(batch_size=len(dataset), output="numpy", **options)))


def quarantined(splits: hr.DatasetDict) -> list[Any]:
    return [row for path in sorted(splits.folder.glob("quarantine/*.jsonl")) for row in read_quarantine(path)]


# -- Bad and drifting CSV rows ------------------------------------------------------------------


@pytest.mark.parametrize("good_first", [0, 30_000])
def test_bad_and_drifting_csv_rows(built: Any, tmp_path: Path, good_first: int) -> None:
    odd = ["1,10", "2,20", "3,1.5", "4,007", "5", "6,7,8", "7,x"]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["id,price", *(["0,1"] * good_first), *odd]) + "\n")
    splits = built(
        str(path),
        source={"max_bad_fraction": 1.0},
        features={"id": {"kind": "categorical"}, "price": {"kind": "numeric", "dtype": "int"}},
    )
    batch = batch_of(splits["train"])
    assert splits.features["id"].vocabulary.decode(batch["id"][-3:]) == ["1", "2", "4"]
    assert batch["price"][-3:].tolist() == [10, 20, 7]
    rows = quarantined(splits)
    assert [row.line - good_first for row in rows] == [4, 6, 7, 8]
    assert [row.raw for row in rows] == [b"3,1.5", b"5", b"6,7,8", b"7,x"]
    assert [row.reason for row in rows] == [
        "price is '1.5', expected an integer",
        "2 fields expected, 1 found",
        "2 fields expected, 3 found",
        "price is 'x', expected an integer",
    ]
    content = path.read_bytes()
    for row in rows:
        assert content[row.byte_offset : row.byte_offset + len(row.raw)] == row.raw
        assert row.file == str(path)
        assert row.row == row.line - 2
    assert splits.accounting["quarantined"] == 4
    assert splits.accounting["read"] == 7 + good_first


# -- Null first, text later ----------------------------------------------------------------------


@pytest.mark.parametrize("text_first", [False, True])
def test_null_first_text_later(built: Any, text_first: bool) -> None:
    rows: list[dict[str, Any]] = [{"t": None, "n": 1}] * 1000 + [{"t": "x", "n": 1}]
    if text_first:
        rows.reverse()
    splits = built(
        rows, features={"t": {"kind": "categorical"}, "h": {"kind": "hashed", "column": "t", "buckets": 9}}
    )
    vocabulary = splits.features["t"].vocabulary
    assert vocabulary.token_freqs == [("x", 1)]
    assert vocabulary.counts.tolist() == [0, 0, 1000, 1]
    batch = batch_of(splits["train"], masks=True)
    assert batch["t_present"].sum() == batch["h_present"].sum() == 1
    assert batch["t"][batch["t_present"]].tolist() == [3]
    assert set(batch["t"][~batch["t_present"]].tolist()) == {2}


def test_an_absent_key_is_missing_and_an_empty_text_is_not(built: Any) -> None:
    splits = built(
        [{"t": ""}, {}, {"t": None}, {"t": "x"}],
        features={"t": {"kind": "categorical"}, "l": {"kind": "hashed", "column": "t", "buckets": 5}},
    )
    batch = batch_of(splits["train"], masks=True)
    assert batch["t_present"].tolist() == batch["l_present"].tolist() == [True, False, False, True]
    assert splits.features["t"].vocabulary.decode(batch["t"]) == ["", "<missing>", "<missing>", "x"]


def test_integers_then_the_text_nan(built: Any) -> None:
    rows = [{"n": 1}, {"n": "Nan"}, {"n": 3}]
    declared = {"n": {"kind": "numeric", "dtype": "int"}}
    splits = built(rows, source={"max_bad_fraction": 1.0}, features=declared)
    assert batch_of(splits["train"])["n"].tolist() == [1, 3]
    (bad,) = quarantined(splits)
    assert (bad.line, bad.reason) == (2, "n is 'Nan', expected a finite number")
    declared = {"n": {"kind": "numeric", "dtype": "int", "nan": "missing", "missing": -1}}
    assert batch_of(built(rows, features=declared)["train"])["n"].tolist() == [1, -1, 3]


@pytest.mark.parametrize("late", [1_000, 50_000])
def test_integers_then_floats_then_texts_are_ids_as_written(built: Any, late: int) -> None:
    rows = [{"i": 7}] * late + [{"i": 7.0}, {"i": 7.5}, {"i": "007"}, {"i": True}, {"i": None}]
    splits = built(rows, features={"i": {"kind": "categorical"}})
    assert splits.features["i"].vocabulary.token_freqs == [
        ("7", late + 1),
        ("007", 1),
        ("7.5", 1),
        ("true", 1),
    ]


# -- Vocabulary counts ---------------------------------------------------------------------------

LETTERS = ["A", "E", "B", "C", "A", "A", "B", "C", "D", "A", "B", "A", "B"]


@pytest.mark.parametrize("form", FORMATS)
def test_vocabulary_counts(built: Any, as_format: Any, form: str) -> None:
    splits = built(
        as_format(form, "letter", LETTERS),
        features={"letter": {"kind": "categorical", "min_count": 2, "missing": "unknown"}},
    )
    for opened in (splits, hr.load_from_disk(splits.folder)):
        vocabulary = opened.vocabularies["letter"]
        assert [vocabulary[letter] for letter in "ABC"] == [2, 3, 4]
        assert vocabulary.counts.tolist() == [0, 2, 5, 4, 2]
        assert vocabulary.counts.sum() == 13
        assert vocabulary.missing is None
        assert batch_of(opened["train"])["letter"].tolist() == [2, 1, 3, 4, 2, 2, 3, 4, 1, 2, 3, 2, 3]
        assert str(opened["train"].schema.field("letter").type) == "uint8"
        assert opened.embedding_sizes() == {"letter": 5}
    table = pa.ipc.open_file(splits.folder / "vocabularies" / "letter.arrow").read_all()
    assert sum(table["count"].to_pylist()) == 13
    assert table["kind"].to_pylist() == ["pad", "unknown", "value", "value", "value"]


@pytest.mark.parametrize("kind", ["sequence", "set"])
def test_vocabulary_counts_of_lists_count_before_the_cut(built: Any, kind: str) -> None:
    rows = [{"l": LETTERS[:7]}, {"l": LETTERS[7:]}, {"l": None}, {"l": []}, {"l": [None, None]}]
    splits = built(rows, features={"l": {"kind": kind, "max_length": 2}})
    counts = dict(splits.features["l"].vocabulary.token_freqs)
    if kind == "sequence":
        assert counts == {"A": 5, "B": 4, "C": 2, "D": 1, "E": 1}
    else:  # once a row: AEBC and CDAB
        assert counts == {"A": 2, "B": 2, "C": 2, "D": 1, "E": 1}
    assert splits.features["l"].vocabulary.counts[2] == (2 if kind == "sequence" else 1)


def test_vocabulary_counts_add_over_features_that_share(built: Any) -> None:
    rows = [{"a": "x", "l": ["x", "y"]}, {"a": "y", "l": ["y"]}, {"a": None, "l": [None]}]
    splits = built(
        rows,
        vocabularies={"v": {}},
        features={
            "a": {"kind": "categorical", "vocabulary": "v"},
            "l": {"kind": "sequence", "vocabulary": "v", "max_length": 3, "missing": "unknown"},
        },
    )
    vocabulary = splits.vocabularies["v"]
    assert vocabulary.token_freqs == [("y", 3), ("x", 2)]
    assert vocabulary.counts.tolist() == [0, 1, 1, 3, 2]
    assert splits["train"]["l"] == [[4, 3], [3], [1]]


# -- Sequence cut and pad ------------------------------------------------------------------------


def test_sequence_cut_and_pad(built: Any) -> None:
    rows = [{"h": [1, 2, 3, 4, 5]}, {"h": [1, 2]}, {"h": []}, {"h": None}]
    shared = {"kind": "sequence", "column": "h", "max_length": 3, "vocabulary": "v"}
    splits = built(
        rows,
        vocabularies={"v": {}},
        features={
            "left": shared,
            "right": {**shared, "pad": "right"},
            "first": {**shared, "keep": "first"},
            "first_right": {**shared, "keep": "first", "pad": "right"},
        },
    )
    tokens = splits.vocabularies["v"].to_tokens
    batch = batch_of(splits["train"], masks=True)
    p = "<pad>"
    assert [tokens(row) for row in batch["left"]] == [["3", "4", "5"], [p, "1", "2"], [p, p, p], [p, p, p]]
    assert [tokens(row) for row in batch["right"]] == [["3", "4", "5"], ["1", "2", p], [p, p, p], [p, p, p]]
    assert [tokens(row) for row in batch["first"]] == [["1", "2", "3"], [p, "1", "2"], [p, p, p], [p, p, p]]
    assert [tokens(row) for row in batch["first_right"]][1] == ["1", "2", p]
    assert batch["left_mask"].tolist() == [[True] * 3, [False, True, True], [False] * 3, [False] * 3]
    assert batch["right_mask"].tolist() == [[True] * 3, [True, True, False], [False] * 3, [False] * 3]
    assert batch["left_lengths"].tolist() == [3, 2, 0, 0]
    assert batch["left_present"].tolist() == [True, True, True, False]
    mean = (batch["left"] * batch["left_mask"]).sum(1) / np.maximum(batch["left_lengths"], 1)
    assert mean[2:].tolist() == [0.0, 0.0]


def test_sequence_cut_and_pad_of_csv_text(built: Any, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text('h\n1|2|3|4|5\n1|2\n""\n7\n')
    splits = built(
        str(path),
        features={"h": {"kind": "sequence", "max_length": 3, "separator": "|"}},
    )
    vocabulary = splits.features["h"].vocabulary
    assert [vocabulary.decode(row or []) for row in splits["train"]["h"]] == [
        ["3", "4", "5"],
        ["1", "2"],
        [],
        ["7"],
    ]


# -- Global time split ---------------------------------------------------------------------------


def test_global_time_split(built: Any) -> None:
    events = [("A", 1, "i1"), ("A", 2, "i2"), ("A", 9, "i9"), ("B", 5, "i5"), ("B", 6, "i6"), ("B", 7, "i7")]
    rows = []
    for user, ts, item in events:
        before = [(t, i) for u, t, i in events if u == user and t < ts]
        rows.append(
            {
                "user": user,
                "ts": ts,
                "item": item,
                "history": [i for _, i in before],
                "history_ts": [t for t, _ in before],
                "frozen": [i for t, i in before if t < 5],
            }
        )
    splits = built(
        rows,
        time={"column": "ts"},
        split={"by": "time", "train": {"until": 5}, "test": {"from": 5}},
        vocabularies={"item": {}},
        features={
            "item": {"kind": "categorical", "vocabulary": "item"},
            "history": {"kind": "sequence", "vocabulary": "item", "time": "history_ts", "max_length": 5},
            "frozen": {"kind": "sequence", "vocabulary": "item", "max_length": 5},
        },
    )
    assert splits.num_rows == {"train": 2, "test": 4}
    vocabulary = splits.vocabularies["item"]
    # Two rows of train; the history of the second one holds i1 once more.
    assert dict(vocabulary.token_freqs) == {"i1": 3, "i2": 1}
    assert vocabulary.decode(splits["test"]["item"]) == ["<unk>"] * 4
    at_7 = splits["test"][3]
    assert vocabulary.decode(at_7["history"]) == ["<unk>", "<unk>"]
    assert at_7["frozen"] == []
    assert max(splits["train"]["__time__"]) < 5_000_000 <= min(splits["test"]["__time__"])


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ([1, 7], "history_ts holds a time that is not before the row's own time"),
        ([1, 8], "history_ts holds a time that is not before the row's own time"),
        ([3, 2], "history_ts is not ascending"),
        ([1], "history and history_ts have different lengths"),
        ([1, None], "history_ts holds what is no time, expected one in s"),
        ([1, "noon"], "history_ts holds what is no time, expected one in s"),
        (None, "history and history_ts have different lengths"),
    ],
)
def test_a_history_that_knows_the_future_is_a_bad_row(built: Any, times: Any, reason: str) -> None:
    splits = built(
        [
            {"ts": 7, "history": ["a", "b"], "history_ts": times},
            {"ts": 7, "history": ["a", "b"], "history_ts": [2, 2]},
        ],
        source={"max_bad_fraction": 1.0},
        time={"column": "ts"},
        features={"history": {"kind": "sequence", "time": "history_ts", "max_length": 5}},
    )
    (bad,) = quarantined(splits)
    assert (bad.line, bad.reason) == (1, reason)
    assert splits.num_rows == {"train": 1}


def test_a_history_of_a_joined_table_cannot_be_checked_and_is_refused(built: Any, log: Any) -> None:
    users = {"files": log([{"u": 1, "h": ["a"], "ht": [50]}], "users.jsonl"), "key": "u"}
    feature = {"kind": "sequence", "column": "user.h", "time": "user.ht", "max_length": 2}
    rows, options = [{"u": 1, "ts": 10}], {"tables": {"user": users}, "time": {"column": "ts"}}
    with pytest.raises(SpecError, match=r"features\.h\.time: is a column of \[tables\.user\]"):
        built(rows, features={"h": feature}, **options)
    del feature["time"]
    assert built(rows, features={"h": feature}, **options)["train"]["h"] == [[3]]


# -- Known-at join and delayed labels ------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "end", "value", "known"),
    [
        (30, 100, 0, True),
        (49, 100, 0, True),
        (50, 100, 1, True),
        (60, 100, 1, True),
        (60, 60, 1, True),
        (60, 59, 0, False),
        (60, 40, 0, False),
        (30, 40, 0, True),
    ],
)
def test_delayed_labels(built: Any, window: int, end: int, value: int, known: bool) -> None:
    """A click at 0 and its conversion at 50."""
    splits = built(
        [{"x": 1, "click": 0, "conv": 50}],
        features={"x": {"kind": "categorical"}},
        labels={
            "bought": {
                "kind": "attribution",
                "click_time": "click",
                "convert_time": "conv",
                "window": f"{window}s",
                "observed_until": end,
            }
        },
    )
    batch = batch_of(splits["train"])
    assert batch["bought"].tolist() == [value]
    assert batch["bought_mask"].tolist() == [known]


# -- Token width, for vocabularies ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "dtype"), [(256, "uint8"), (257, "uint16"), (65_536, "uint16"), (65_537, "uint32")]
)
def test_token_width(built: Any, tmp_path: Path, size: int, dtype: str) -> None:
    """PAD, UNKNOWN and MISSING take three ids of the table."""
    path = tmp_path / "ids.csv"
    values = [f"v{number:05d}" for number in range(size - 3)]
    path.write_text("v\n" + "\n".join(values) + "\n")
    splits = built(
        str(path),
        features={
            "v": {"kind": "categorical"},
            "s": {"kind": "hashed", "column": "v", "buckets": size - 3},
        },
    )
    assert splits.embedding_sizes() == {"v": size, "s": size}
    for name in ("v", "s"):
        assert str(splits["train"].schema.field(name).type) == dtype
    batch = batch_of(splits["train"])
    assert batch["v"].tolist() == list(range(3, size))
    assert splits.vocabularies["v"].decode([size - 1]) == [values[-1]]
    with pytest.raises(
        VocabularyError, match=f"id {size} at index 0: the vocabulary has ids 0 to {size - 1}"
    ):
        splits.vocabularies["v"].decode([size])


def test_unsigned_64_bit_ids_survive(built: Any, tmp_path: Path) -> None:
    ids = [2**64 - 1, 2**63, 2**63 - 1, 2**53 + 1, 10072393214139415292]
    texts = [str(one) for one in ids]
    declared = {"i": {"kind": "categorical"}}
    pq.write_table(pa.table({"i": pa.array(ids, pa.uint64())}), tmp_path / "ids.parquet")
    (tmp_path / "ids.csv").write_text("i\n" + "\n".join(texts) + "\n")
    for source in (
        [{"i": one} for one in ids],
        [{"i": one} for one in texts],
        str(tmp_path / "ids.parquet"),
        str(tmp_path / "ids.csv"),
    ):
        splits = built(source, features=declared)
        vocabulary = splits.features["i"].vocabulary
        assert vocabulary.values.to_pylist() == sorted(texts)
        assert vocabulary.decode(splits["train"]["i"]) == texts
        assert (
            hr.Encoder(splits.folder).encode([{"i": one} for one in ids])["i"].tolist()
            == splits["train"]["i"]
        )


# -- The same, where a store meets new data -------------------------------------------------------


def test_new_values_are_unknown_in_every_way_of_encoding(built: Any, log: Any, tmp_path: Path) -> None:
    splits = built(
        [{"letter": letter} for letter in LETTERS],
        features={"letter": {"kind": "categorical", "min_count": 2}},
    )
    rows = [{"letter": "A"}, {"letter": "D"}, {"letter": "new"}, {"letter": None}, {}]
    new = hr.encode(splits.folder, log(rows, "new.jsonl"), out=tmp_path / "new")
    expected = [3, 1, 1, 2, 2]
    assert batch_of(new)["letter"].tolist() == expected
    assert hr.Encoder(splits.folder).encode(rows)["letter"].tolist() == expected
