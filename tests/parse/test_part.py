"""Parts on disk: what was parsed comes back, dictionaries, faults and bad rows with it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace.building.spool import BatchSpool
from headrace.disk import TEMPORARY_SUFFIX, remove_temporaries
from headrace.errors import VocabularyError
from headrace.parse import readings
from headrace.parse.checks import Above, Present
from headrace.parse.part import PartReader, joined, open_part, save_part
from headrace.parse.readings import key_of
from headrace.parse.texts import id_text, to_id_texts
from headrace.scratch import Scratch
from headrace.sources import Column, open_source

READINGS = (
    readings.Ids("i"),
    readings.IdLists("l", ","),
    readings.WeightedIds("w", ",", ":"),
    readings.Numbers("n", "float", "bad"),
    readings.Vectors("v", 2, ","),
    readings.Times("t", "s", None, None),
    readings.TimeLists("tl", ",", "s", None, None),
    readings.Flags("f"),
)
KINDS = {
    "i": "text",
    "l": "texts",
    "w": "pairs",
    "n": "number",
    "v": "numbers",
    "t": "number",
    "tl": "numbers",
    "f": "number",
}


def parsed(folder: Path, rows: list[dict[str, Any]], block_bytes: int, **where: Any) -> Any:
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = SimpleNamespace(
        format="jsonl",
        files=str(folder / "log.jsonl"),
        delimiter=None,
        quote='"',
        header=True,
        columns=(),
        encoding="utf-8",
        missing_values=("",),
    )
    reader = open_source(source, None, [Column(path, kind) for path, kind in KINDS.items()])  # type: ignore[arg-type]
    number = readings.Numbers("n", "float", "bad")
    checks = [Present(number), Above(number, 0.0, True, "n must not be negative")]
    parts = PartReader(READINGS, checks, **where)
    for block in reader.blocks(block_bytes):
        parts.add(reader.parse(block))
    return parts.part()


ROWS = [
    {"i": "a", "l": ["a", None, "b"], "w": {"a": 1.5}, "n": 1, "v": [1, 2], "t": 5, "tl": [1, 2], "f": 1},
    {"i": 7, "l": [], "w": {}, "n": -2, "v": None, "t": None, "tl": [], "f": True},
    {"i": None, "l": None, "w": None, "n": None, "v": [3, 4], "t": "1970-01-02", "tl": None, "f": None},
    {"i": "a", "l": ["b"], "w": {"b": 2}, "n": "x", "v": [1], "t": "soon", "tl": ["soon"], "f": 2},
] * 5


@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_a_part_comes_back_from_disk(tmp_path: Path, block_bytes: int) -> None:
    part = parsed(tmp_path, ROWS, block_bytes)
    save_part(part, tmp_path / "00000")
    again = open_part(tmp_path / "00000")
    assert again.files.tolist() == part.files.tolist() == [0] * 20
    assert again.rows.tolist() == list(range(20))
    assert list(again.columns) == list(part.columns) == [key_of(one) for one in READINGS]
    for key, column in part.columns.items():
        assert again.columns[key].equals(column)
    for key, values in part.dictionaries.items():
        assert again.dictionaries[key].equals(values)
    assert list(again.bad.faults()) == list(part.bad.faults())
    assert again.bad.left_out == part.bad.left_out == 0
    codes = part.columns[key_of(READINGS[0])].to_pylist()
    assert codes[:4] == [0, 1, 2**32 - 1, 0]
    assert part.dictionaries[key_of(READINGS[0])].to_pylist() == ["a", "7"]
    of_row_3 = {fault.bad.reason for fault in part.bad.faults() if fault.place == 3}
    assert of_row_3 == {
        "n is 'x', expected a number",
        "n is missing",
        "v has 1 numbers, expected 2",
        "t is 'soon', expected a time: a number in s or ISO 8601",
        "tl holds what is no time, expected one in s",
        "f is '2', expected 0 or 1",
    }
    negative = [fault for fault in part.bad.faults() if fault.bad.reason == "n is -2; n must not be negative"]
    assert {fault.place % 4 for fault in negative} == {1}


def test_blocks_change_nothing_in_a_part(tmp_path: Path) -> None:
    one, many = parsed(tmp_path, ROWS, 1 << 20), parsed(tmp_path, ROWS, 64)
    for key, column in one.columns.items():
        assert many.columns[key].equals(column)
    assert list(many.bad.faults()) == list(one.bad.faults())


@pytest.mark.parametrize("rows", [ROWS, ROWS[1:2], []], ids=len)
def test_a_part_made_through_files_is_the_one_made_in_memory(
    tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    """As a joined table is made, however large it is."""
    one = parsed(tmp_path, rows, 1 << 20)
    with BatchSpool(tmp_path / "columns") as columns:
        many = parsed(tmp_path, rows, 64, collector=columns, scratch=Scratch(tmp_path / "scratch", 8))
        save_part(many, tmp_path / "many")
    save_part(one, tmp_path / "one")
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "many" / path.name).read_bytes()


def test_what_is_wanted_of_a_part_is_a_part_that_was_read_for_it(tmp_path: Path) -> None:
    save_part(parsed(tmp_path, ROWS, 300), tmp_path / "all")
    keys = [key_of(one) for one in READINGS]
    wanted = [keys[4], "n is missing", keys[3], keys[1]]
    part = open_part(tmp_path / "all", wanted)
    assert list(part.columns) == [keys[4], keys[3], keys[1]]
    assert list(part.dictionaries) == [keys[1]]
    assert {fault.key for fault in part.bad.faults()} == {keys[3], keys[4]}
    first = list(part.bad.rows(part.bad.first(wanted)))
    assert [(bad.row, bad.reason) for bad in first] == [
        (row, "v has 1 numbers, expected 2") for row in range(3, 20, 4)
    ]
    other = list(part.bad.rows(part.bad.first(wanted[::-1])))
    assert [(bad.row, bad.reason) for bad in other] == [
        (row, "n is 'x', expected a number") for row in range(3, 20, 4)
    ]
    assert part.bad.places(part.bad.first(wanted)).tolist() == list(range(3, 20, 4))
    assert len(part.bad.first([keys[0]])) == 0


def test_a_part_without_rows(tmp_path: Path) -> None:
    part = PartReader(READINGS).part()
    save_part(part, tmp_path / "00000")
    again = open_part(tmp_path / "00000")
    assert len(again) == 0
    for key, column in part.columns.items():
        assert again.columns[key].type == column.type
        assert column.type == parsed(tmp_path, ROWS, 64).columns[key].type


def test_lists_are_joined_across_widths() -> None:
    narrow = pa.array([[1], None], pa.list_(pa.int64()))
    wide = pa.array([[2, 3]], pa.large_list(pa.int64()))
    assert joined([narrow, wide]).to_pylist() == [[1], None, [2, 3]]
    assert joined([narrow]) is narrow


def test_a_killed_writer_leaves_nothing_behind(tmp_path: Path) -> None:
    half = tmp_path / f"00000{TEMPORARY_SUFFIX}"
    half.mkdir()
    (half / "rows.arrow").write_bytes(b"half")
    (tmp_path / f"x.json.1{TEMPORARY_SUFFIX}").write_bytes(b"half")
    (tmp_path / "kept.json").write_bytes(b"whole")
    remove_temporaries(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("007", "007"),
        (7, "7"),
        (7.0, "7"),
        (-0.0, "0"),
        (1e22, "10000000000000000000000"),
        (0.1, "0.1"),
        (1e-7, "1e-07"),
        (True, "true"),
        (np.bool_(False), "false"),
        (np.uint64(2**64 - 1), "18446744073709551615"),
        (b"x", "x"),
        (None, None),
        (np.float32(0.5), "0.5"),
        (float("nan"), "nan"),
    ],
)
def test_id_texts(value: Any, text: str | None) -> None:
    assert id_text(value) == text


def test_values_that_are_no_ids() -> None:
    with pytest.raises(
        VocabularyError, match=r"index 1: \{'a': 1\} is a dict; an id is a text, a number or missing"
    ):
        to_id_texts(["x", {"a": 1}])
    with pytest.raises(VocabularyError, match="the values are one text, 'abc'; give a list of texts"):
        to_id_texts("abc")
    with pytest.raises(VocabularyError, match="the values are a int; give a list of texts"):
        to_id_texts(3)  # type: ignore[arg-type]
    with pytest.raises(VocabularyError, match="not valid Unicode"):
        to_id_texts(["x", "\ud800"])
