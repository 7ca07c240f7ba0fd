"""Names from strangers: they run no code, make no query, and write nowhere but below the output folder."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.errors import HeadraceError, StoreError

NAMES = [
    "../../x",
    "..",
    ".",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "a\0b",
    "'; DROP TABLE x; --",
    '"; SELECT 1; --',
    "$(touch owned)",
    "`touch owned`",
    "{0.__class__}",
    "%s%n",
    "con",
    "a" * 300,
    "ü" * 200,
    "two\nlines",
    "\r",
    " ",
    "~",
    "*",
    ".tmp",
    "00000.arrow.tmp",
    "-rf",
    "\u202egnp.exe",
]


def rows(columns: list[str], count: int = 12) -> list[dict[str, Any]]:
    return [{column: f"v{(n + k) % 5}" for k, column in enumerate(columns)} for n in range(count)]


def write(path: Path, content: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in content))


def snapshot(folder: Path, but: Path) -> dict[str, tuple[int, int]]:
    """What lies below a folder, without what lies below ``but``."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if but != path and but not in path.parents:
            status = path.lstat()
            found[str(path)] = (status.st_ino, status.st_mtime_ns if path.is_file() else 0)
    return found


def used(spec: dict[str, Any], parent: Path, files: Any) -> bool:
    """Build, open, load, encode and show; hold that nothing was written elsewhere. False: it was refused."""
    out = parent / "deep" / "er" / "store"
    out.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(out, ignore_errors=True)
    before = snapshot(parent, out)
    try:
        splits = hr.build(spec, out=out, threads=1)
    except HeadraceError:
        return False
    finally:
        assert snapshot(parent, out) == before
    for split in splits:
        list(splits[split].loader(batch_size=5, output="numpy", masks=True))
        splits[split].to_list()
    assert hr.verify(out) == []
    hr.Encoder(out)
    assert all(
        (out / entry.name).resolve().is_relative_to(out.resolve()) for entry in splits.manifest.entries()
    )
    new = parent / "deep" / "er" / "new"
    shutil.rmtree(new, ignore_errors=True)
    beside = {**snapshot(parent, new)}
    hr.encode(out, files, out=new, threads=1)
    assert snapshot(parent, new) == beside
    assert not (Path.cwd() / "owned").exists()
    return True


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parent")


@pytest.mark.parametrize("name", NAMES)
def test_names_of_a_spec(parent: Path, name: str) -> None:
    """A feature, its column, its vocabulary, a label, the id: each by a hostile name, in both formats."""
    log = parent / "log.jsonl"
    write(log, rows([name, "plain"]))
    column = json.dumps(name)[1:-1] if "." not in name else name
    for declared in (
        {"features": {name: {"kind": "categorical", "column": "plain"}}},
        {"features": {"f": {"kind": "categorical", "column": name}}},
        {"features": {"f": {"kind": "set", "column": column, "max_length": 2}}},
        {
            "vocabularies": {name: {"min_count": 1}},
            "features": {"f": {"kind": "categorical", "column": "plain", "vocabulary": name}},
        },
        {
            "features": {"f": {"kind": "categorical", "column": "plain"}},
            "labels": {name: {"kind": "class", "column": "plain"}},
        },
        {"features": {"f": {"kind": "categorical", "column": "plain"}}, "id": {"column": name}},
        {"features": {name: {"kind": "cross", "columns": [name, "plain"], "buckets": 7}}},
    ):
        spec = {"name": name, "source": {"files": str(log)}, **declared}
        used(spec, parent, log)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_splits_and_tables(parent: Path, name: str) -> None:
    log, table = parent / "log.jsonl", parent / "table.jsonl"
    write(log, rows(["key", "plain"]))
    write(table, [{"key": f"v{n}", "colour": "red"} for n in range(5)])
    plain = {"f": {"kind": "categorical", "column": "plain"}}
    parts = {"train": ["v0", "v1"], name: ["v2", "v3", "v4"]}
    split = {"by": "column", "column": "plain", **parts}
    used({"name": "s", "source": {"files": str(log)}, "split": split, "features": plain}, parent, log)
    joined = {"c": {"kind": "categorical", "column": f"{name}.colour"}}
    tables = {name: {"format": "jsonl", "files": str(table), "key": "key"}}
    used({"name": "t", "source": {"files": str(log)}, "tables": tables, "features": joined}, parent, log)


@pytest.mark.parametrize("name", [name for name in NAMES if "\0" not in name])
def test_headers_and_names_of_files(parent: Path, name: str) -> None:
    header = '"' + name.replace('"', '""') + '"'
    source = parent / (name.replace("/", "_")[:100] + ".csv")
    source.write_text(f"{header},plain\n" + "".join(f"v{n % 3},w{n}\n" for n in range(9)))
    features = {"f": {"kind": "categorical", "column": name}, "g": {"kind": "categorical", "column": "plain"}}
    spec = {"name": "csv", "source": {"format": "csv", "files": str(source)}, "features": features}
    used(spec, parent, source)
    del features["f"]
    assert used(spec, parent, source)
    source.unlink()


def test_names_that_differ_in_case_only(parent: Path) -> None:
    """They have files of their own, also where the file system takes them for one."""
    log = parent / "log.jsonl"
    write(log, rows(["Item", "item"]))
    features = {name: {"kind": "categorical"} for name in ("Item", "item")}
    assert used({"name": "case", "source": {"files": str(log)}, "features": features}, parent, log)
    names = [entry.name for entry in hr.load_from_disk(parent / "deep" / "er" / "store").manifest.entries()]
    assert len({name.casefold() for name in names}) == len(names)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=st.text(min_size=1, max_size=40), other=st.text(min_size=1, max_size=40))
def test_any_names(parent: Path, name: str, other: str) -> None:
    log = parent / "any.jsonl"
    log.write_bytes(b"")
    try:
        write(log, rows([name, other]))
    except UnicodeEncodeError:
        return
    spec = {
        "name": other,
        "source": {"files": str(log)},
        "vocabularies": {other: {}},
        "features": {name: {"kind": "categorical", "vocabulary": other}},
        "labels": {other: {"kind": "class"}},
    }
    used(spec, parent, log)


# -- a store from a stranger ------------------------------------------------------------------------------


def forged(store: Path, copy: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """Copy a store, and change its manifest as one can who takes its checksum out."""
    shutil.copytree(store, copy, ignore=shutil.ignore_patterns(".build"))
    manifest = json.loads((copy / "headrace.json").read_text())
    del manifest["xxh3"]
    change(manifest)
    (copy / "headrace.json").write_text(json.dumps(manifest))
    return copy


ELSEWHERE = ["../secret.arrow", "/etc/passwd", "train/../../secret.arrow", "a\\..\\b", "a\0b", ""]


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("where", ["splits", "files"])
def test_a_manifest_that_points_elsewhere(store: Path, tmp_path: Path, where: str, name: str) -> None:
    def change(manifest: dict[str, Any]) -> None:
        entries = manifest["splits"]["train"] if where == "splits" else manifest["files"]
        entries[0]["name"] = name

    copy = forged(store, tmp_path / "copy", change)
    with pytest.raises(StoreError, match="outside the store"):
        hr.load_from_disk(copy)


def test_a_link_out_of_the_store_is_no_file_of_it(store: Path, tmp_path: Path) -> None:
    """A link is read like the file that it leads to, never written through."""
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    (tmp_path / "outside").write_bytes(b"mine")
    shard = copy / "train" / "00000.arrow"
    shard.unlink()
    shard.symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError):
        hr.load_from_disk(copy)["train"]
    assert hr.verify(copy)
    assert (tmp_path / "outside").read_bytes() == b"mine"


def test_a_journal_from_a_stranger_removes_nothing_elsewhere(store: Path, job: Any, tmp_path: Path) -> None:
    """``.build/publishing.json`` says what to remove and to move: only names directly below the store."""
    out = tmp_path / "er" / "store"
    shutil.copytree(store, out)
    (tmp_path / "er" / "precious").write_text("mine")
    new = json.loads((out / "headrace.json").read_text())
    for old in (
        ["../precious"],
        [str(tmp_path / "er" / "precious")],
        ["..", "."],
        ["a/../../precious"],
        [7],
        7,
    ):
        (out / ".build").mkdir(exist_ok=True)
        (out / ".build" / "publishing.json").write_text(json.dumps({"new": new, "old": old}))
        with pytest.raises(HeadraceError):
            hr.build(json.loads(job.spec.read_text()), out=out, threads=1)
        assert (tmp_path / "er" / "precious").read_text() == "mine"
    (out / ".build" / "publishing.json").write_text("{")
    with pytest.raises(HeadraceError):
        hr.build(json.loads(job.spec.read_text()), out=out, threads=1)


def wrong_types() -> list[tuple[str, Any]]:
    values: list[Any] = [None, 7, "x", [7], {}]
    return [(key, one) for key in ("details", "splits", "files", "kind") for one in values]


@pytest.mark.parametrize(("key", "value"), wrong_types())
def test_a_manifest_of_wrong_types(store: Path, tmp_path: Path, key: str, value: Any) -> None:
    copy = forged(store, tmp_path / "copy", lambda manifest: manifest.update({key: value}))
    with contextlib.suppress(HeadraceError):
        splits = hr.load_from_disk(copy)
        assert hr.verify(copy) != []
        splits.embedding_sizes()
        hr.Encoder(copy)
        assert "train" not in splits or splits["train"].to_list()


DETAILS: list[Any] = [None, 7, "x", [7], {}, {"rows": [7]}, {"classes": 7, "observed_until": 7}]


@pytest.mark.parametrize("key", ["spec", "fitted", "sources", "rows"])
@pytest.mark.parametrize("value", DETAILS)
def test_details_of_wrong_types(store: Path, job: Any, tmp_path: Path, key: str, value: Any) -> None:
    """Opened or refused in words; a build over it is the store that the spec gives."""
    copy = forged(store, tmp_path / "copy", lambda manifest: manifest["details"].update({key: value}))
    with contextlib.suppress(HeadraceError):
        splits = hr.load_from_disk(copy)
        splits["train"].to_list()
        hr.Encoder(copy)
    hr.build(json.loads(job.spec.read_text()), out=copy, threads=1)
    assert hr.load_from_disk(copy).num_rows == hr.load_from_disk(store).num_rows
