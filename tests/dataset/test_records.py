"""Records beside the shards of a store: there, the same numbers, and missed where they are missing."""

from __future__ import annotations

import json
import pickle  # noqa: TID251  (what a worker process does)
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.dataset.manifest import read_manifest, write_manifest
from headrace.dataset.view import encoded_rows
from headrace.errors import StoreError
from headrace.testing import assert_batches_equal

FEATURES: dict[str, Any] = {
    "user": {"kind": "categorical"},
    "price": {"kind": "numeric", "transform": "standardize"},
    "seen": {"kind": "sequence", "max_length": 3},
}


def build(folder: Path, features: dict[str, Any], rows: int = 200) -> Path:
    log = [{"user": f"u{n % 7}", "price": n / 4, "seen": ["a", "b", "c", "d"][: n % 5]} for n in range(rows)]
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in log))
    spec = {"name": "t", "source": {"files": str(folder / "log.jsonl")}, "features": features}
    hr.build(spec, out=folder / "store")
    return folder / "store"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("records"), FEATURES)


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "store")
    return tmp_path / "store"


def everything(space: Any, rows: int) -> Any:
    order = np.arange(rows, dtype=np.int64)[::-1].copy()
    return space.gather(order, order.astype(np.uint64))


def test_batches_come_from_records_and_are_those_of_the_columns(whole: Path) -> None:
    train = hr.load_from_disk(whole)["train"]
    assert train.store is not None
    assert train.store.records is not None
    assert [len(records) for records in train.store.records] == [201]
    from_columns = everything(encoded_rows(train.store.columns, train.shards, "x", masks=True), 200)
    space = train.sample_space(masks=True)
    assert_batches_equal(everything(space, 200), from_columns)
    elsewhere = pickle.loads(pickle.dumps(space))  # noqa: S301
    assert_batches_equal(everything(elsewhere, 200), from_columns)
    assert train.column_names == ["user", "price", "seen", "__file__", "__row__"]


def test_a_store_without_records_is_read_from_its_columns(whole: Path, store: Path) -> None:
    (store / "train/00000.records").unlink()
    manifest = read_manifest(store)
    files = tuple(entry for entry in manifest.files if not entry.name.endswith(".records"))
    write_manifest(store, replace(manifest, files=files))
    assert hr.verify(store) == []
    found = hr.load_from_disk(store)["train"].sample_space()
    assert_batches_equal(
        everything(found, 200), everything(hr.load_from_disk(whole)["train"].sample_space(), 200)
    )


def test_missing_and_cut_records_are_named(store: Path) -> None:
    records = store / "train/00000.records"
    records.write_bytes(records.read_bytes()[:-4])
    assert "00000.records" in " ".join(hr.verify(store))
    with pytest.raises(StoreError, match=r"00000\.records: \d+ bytes, 200 rows need \d+"):
        hr.load_from_disk(store)["train"]
    records.unlink()
    with pytest.raises(StoreError, match=r"00000\.records: cannot be read"):
        hr.load_from_disk(store)["train"]


def test_no_records_where_a_row_has_one_number(tmp_path: Path) -> None:
    store = build(tmp_path, {"user": FEATURES["user"]})
    assert list((store / "train").iterdir()) == [store / "train/00000.arrow"]
    assert len(everything(hr.load_from_disk(store)["train"].sample_space(), 200)["user"]) == 200
