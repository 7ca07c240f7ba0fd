"""``headrace show``: every cell of a small store, decoded by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

Run = Callable[..., Result]


def cells(store: Path, run: Run, split: str, row: int) -> dict[str, tuple[Any, Any, Any, bool]]:
    shown = json.loads(run("show", store, "--split", split, "--row", row, "--json").stdout)
    return {
        name: (cell["raw"], cell["encoded"], cell["names"], cell["present"])
        for name, cell in shown["rows"][0]["features"].items()
    }


def test_a_row_with_every_value(store: Path, run: Run) -> None:
    found = cells(store, run, "train", 0)
    assert found["color"] == ("red", 3, None, True)
    assert found["shop"] == ("A", 3, None, True)
    assert found["shape"] == ("round", 2, None, True)
    assert found["history"] == (["p1", "p2"], [3, 4], [None, None], True)
    assert found["tags"] == (["t1", "t2"], [3, 4], [None, None], True)
    assert found["price"] == (0.0, 0.0, None, True)
    assert found["size"] == (10.0, -1.0, None, True)  # train: 10 and 20, mean 15, deviation 5
    assert found["share"] == (1.0, 0.0, None, True)  # train: 1 to 3
    assert found["age"] == ("(-inf, 20]", 3, None, True)  # the lower half of 20 and 40
    assert found["hour"] == (1, 4, None, True)
    assert found["image"] == ([1.5, -2.0], [1.5, -2.0], None, True)


def test_a_row_with_missing_values(store: Path, run: Run) -> None:
    found = cells(store, run, "train", 1)
    assert found["shape"] == (None, 0, "PAD", False)
    assert found["history"] == (["p1", None], [3, 2], [None, "MISSING"], True)
    assert found["tags"] == ([], [], [], True)
    assert found["price"] == (None, -1.0, "MISSING", False)
    assert found["share"] == (3.0, 1.0, None, True)
    assert found["age"] == ("(20, inf)", 4, None, True)
    assert found["device"] == (None, 2, "MISSING", False)
    assert found["image"] == (None, [0.0, 0.0], "MISSING", False)


def test_a_row_with_values_that_train_lacks(store: Path, run: Run) -> None:
    found = cells(store, run, "test", 0)
    assert found["color"] == (None, 1, "UNKNOWN", True)
    assert found["shape"] == (None, 1, "UNKNOWN", True)
    assert found["history"] == ([], [], [], False)
    assert found["price"][0] == pytest.approx(6.5, rel=1e-6)
    assert found["size"] == (30.0, 3.0, None, True)
    assert found["age"] == (None, 2, "MISSING", False)


@pytest.mark.parametrize(
    ("feature", "first_id", "buckets"), [("shop", 4, 4), ("device", 3, 10), ("color_x_shop", 3, 10)]
)
def test_a_bucket_is_named(store: Path, run: Run, feature: str, first_id: int, buckets: int) -> None:
    raw, encoded, name, present = cells(store, run, "test", 0)[feature]
    assert (raw, present) == (None, True)
    assert name == f"bucket {encoded - first_id} of {buckets}"
    assert 0 <= encoded - first_id < buckets


def test_weights_of_a_weighted_set_stand_beside_their_values(store: Path, run: Run) -> None:
    shown = json.loads(run("show", store, "--row", 0, "--json").stdout)
    interest = shown["rows"][0]["features"]["interest"]
    assert dict(zip(interest["raw"], interest["weights"], strict=True)) == {"k1": 0.5, "k2": 2.0}


def test_labels_weight_id_and_time(store: Path, run: Run) -> None:
    shown = json.loads(run("show", store, "--rows", 2, "--json").stdout)
    first, second = shown["rows"]
    assert (first["id"], first["time"], first["weight"]) == ("r0", "2025-06-01T01:00:00+00:00", 0.5)
    assert first["labels"] == {
        "click": {"value": 1.0, "name": None, "weight": 0.5},
        "action": {"value": 1, "name": "buy", "weight": None},
    }
    assert second["labels"] == {
        "click": {"value": None, "name": None, "weight": 1.0},
        "action": {"value": None, "name": None, "weight": None},
    }


def test_the_text_of_a_row(store: Path, run: Run) -> None:
    lines = run("show", store, "--row", 1).stdout.splitlines()
    assert lines[0] == "train row 1   id r1   2025-06-01T02:00:00+00:00"
    words = {line.split()[0]: line.split()[1:] for line in lines[1:] if line}
    assert words["feature"] == ["kind", "raw", "encoded"]
    assert words["color"] == ["categorical", '"red"', "3"]
    assert words["shape"] == ["categorical", "PAD", "0"]
    assert words["history"] == ["sequence", '["p1",', "MISSING]", "[3,", "2]"]
    assert words["price"] == ["numeric", "MISSING", "-1"]
    assert words["hour"] == ["time", "2", "5"]
    assert words["click"] == ["label", "not", "known", "(masked)", "0", "weight", "1"]
    assert words["weight"] == ["weight", "1", "1"]


def test_three_rows_unless_asked_and_train_first(store: Path, run: Run) -> None:
    titles = [line for line in run("show", store).stdout.splitlines() if line and line[0] != " "]
    assert [title.split("   ")[0] for title in titles] == ["train row 0", "train row 1"]
    assert run("show", store, "--rows", 1).stdout.count("train row") == 1


def test_the_only_split_of_new_data_is_shown(raw: Path, store: Path, tmp_path: Path, run: Run) -> None:
    run("encode", store, raw / "rows.jsonl", "--out", tmp_path / "new")
    assert run("show", tmp_path / "new").stdout.startswith("data row 0   id r0   ")


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path, run: Run) -> None:
    (tmp_path / "rows.jsonl").write_text('{"a": "x\\u001b[31m\\u009b1\\n\\"y\\""}\n')
    (tmp_path / "s.toml").write_text(
        'name = "s"\nsource.files = "rows.jsonl"\nfeatures.a.kind = "categorical"\n'
    )
    run("build", tmp_path / "s.toml", "--out", tmp_path / "store")
    text = run("show", tmp_path / "store").stdout
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert text.count("\n") == 4


def test_long_lists_are_cut_but_not_for_machines(tmp_path: Path, run: Run) -> None:
    elements = [f"v{number:02d}" for number in range(20)]
    (tmp_path / "rows.jsonl").write_text(json.dumps({"a": elements}) + "\n")
    (tmp_path / "s.toml").write_text(
        'name = "s"\nsource.files = "rows.jsonl"\nfeatures.a = {kind = "sequence", max_length = 30}\n'
    )
    run("build", tmp_path / "s.toml", "--out", tmp_path / "store")
    assert '"v07", … 20 in all]' in run("show", tmp_path / "store").stdout
    shown = json.loads(run("show", tmp_path / "store", "--json").stdout)
    assert shown["rows"][0]["features"]["a"]["raw"] == elements
