"""What is given as a path: other types, paths that no file can have, names that are not UTF-8."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.errors import BuildError, HeadraceError, SourceError, SpecError, StoreError
from headrace.sources import Column, open_source, read_quarantine, write_quarantine
from headrace.spec import Source

Call = Callable[[Path, Any], object]
WHERE: dict[str, Call] = {
    "build out": lambda store, path: hr.build(spec_of(store), out=path),
    "build spec": lambda store, path: hr.build(path, out=store),
    "why_stale out": lambda store, path: hr.why_stale(spec_of(store), path),
    "why_stale spec": lambda store, path: hr.why_stale(path, store),
    "load_from_disk": lambda store, path: hr.load_from_disk(path),
    "verify": lambda store, path: hr.verify(path),
    "encode store": lambda store, path: hr.encode(path, raw_of(store), store.with_name("new")),
    "encode file": lambda store, path: hr.encode(store, path, store.with_name("new")),
    "encode files": lambda store, path: hr.encode(store, [path], store.with_name("new")),
    "encode out": lambda store, path: hr.encode(store, raw_of(store), path),
    "Encoder": lambda store, path: hr.Encoder(path),
    "Vocabulary.load": lambda store, path: hr.Vocabulary.load(path),
    "Vocabulary.save": lambda store, path: hr.Vocabulary.fit(["a"]).save(path),
    "Spec.load": lambda store, path: hr.Spec.load(path),
    "load_dataset": lambda store, path: hr.load_dataset("text", data_files=path),
    "read_quarantine": lambda store, path: list(read_quarantine(path)),
    "write_quarantine": lambda store, path: write_quarantine(path, []),
}
NO_PATHS = [None, 5, True, 1.5, ["a", 5], Ellipsis, "", "a\0b"]


def raw_of(store: Path) -> Path:
    return store.with_name("rows.jsonl")


def spec_of(store: Path) -> dict[str, Any]:
    return {
        "name": "paths",
        "source": {"files": str(raw_of(store))},
        "features": {"item": {"kind": "categorical"}},
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of three rows; no test changes it."""
    folder = tmp_path_factory.mktemp("paths")
    (folder / "rows.jsonl").write_text('{"item": 1}\n{"item": 2}\n{"item": 1}\n')
    hr.build(spec_of(folder / "store"), out=folder / "store")
    return folder / "store"


@pytest.mark.parametrize("value", NO_PATHS, ids=repr)
@pytest.mark.parametrize("where", WHERE)
def test_what_is_no_path_is_refused_with_words(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, value: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HeadraceError) as caught:
        WHERE[where](store, value)
    assert "NoneType, not" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert not store.with_name("new").exists()


@pytest.mark.parametrize("base", [5, ["a"], True, "a\0b"], ids=repr)
def test_what_is_no_folder_of_a_source(base: Any) -> None:
    with pytest.raises(SourceError, match=r"^base is "):
        open_source(Source(format="jsonl", files="*"), base, [Column("item", "text")])
    with pytest.raises(SpecError, match=r"^folder is "):
        hr.Spec.from_dict(spec_of(Path("store")), folder=base)


def test_an_empty_folder_of_a_spec_is_the_current_one(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``os.path.dirname("ads.toml")`` gives it."""
    monkeypatch.chdir(store.parent)
    declared = {**spec_of(store), "source": {"files": "rows.jsonl"}}
    splits = hr.build(hr.Spec.from_dict(declared, folder=os.path.dirname("ads.toml")), out="other")
    assert splits.num_rows == {"train": 3}


def test_messages_name_the_argument_and_what_was_found(store: Path) -> None:
    with pytest.raises(BuildError, match=r"^out is None; expected a path, such as 'stores/ads'\.$"):
        WHERE["build out"](store, None)
    with pytest.raises(StoreError, match=r"^folder is 5; expected a path"):
        hr.verify(5)  # type: ignore[arg-type]
    with pytest.raises(SourceError, match=r"^files: found \[None\], expected a path, a glob or a URL"):
        WHERE["encode files"](store, None)
    with pytest.raises(BuildError, match=r"^out is '', which no file can be named"):
        WHERE["build out"](store, "")


class Folder:
    """What has a path, as ``os.fspath`` takes it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)


def test_whatever_the_system_takes_is_a_path(store: Path) -> None:
    for path in (store, str(store), os.fsencode(store), Folder(store)):
        assert hr.load_from_disk(path).num_rows == {"train": 3}  # type: ignore[arg-type]


def test_a_name_that_is_too_long(store: Path, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 300)
    with pytest.raises(BuildError, match="File name too long"):
        hr.build(spec_of(store), out=long)
    with pytest.raises(BuildError, match="File name too long"):
        hr.encode(store, raw_of(store), long)
    with pytest.raises(StoreError, match="File name too long"):
        hr.load_from_disk(long)


def _write_raw(folder: Path, kind: str) -> Path:
    table = pa.table({"item": pa.array([1, 2, 1])})
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        with path.open("wb") as file:
            pq.write_table(table, file)
    elif kind == "arrow":
        with path.open("wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    else:
        path.write_text('{"item": 1}\n{"item": 2}\n{"item": 1}\n')
    return path


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "arrow"])
def test_folders_whose_names_are_not_utf8(tmp_path: Path, kind: str) -> None:
    """Names of files are bytes on Linux; every file is opened by them."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    raw = _write_raw(folder, kind)
    spec = hr.Spec.from_dict(
        {
            "name": "bytes",
            "source": {"files": f"*.{kind}", "format": kind},
            "features": {"item": {"kind": "categorical"}},
        },
        folder=folder,
    )
    splits = hr.build(spec, out=folder / "store")
    assert splits["train"]["item"] == [3, 4, 3]
    assert hr.verify(folder / "store") == []
    assert hr.why_stale(spec, folder / "store") == []
    vocabulary = hr.Vocabulary.load(folder / "store" / "vocabularies" / "item.arrow")
    assert vocabulary.encode([1, 2]).tolist() == [3, 4]
    vocabulary.save(folder / "copy.arrow")
    assert hr.Vocabulary.load(folder / "copy.arrow").token_freqs == vocabulary.token_freqs
    assert hr.encode(folder / "store", raw, folder / "new")["item"] == [3, 4, 3]
    batch = hr.Encoder(folder / "store").encode([{"item": 2}])
    np.testing.assert_array_equal(batch["item"], [4])
    loaded = next(iter(splits["train"].loader(batch_size=3)))
    np.testing.assert_array_equal(loaded["item"], [3, 4, 3])
