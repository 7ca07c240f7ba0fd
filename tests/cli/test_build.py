"""``headrace build``: what it prints, and how it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

Run = Callable[..., Result]


def test_it_says_what_became_of_every_row_and_why_it_was_built(built: Result, store: Path) -> None:
    lines = built.stdout.splitlines()
    assert re.fullmatch(rf"{re.escape(str(store))}: built in [\d.]+ s, [\d,]+ rows/s", lines[0])
    assert lines[1] == f"  because {store} holds no store that this headrace can read"
    assert lines[2:6] == ["4 rows read", "  train        2", "  test         1", "  quarantined  1"]


def test_it_shows_the_first_bad_row(built: Result, store: Path) -> None:
    lines = built.stdout.splitlines()
    place = lines.index(f"bad rows are in {store}/quarantine; the first one:")
    assert re.match(r"  rows\.jsonl:3 \(byte \d+\): price is 'cheap'", lines[place + 1])


def test_it_lists_every_vocabulary(built: Result) -> None:
    table = [line.split() for line in built.stdout.splitlines()]
    header = next(row for row in table if row[0] == "vocabulary")
    assert " ".join(header) == "vocabulary size values seen in train of these unknown"
    assert table[
        table.index(["vocabulary", "size", "values", "seen", "in", "train", "of", "these", "unknown"]) + 1 :
    ] == [
        ["color", "4", "1", "2", "0"],
        ["shop", "8", "1", "2", "0"],
        ["shape", "3", "1", "2", "0"],
        ["page", "5", "2", "4", "0"],
        ["tags", "5", "2", "2", "0"],
        ["interest", "5", "2", "2", "0"],
    ]


def test_without_a_terminal_there_are_no_bars(built: Result) -> None:
    assert built.stderr == ""


def test_a_second_build_finds_it_up_to_date(store: Path, raw: Path, run: Run) -> None:
    again = run("build", raw / "small.toml", "--out", store)
    assert again.exit_code == 0
    assert again.stdout.splitlines()[0] == f"{store}: up to date, nothing was built"


def test_a_change_of_the_spec_is_named(small_spec: Path, tmp_path: Path, run: Run) -> None:
    run("build", small_spec, "--out", tmp_path / "store")
    small_spec.write_text(small_spec.read_text().replace("min_count = 2", "min_count = 1"))
    again = run("build", small_spec, "--out", tmp_path / "store")
    assert "  because the spec changed: features.color.min_count" in again.stdout.splitlines()


def test_json_holds_the_same(raw: Path, store: Path, run: Run) -> None:
    summary = json.loads(run("build", raw / "small.toml", "--out", store, "--json").stdout)
    assert summary["built"] is False
    assert summary["rows"] == {
        "read": 4, "written": {"train": 2, "test": 1}, "quarantined": 1, "outside": 0, "dropped": 0,
    }  # fmt: skip
    assert summary["vocabularies"]["color"] == {"size": 4, "values": 1, "seen": 2, "unknown": 0}
    assert summary["quarantine"]["first"]["line"] == 3


def test_warnings_of_the_spec_go_to_standard_error(small_spec: Path, tmp_path: Path, run: Run) -> None:
    small_spec.write_text(small_spec.read_text() + "[vocabularies.unused]\n")
    done = run("build", small_spec, "--out", tmp_path / "store")
    assert done.exit_code == 0
    assert done.stderr.startswith("warning: ")
    assert "vocabularies.unused" in done.stderr


def test_a_wrong_spec_ends_with_1_and_all_mistakes(small_spec: Path, tmp_path: Path, run: Run) -> None:
    wrong = small_spec.read_text().replace("min_count", "min_cout").replace('part = "hour"', 'part = "our"')
    small_spec.write_text(wrong)
    done = run("build", small_spec, "--out", tmp_path / "store")
    assert done.exit_code == 1
    assert "unknown key 'min_cout'. Did you mean 'min_count'?" in done.stderr
    assert "features.hour" in done.stderr
    assert done.stdout == ""


def test_too_many_bad_rows_end_with_1(small_spec: Path, tmp_path: Path, run: Run) -> None:
    small_spec.write_text(small_spec.read_text().replace("max_bad_fraction = 0.5", "max_bad_fraction = 0.1"))
    done = run("build", small_spec, "--out", tmp_path / "store")
    assert done.exit_code == 1
    assert "1 of 4 rows are bad, max_bad_fraction = 0.1 allows 0" in done.stderr


def test_missing_raw_files_end_with_1(small_spec: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "rows.jsonl").unlink()
    done = run("build", small_spec, "--out", tmp_path / "store")
    assert done.exit_code == 1
    assert "rows.jsonl" in done.stderr


def test_an_output_folder_with_other_things_ends_with_1(raw: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    done = run("build", raw / "small.toml", "--out", tmp_path)
    assert done.exit_code == 1
    assert "is not empty and holds no store" in done.stderr
    assert (tmp_path / "mine.txt").read_text() == "precious"


def test_a_folder_that_cannot_be_made_ends_with_1(raw: Path, run: Run) -> None:
    done = run("build", raw / "small.toml", "--out", raw / "rows.jsonl" / "store")
    assert done.exit_code == 1
    assert done.stderr.startswith("error: ")


def test_ids_written_in_two_ways_are_counted(tmp_path: Path, run: Run) -> None:
    (tmp_path / "rows.csv").write_text("user,ad\n1001,a\n1001.0,b\n7,1\n8.0,2\n9.00,3.0\n9,x\n007.0,3\n")
    (tmp_path / "s.toml").write_text(
        'name = "s"\nsource.files = "rows.csv"\nfeatures.user.kind = "categorical"\n'
        'features.ad = { kind = "categorical", min_count = 2 }\n'
    )
    done = run("build", tmp_path / "s.toml", "--out", tmp_path / "store")
    assert "vocabulary user: 2 values in two ways, as 1001 and 1001.0, which are two ids." in done.stdout
    assert "vocabulary ad: 1 value in two ways" in done.stdout
    machine = json.loads(run("build", tmp_path / "s.toml", "--out", tmp_path / "store", "--json").stdout)
    assert machine["number_twins"] == {"user": 2, "ad": 1}


def test_rows_whose_class_is_none_are_counted(tmp_path: Path, run: Run) -> None:
    (tmp_path / "rows.csv").write_text("user,y\n1,a\n2,b\n3,c\n4,\n")
    (tmp_path / "s.toml").write_text(
        'name = "s"\nsource.files = "rows.csv"\nfeatures.user.kind = "categorical"\n'
        'labels.y = { kind = "class", values = ["a", "z"] }\n'
    )
    done = run("build", tmp_path / "s.toml", "--out", tmp_path / "store")
    assert "label y: 2 rows of train with a value that is no class" in done.stdout
    machine = json.loads(run("build", tmp_path / "s.toml", "--out", tmp_path / "store", "--json").stdout)
    assert machine["rows_without_class"] == {"y": {"train": 2}}


def test_memory_that_cannot_be_kept_is_a_warning(small_spec: Path, tmp_path: Path, run: Run) -> None:
    arguments = ("build", small_spec, "--out", tmp_path / "store", "--memory", "64MiB")
    said = "memory is 64MiB, and the program alone takes about 80MiB: "
    done = run(*arguments)
    assert done.exit_code == 0
    assert f"warning: {said}" in done.stderr
    again = run(*arguments, "--json")
    assert again.stderr == ""
    assert json.loads(again.stdout)["warnings"][-1].startswith(said)
