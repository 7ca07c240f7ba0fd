"""``headrace encode`` and ``headrace verify``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from typer.testing import Result

import headrace as hr

Run = Callable[..., Result]


def test_encode_takes_several_files_and_globs(raw: Path, store: Path, tmp_path: Path, run: Run) -> None:
    for name in ("a.jsonl", "b1.jsonl", "b2.jsonl"):
        shutil.copy(raw / "rows.jsonl", tmp_path / name)
    done = run("encode", store, tmp_path / "a.jsonl", tmp_path / "b*.jsonl", "--out", tmp_path / "new")
    assert done.exit_code == 0, done.output
    assert "12 rows read" in done.stdout
    assert hr.load_from_disk(tmp_path / "new").num_rows == {"data": 9}


def test_encode_without_labels(raw: Path, store: Path, tmp_path: Path, run: Run) -> None:
    run("encode", store, raw / "rows.jsonl", "--out", tmp_path / "with")
    run("encode", store, raw / "rows.jsonl", "--no-labels", "--out", tmp_path / "without")
    names = [hr.load_from_disk(tmp_path / folder)["data"].column_names for folder in ("with", "without")]
    assert set(names[0]) - set(names[1]) == {"click", "click_weight", "action", "weight"}


def test_encode_of_missing_files_ends_with_1(store: Path, tmp_path: Path, run: Run) -> None:
    done = run("encode", store, tmp_path / "nothing.jsonl", "--out", tmp_path / "new")
    assert done.exit_code == 1
    assert "nothing.jsonl" in done.stderr


def test_verify_of_a_sound_store(store: Path, run: Run) -> None:
    done = run("verify", store)
    assert done.exit_code == 0
    count = len(list(hr.load_from_disk(store).manifest.entries()))
    assert done.stdout == f"{store}: all {count} files are as the manifest says\n"


def test_verify_names_what_differs(store: Path, tmp_path: Path, run: Run) -> None:
    shutil.copytree(store, tmp_path / "copy")
    shard = tmp_path / "copy" / "train" / "00000.arrow"
    damaged = bytearray(shard.read_bytes())
    damaged[-1] ^= 1
    shard.write_bytes(damaged)
    (tmp_path / "copy" / "vocabularies" / "color.arrow").unlink()
    done = run("verify", tmp_path / "copy")
    assert done.exit_code == 1
    names = {line.split(":")[0] for line in done.stdout.splitlines()[:-1]}
    assert names == {"train/00000.arrow", "vocabularies/color.arrow"}
    machine = run("verify", tmp_path / "copy", "--json")
    assert machine.exit_code == 1
    assert json.loads(machine.stdout)["ok"] is False
    assert len(json.loads(machine.stdout)["differing"]) == 2


def test_what_is_no_store_ends_with_1(tmp_path: Path, run: Run) -> None:
    for command in ("verify", "show"):
        done = run(command, tmp_path)
        assert done.exit_code == 1
        assert "headrace.json" in done.stderr


def test_a_damaged_manifest_ends_with_1(store: Path, tmp_path: Path, run: Run) -> None:
    shutil.copytree(store, tmp_path / "copy")
    (tmp_path / "copy" / "headrace.json").write_text("{")
    for command in ("verify", "show"):
        assert run(command, tmp_path / "copy").exit_code == 1


def test_show_of_ids_that_no_table_has_ends_with_1(store: Path, tmp_path: Path, run: Run) -> None:
    shard = Path("train") / "00000.arrow"
    shutil.copytree(store, tmp_path / "copy")
    with pa.memory_map(str(store / shard)) as source:
        rows = pa.ipc.open_file(source).read_all()
    for name, wrong in (("color", 77), ("shop", 77), ("age", 77), ("device", 77), ("action", -1)):
        place = rows.column_names.index(name)
        damaged = rows.set_column(place, name, pa.array([wrong] * len(rows), rows.schema.field(name).type))
        with pa.ipc.new_file(str(tmp_path / "copy" / shard), rows.schema) as writer:
            writer.write_table(damaged)
        done = run("show", tmp_path / "copy")
        assert done.exit_code == 1, name
        assert f"the id {wrong} is stored where there are ids 0 to " in done.stderr


def test_show_of_a_damaged_shard_ends_with_1(store: Path, tmp_path: Path, run: Run) -> None:
    shutil.copytree(store, tmp_path / "copy")
    (tmp_path / "copy" / "train" / "00000.arrow").write_bytes(b"ARROW1")
    done = run("show", tmp_path / "copy")
    assert done.exit_code == 1
    assert "headrace verify" in done.stderr
