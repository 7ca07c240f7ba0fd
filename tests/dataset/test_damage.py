"""Stores that are damaged, foreign or malicious: an error with words, never a crash."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headrace as hr
from headrace.dataset.layout import safe_name
from headrace.dataset.manifest import FORMAT_VERSION
from headrace.errors import HeadraceError, StoreError


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damage")
    rows = [{"x": "ab"[n % 2], "h": ["a", "b"][: n % 3], "n": n, "w": {"a": 1.0}} for n in range(20)]
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "name": "t",
        "source": {"files": str(folder / "log.jsonl")},
        "features": {
            "x": {"kind": "categorical"},
            "h": {"kind": "sequence", "max_length": 2},
            "n": {"kind": "numeric", "transform": "standardize"},
            "w": {"kind": "weighted_set", "max_length": 2},
        },
    }
    hr.build(spec, out=folder / "store")
    return folder / "store"


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "store")
    return tmp_path / "store"


def use(folder: Path) -> None:
    splits = hr.load_from_disk(folder)
    list(splits["train"].loader(batch_size=7, output="numpy"))
    splits.features["x"].vocabulary.encode(["a", "zz"])
    splits.embedding_sizes()


def edit(folder: Path, change: Any) -> None:
    """Change a manifest as a stranger can: without its checksum, or with one that fits."""
    manifest = json.loads((folder / "headrace.json").read_text())
    del manifest["xxh3"]
    change(manifest)
    (folder / "headrace.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda m: m.update(format_version=99),
            rf"format version 99, this headrace reads {FORMAT_VERSION}\. Build",
        ),
        (lambda m: m.pop("splits"), "not a headrace manifest"),
        (lambda m: m.update(splits=[]), "not a headrace manifest"),
        (lambda m: m["splits"].update({"../up": []}), "a split is named"),
        (lambda m: m["splits"]["train"][0].update(name="../../etc/passwd"), "lies outside the store"),
        (lambda m: m["splits"]["train"][0].update(name="/etc/passwd"), "lies outside the store"),
        (lambda m: m["files"][0].update(name="a\\..\\b"), "lies outside the store"),
        (lambda m: m["splits"]["train"][0].update(rows="many"), "not a headrace manifest"),
        (lambda m: m["details"].pop("fitted"), "what was fitted cannot be read"),
    ],
)
def test_manifests(store: Path, change: Any, message: str) -> None:
    edit(store, change)
    with pytest.raises(StoreError, match=message):
        use(store)


@pytest.mark.parametrize(
    "name", ["train/00000.arrow", "vocabularies/x.arrow", "vocabularies/x.index.arrow", "statistics.arrow"]
)
@pytest.mark.parametrize("how", ["gone", "empty", "cut", "text"])
def test_files(store: Path, name: str, how: str) -> None:
    path = store / name
    content = path.read_bytes()
    path.unlink()
    if how != "gone":
        path.write_bytes({"empty": b"", "cut": content[: len(content) // 2], "text": b"hello"}[how])
    with pytest.raises(StoreError, match=r"missing|not a (readable|saved)|cannot be read"):
        use(store)
    assert len(hr.verify(store)) == 1
    assert hr.verify(store)[0].startswith(name)


def test_any_flipped_bit_is_found_and_none_crashes(store: Path) -> None:
    """Bits all over shard and vocabulary: reading works or says what is wrong; verify names the file."""
    for name in ("train/00000.arrow", "vocabularies/x.index.arrow", "vocabularies/x.arrow"):
        path = store / name
        content = path.read_bytes()
        for place in np.linspace(0, len(content) - 1, 60).astype(int).tolist():
            damaged = bytearray(content)
            damaged[place] ^= 1 << place % 8
            path.write_bytes(damaged)
            assert [line.partition(":")[0] for line in hr.verify(store)] == [name]
            with contextlib.suppress(HeadraceError, pa.ArrowException, ValueError, KeyError):
                use(store)
        path.write_bytes(content)
    assert hr.verify(store) == []


def test_files_of_two_stores_do_not_mix(store: Path) -> None:
    """The index of another vocabulary beside a table."""
    hr.Vocabulary.fit(["p", "q", "r"]).save(store / "other.arrow")
    shutil.copy(store / "other.index.arrow", store / "vocabularies" / "x.index.arrow")
    with pytest.raises(StoreError, match=r"not a saved vocabulary \(its index"):
        use(store)


@pytest.mark.parametrize("name", ["a b", "x/y", "..", ".hidden", "ü", "n" * 300, "a.b", "CON", "a%2Fb"])
def test_names_are_files_below_the_folder(name: str) -> None:
    safe = safe_name(name)
    assert "/" not in safe
    assert not safe.startswith(".")
    assert len(safe.encode()) < 200
    assert safe_name(name + "!") != safe


def test_odd_names_of_features_work(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"a.b": 1, "ü ö": 2, "A": 3, "a": 4}\n')
    names = ["a.b", "ü ö", "A", "a"]
    spec = {
        "name": "t",
        "source": {"files": str(tmp_path / "log.jsonl")},
        "features": {name: {"kind": "categorical"} for name in names},
    }
    splits = hr.build(spec, out=tmp_path / "store")
    assert [splits.vocabularies[name].values.to_pylist() for name in names] == [["1"], ["2"], ["3"], ["4"]]
    assert hr.verify(tmp_path / "store") == []
