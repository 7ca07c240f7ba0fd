"""Bad rows: where they were, why they are bad, their bytes; and builds that stop for them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.errors import BuildError, SourceError, SpecError
from headrace.sources.quarantine import QuarantinedRow, read_quarantine

X = {"x": {"kind": "numeric"}}


def quarantined(splits: hr.DatasetDict) -> list[QuarantinedRow]:
    return [row for path in sorted(splits.folder.glob("quarantine/*.jsonl")) for row in read_quarantine(path)]


@pytest.mark.parametrize("compressed", [False, True])
def test_place_reason_and_bytes(built: Any, tmp_path: Path, compressed: bool) -> None:
    lines = [
        b'{"x": 1}',
        b'{"x": "\xc3\xbc"}',
        b'{"x": 2',
        b"",
        b"[1]",
        b'{"x": 3}',
        b'{"x": "\xff"}',
        b'{"x": {"y": 1}}',
        b'{"x": [1]}',
    ]
    content = b"\n".join(lines) + b"\n"
    path = tmp_path / ("log.jsonl.gz" if compressed else "log.jsonl")
    path.write_bytes(gzip.compress(content) if compressed else content)
    splits = built(str(path), source={"max_bad_fraction": 1.0}, features=X)
    assert splits["train"]["x"] == [1, 3]
    assert splits["train"]["__row__"] == [0, 4]
    rows = quarantined(splits)
    assert [row.line for row in rows] == [2, 3, 5, 7, 8, 9]
    assert [row.row for row in rows] == [1, 2, 3, 5, 6, 7]
    for row in rows:
        assert row.file == str(path)
        assert row.raw == lines[row.line - 1]
        assert content[row.byte_offset :].startswith(row.raw + b"\n")
        assert row.reason
    assert rows[0].reason == "x is 'ü', expected a number"
    assert splits.accounting["quarantined"] == 6
    assert splits.accounting["read"] == 8  # a blank line is no row
    with (splits.folder / "quarantine" / "00000.jsonl").open("rb") as file:
        entries = [json.loads(line) for line in file]
    assert set(entries[0]) == {"file", "row", "line", "byte_offset", "reason", "raw"}
    assert entries[3]["base64"] is True


def test_each_file_has_its_own(built: Any, log: Any) -> None:
    paths = [log([{"x": n}, {"x": bad}], f"{n}.jsonl") for n, bad in enumerate(["a", 7, "c"])]
    splits = built(paths[0], source={"files": paths, "max_bad_fraction": 1.0}, features=X)
    assert sorted(path.name for path in splits.folder.glob("quarantine/*")) == ["00000.jsonl", "00002.jsonl"]
    assert [(row.file, row.raw) for row in quarantined(splits)] == [
        (paths[0], b'{"x": "a"}'),
        (paths[2], b'{"x": "c"}'),
    ]


def test_a_row_that_is_bad_twice_is_there_once(built: Any) -> None:
    splits = built(
        [{"x": "a", "y": "b", "w": None}, {"x": 1, "y": 2, "w": 1}],
        source={"max_bad_fraction": 1.0},
        features={**X, "y": {"kind": "numeric"}},
        weight={"column": "w"},
    )
    (row,) = quarantined(splits)
    assert row.reason == "x is 'a', expected a number"
    assert splits.accounting["quarantined"] == 1


def test_bad_rows_of_parquet(built: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": ["1", "a", None], "y": [1, 2, 3]}), tmp_path / "t.parquet")
    splits = built(str(tmp_path / "t.parquet"), source={"max_bad_fraction": 1.0}, features=X)
    (row,) = quarantined(splits)
    assert (row.row, row.line, row.byte_offset) == (1, 2, -1)
    assert json.loads(row.raw)["x"] == "a"


def test_a_column_that_no_feature_reads_makes_no_row_bad(built: Any) -> None:
    splits = built([{"x": 1, "price": "dear"}, {"x": 2, "price": {}}], features=X)
    assert splits.accounting["quarantined"] == 0


def test_too_many_bad_rows(built: Any) -> None:
    rows = [{"x": n} for n in range(95)] + [{"x": "bad"}] * 5
    splits = built(rows, source={"max_bad_fraction": 0.05}, features=X)
    assert splits.accounting["quarantined"] == 5
    with pytest.raises(BuildError) as caught:
        built(rows, source={"max_bad_fraction": 0.049}, features=X)
    text = str(caught.value)
    assert text.startswith("5 of 100 rows are bad, max_bad_fraction = 0.049 allows 4. For example ")
    assert "x is 'bad', expected a number." in text
    assert text.endswith("Mend the rows or the declaration, or raise max_bad_fraction.")
    assert built([{"x": n} for n in range(3)], source={"max_bad_fraction": 0.0}, features=X).num_rows == {
        "train": 3
    }


def test_bad_rows_outside_every_split_count_too(built: Any) -> None:
    rows = [{"t": 1, "x": 1}, {"t": 50, "x": "bad"}]
    split = {"by": "time", "train": {"until": 10}}
    with pytest.raises(BuildError, match="1 of 2 rows are bad"):
        built(rows, time={"column": "t"}, split=split, features=X)


def test_a_build_can_stop_at_the_first(built: Any) -> None:
    rows = [{"x": 1}, {"x": "bad"}, {"x": "worse"}]
    with pytest.raises(BuildError) as caught:
        built(rows, source={"on_bad_row": "fail"}, features=X)
    assert ":2 (byte 9): x is 'bad', expected a number. Mend the row, or let on_bad_row = " in str(
        caught.value
    )


def test_bad_rows_of_a_table_count_against_its_own_limit(built: Any, log: Any) -> None:
    table = {"files": log([{"x": 1, "v": "dear"}, {"x": 2, "v": 3}], "t.jsonl"), "key": "x"}
    features = {"v": {"kind": "numeric", "column": "t.v"}}
    with pytest.raises(BuildError, match="1 of 2 rows are bad"):
        built([{"x": 1}], tables={"t": table}, features=features)
    splits = built([{"x": 1}], tables={"t": {**table, "max_bad_fraction": 0.5}}, features=features)
    assert splits["train"]["v"] == [None]


@pytest.mark.parametrize(
    ("content", "features", "message"),
    [
        (
            "user_id,price\n1,2\n",
            {"user": {"kind": "categorical"}},
            r"\.csv: there is no column 'user'\. Did you mean 'user_id'\?",
        ),
        ("a,a\n1,2\n", {"a": {"kind": "categorical"}}, r"\.csv:1: two columns are named 'a'"),
    ],
)
def test_headers(built: Any, tmp_path: Path, content: str, features: Any, message: str) -> None:
    (tmp_path / "h.csv").write_text(content)
    with pytest.raises(SourceError, match=message):
        built(str(tmp_path / "h.csv"), features=features)


def test_a_column_that_no_row_of_json_lines_has(built: Any) -> None:
    rows = [{"user_id": 1, "n": None}] * 3
    with pytest.raises(SourceError, match=r"there is no column 'user'\. Did you mean 'user_id'\?"):
        built(rows, features={"user": {"kind": "categorical"}})
    with pytest.raises(SourceError, match="there is no column 'click'"):
        built(rows, features={"user_id": {"kind": "categorical"}}, labels={"click": {"kind": "binary"}})
    # Null everywhere is there; so is what only a late row has.
    assert built(rows, features={"n": {"kind": "categorical"}})["train"]["n"] == [None] * 3
    late = [{"user_id": 1}] * 1500 + [{"user_id": 1, "late": "x"}]
    assert built(late, features={"late": {"kind": "categorical"}})["train"]["late"][-1] == 3


def test_files_that_are_not_there(built: Any, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("x\n1\n")
    with pytest.raises(SourceError, match=r"there is no file '.*date\.csv'\. Did you mean 'data\.csv'\?"):
        built(str(tmp_path / "date.csv"), features=X)
    with pytest.raises(SourceError, match=r"the glob '.*\*\.jsonl' matches no file"):
        built(str(tmp_path / "*.jsonl"), features=X)


def test_options_of_a_build(tmp_path: Path, built: Any, log: Any) -> None:
    spec = {"name": "t", "source": {"files": log([{"x": 1}])}, "features": X}
    with pytest.raises(BuildError, match="threads is 0; it must be at least 1"):
        hr.build(spec, out=tmp_path / "s", threads=0)
    with pytest.raises(BuildError, match="memory is 'lots'; expected a size such as '4GiB'"):
        hr.build(spec, out=tmp_path / "s", memory="lots")
    for wrong in ("1", 1.5, True):
        with pytest.raises(BuildError, match=r"threads=.*; it must be an integer"):
            hr.build(spec, out=tmp_path / "s", threads=wrong)
    for none in (0, -4, "0GiB", 1.5, True):
        with pytest.raises(BuildError, match=r"memory is .*; expected a size such as '4GiB'"):
            hr.build(spec, out=tmp_path / "s", memory=none)
    with pytest.raises(SpecError, match=r"features\.x: unknown key 'min_cout'"):
        hr.build({**spec, "features": {"x": {"kind": "categorical", "min_cout": 3}}}, out=tmp_path / "s")
    with pytest.raises(SpecError, match=r"no\.toml: there is no such file"):
        hr.build(tmp_path / "no.toml", out=tmp_path / "s")
    stages: list[str] = []
    hr.build(spec, out=tmp_path / "s", progress=lambda stage, share: stages.append(stage))
    assert [stage for place, stage in enumerate(stages) if stage not in stages[:place]] == [
        "parsing rows",
        "fitting",
        "encoding",
    ]
