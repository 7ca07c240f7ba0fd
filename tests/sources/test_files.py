"""Which files a source means, and what is said of those that are not there."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from headrace.errors import SourceError
from headrace.sources import Column, Reader, SourceFile, find_files


def names(files: list[SourceFile]) -> list[str]:
    return [file.name for file in files]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "raw" / "deep").mkdir(parents=True)
    for name in (
        "b.csv",
        "a.csv",
        "B.csv",
        "é.csv",
        "a10.csv",
        "a9.csv",
        ".hidden.csv",
        "deep/c.csv",
        "[x].csv",
    ):
        (tmp_path / "raw" / name).write_bytes(name.encode())
    return tmp_path


def test_byte_order_of_names_and_no_folders(folder: Path) -> None:
    (folder / "raw" / "folder.csv").mkdir()
    found = find_files("raw/*.csv", folder)
    assert names(found) == [
        "raw/B.csv", "raw/[x].csv", "raw/a.csv", "raw/a10.csv", "raw/a9.csv", "raw/b.csv", "raw/é.csv"
    ]  # fmt: skip
    assert found[2].size == len("a.csv")
    assert found[2].modified == (folder / "raw/a.csv").stat().st_mtime_ns


def test_each_file_once_in_whatever_order_it_is_named(folder: Path) -> None:
    assert names(find_files(["raw/b.csv", "raw/[ab].csv", "raw/**/c.csv"], folder)) == [
        "raw/a.csv",
        "raw/b.csv",
        "raw/deep/c.csv",
    ]


def test_a_path_that_exists_is_no_glob(folder: Path) -> None:
    assert names(find_files("raw/[x].csv", folder)) == ["raw/[x].csv"]


def test_absolute_paths_and_urls(folder: Path) -> None:
    path = str(folder / "raw" / "a.csv")
    assert names(find_files(path, Path("elsewhere"))) == [path]
    assert names(find_files(f"file://{path}")) == [path]


def test_the_checksum_is_of_the_stored_bytes(folder: Path) -> None:
    assert find_files("raw/a.csv", folder)[0].checksum() == xxhash.xxh3_64_hexdigest(b"a.csv")


def test_remote_files() -> None:
    system = fsspec.filesystem("memory")
    system.pipe("/bucket/b.csv", b"a\n2\n")
    system.pipe("/bucket/a.csv", b"a\n1\n")
    found = find_files("memory://bucket/*.csv")
    assert names(found) == ["memory:///bucket/a.csv", "memory:///bucket/b.csv"]
    assert found[0].size == 4
    found[0].check_unchanged()
    with found[0].open() as file:
        assert file.read() == b"a\n1\n"
    system.pipe("/bucket/a.csv", b"a\n12\n")
    with pytest.raises(SourceError, match="changed while it was read"):
        found[0].check_unchanged()


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("raw/a.tsv", "there is no file 'raw/a.tsv'. Did you mean 'a.csv'?"),
        ("row/a.csv", "There is no folder"),
        ("raw/*.tsv", "the glob 'raw/*.tsv' matches no file below"),
        ("raw", "'raw' is a folder, files are expected. Write raw/* or a narrower glob."),
        ("memory://nowhere/x.csv", "'memory://nowhere/x.csv' matches no file"),
        ("nosuch://x/y.csv", "Install the fsspec driver"),
        ("raw/a\0.csv", "cannot be read"),
    ],
)
def test_what_is_said_of_files_that_are_not_there(folder: Path, pattern: str, message: str) -> None:
    with pytest.raises(SourceError) as error:
        find_files(pattern, folder)
    assert message in str(error.value)


def test_no_files_at_all() -> None:
    with pytest.raises(SourceError, match="Name at least one"):
        find_files([])


def test_a_file_without_permission(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so that the operating system's answer is given here."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(SourceError, match="Permission denied"):
        find_files("raw/a.csv", folder)


def test_a_dangling_link(folder: Path) -> None:
    (folder / "raw" / "link.csv").symlink_to("nowhere")
    with pytest.raises(SourceError, match="there is no file"):
        find_files("raw/link.csv", folder)


def test_a_file_that_vanishes_or_changes(folder: Path) -> None:
    file = find_files("raw/a.csv", folder)[0]
    (folder / "raw" / "a.csv").write_bytes(b"other text")
    with pytest.raises(SourceError, match="changed while it was read"):
        file.check_unchanged()
    (folder / "raw" / "a.csv").unlink()
    with pytest.raises(SourceError, match="cannot be opened: No such file"), file.open():
        pass


@pytest.mark.parametrize(("form", "content"), [("csv", b"a\n1\n"), ("jsonl", b'{"a":1}\n'), ("text", b"a\n")])
def test_reading_a_file_that_has_changed(
    opened: Callable[..., Reader], tmp_path: Path, form: str, content: bytes
) -> None:
    reader = opened(content, [Column("text" if form == "text" else "a", "text")], format=form)
    assert len(list(reader.blocks())) == 1
    (tmp_path / "data").write_bytes(content * 2)
    with pytest.raises(SourceError, match="data: changed while it was read"):
        list(reader.blocks())
    (tmp_path / "data").unlink()
    with pytest.raises(SourceError, match="data: cannot be opened"):
        list(reader.blocks())


def test_remote_sources_are_read_like_local_ones(read: Callable[..., Any]) -> None:
    system = fsspec.filesystem("memory")
    system.pipe("/logs/a.csv.gz", gzip.compress(b"a\n1\n2,3\n"))
    table = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2]}), table)
    system.pipe("/logs/a.parquet", table.getvalue())
    found = read("memory://logs/a.csv*", [Column("a", "text")])
    assert (found.columns["a"], found.bad_lines) == (["1"], [3])
    assert read("memory://logs/a.parquet", [Column("a", "text")], format="parquet").columns["a"] == ["1", "2"]


def test_names_that_are_not_utf8_can_be_shown(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.csv"
    with open(path, "wb") as file:
        file.write(b"a\n")
    found = find_files("*.csv", tmp_path)
    assert found[0].name == "\\xff.csv"
    with found[0].open() as file:
        assert file.read() == b"a\n"
