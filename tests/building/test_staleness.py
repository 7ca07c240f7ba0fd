"""When a store is built again, and the reason that is given."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.building.build import build_store


@pytest.fixture
def declared(tmp_path: Path) -> dict[str, Any]:
    for name, items in (("a", [1, 2]), ("b", [3])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({"x": i, "u": i}) + "\n" for i in items))
    (tmp_path / "users.csv").write_text("u,age\n1,30\n2,40\n")
    return {
        "name": "stale",
        "source": {"files": str(tmp_path / "?.jsonl"), "format": "jsonl"},
        "tables": {"user": {"files": str(tmp_path / "users.csv"), "key": "u"}},
        "features": {
            "x": {"kind": "categorical"},
            "age": {"kind": "numeric", "column": "user.age"},
        },
    }


def changed(spec: dict[str, Any], change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    other = copy.deepcopy(spec)
    change(other)
    return other


def test_a_store_that_is_not_there(declared: dict[str, Any], tmp_path: Path) -> None:
    assert hr.why_stale(declared, tmp_path / "s") == [
        f"{tmp_path / 's'} holds no store that this headrace can read"
    ]
    assert not (tmp_path / "s").exists()


def test_nothing_changed(declared: dict[str, Any], tmp_path: Path) -> None:
    assert build_store(declared, tmp_path / "s").built
    assert hr.why_stale(declared, tmp_path / "s") == []
    report = build_store(declared, tmp_path / "s")
    assert (report.built, report.reasons) == (False, ())
    assert report.accounting["read"] == 3


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        (lambda s: s.update(version=2), ["the spec changed: version"]),
        (lambda s: s.update(name="other"), ["the spec changed: name"]),
        (lambda s: s["features"]["x"].update(min_count=2), ["the spec changed: features.x.min_count"]),
        (lambda s: s["features"].pop("age"), ["the spec changed: features.age"]),
        (
            lambda s: s.update(labels={"y": {"kind": "continuous", "column": "x"}}),
            ["the spec changed: labels"],
        ),
        (
            lambda s: s.update(features=dict(reversed(s["features"].items()))),
            ["the spec changed: features"],
        ),
        (
            lambda s: (s.update(version=3), s["features"]["age"].update(transform="log1p")),
            ["the spec changed: version", "the spec changed: features.age.transform"],
        ),
    ],
)
def test_the_spec_changed(declared: dict[str, Any], tmp_path: Path, change: Any, reasons: list[str]) -> None:
    hr.build(declared, out=tmp_path / "s")
    other = changed(declared, change)
    assert sorted(hr.why_stale(other, tmp_path / "s")) == sorted(reasons)
    # What is built in the place of an older store is what is built from nothing.
    hr.build(changed(other, lambda s: s["features"]["x"].update(missing="unknown")), out=tmp_path / "s")
    assert hr.why_stale(declared, tmp_path / "s")


def test_files_changed(declared: dict[str, Any], tmp_path: Path) -> None:
    hr.build(declared, out=tmp_path / "s")
    (tmp_path / "c.jsonl").write_text('{"x": 9, "u": 1}\n')
    assert hr.why_stale(declared, tmp_path / "s") == [f"{tmp_path}/c.jsonl is new"]
    (tmp_path / "a.jsonl").unlink()
    (tmp_path / "b.jsonl").write_text('{"x": 4, "u": 1}\n')
    (tmp_path / "users.csv").write_text("u,age\n1,30\n2,41\n")
    assert sorted(hr.why_stale(declared, tmp_path / "s")) == [
        f"{tmp_path}/a.jsonl is gone",
        f"{tmp_path}/b.jsonl changed",
        f"{tmp_path}/c.jsonl is new",
        f"{tmp_path}/users.csv changed",
    ]
    splits = hr.build(declared, out=tmp_path / "s")
    assert splits.num_rows == {"train": 2}
    assert hr.why_stale(declared, tmp_path / "s") == []


def test_a_new_time_of_the_same_bytes_is_no_reason(declared: dict[str, Any], tmp_path: Path) -> None:
    hr.build(declared, out=tmp_path / "s")
    os.utime(tmp_path / "a.jsonl", ns=(1, 1))
    assert hr.why_stale(declared, tmp_path / "s") == []


def test_a_change_that_keeps_the_size_is_found(declared: dict[str, Any], tmp_path: Path) -> None:
    hr.build(declared, out=tmp_path / "s")
    path = tmp_path / "b.jsonl"
    path.write_text(path.read_text().replace("3", "4"))
    os.utime(path, ns=(5, 5))
    assert hr.why_stale(declared, tmp_path / "s") == [f"{path} changed"]


def test_descriptions_change_no_shard(declared: dict[str, Any], tmp_path: Path) -> None:
    hr.build(declared, out=tmp_path / "s")
    before = (tmp_path / "s" / "train" / "00000.arrow").read_bytes()
    other = changed(declared, lambda s: s["features"]["x"].update(description="what it is"))
    assert hr.why_stale(other, tmp_path / "s") == []
    assert not build_store(other, tmp_path / "s").built
    assert hr.load_from_disk(tmp_path / "s").features["x"].description == "what it is"
    assert hr.verify(tmp_path / "s") == []
    assert (tmp_path / "s" / "train" / "00000.arrow").read_bytes() == before


def test_the_vocabulary_of_another_store_changed(declared: dict[str, Any], tmp_path: Path) -> None:
    hr.build(declared, out=tmp_path / "first")
    taking = changed(
        declared, lambda s: s["features"].update(x={"kind": "categorical", "from": str(tmp_path / "first")})
    )
    assert hr.build(taking, out=tmp_path / "s")["train"]["x"] == [3, 4, 5]
    assert hr.why_stale(taking, tmp_path / "s") == []
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "z.jsonl").write_text('{"x": 3, "u": 1}\n')
    hr.build(
        changed(declared, lambda s: s["source"].update(files=str(tmp_path / "more" / "z.jsonl"))),
        out=tmp_path / "first",
    )
    assert hr.why_stale(taking, tmp_path / "s") == [f"{tmp_path}/first/vocabularies/x.arrow changed"]
    assert hr.build(taking, out=tmp_path / "s")["train"]["x"] == [1, 1, 3]


def test_a_moved_store_opens_and_verifies(ads: hr.DatasetDict, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(ads.folder, tmp_path / "elsewhere")
    moved = hr.load_from_disk(tmp_path / "elsewhere")
    assert hr.verify(tmp_path / "elsewhere") == []
    assert moved["train"].to_arrow().equals(ads["train"].to_arrow())
    assert moved.features.keys() == ads.features.keys()
    assert moved["test"].fingerprint == ads["test"].fingerprint


def test_relative_files_of_a_spec_start_at_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "log.csv").write_text("x\na\nb\n")
    (tmp_path / "spec.toml").write_text(
        'name = "t"\n[source]\nfiles = "raw/*.csv"\n[features.x]\nkind = "categorical"\n'
    )
    monkeypatch.chdir(tmp_path.parent)
    splits = hr.build(tmp_path / "spec.toml", out=tmp_path / "s")
    assert splits["train"].ids([1]) == ["raw/log.csv:1"]
    monkeypatch.chdir(tmp_path)
    assert hr.why_stale("spec.toml", "s") == []


def test_bytes_do_not_depend_on_what_was_built_before(tmp_path: Path, log: Any, store_bytes: Any) -> None:
    """Parts that an earlier declaration had parsed serve a later one, and hold more than it asks for."""
    rows = [
        {"ad": n % 5, "user": f"u{n % 7}", "price": n if n % 4 else "dear", "size": n if n % 3 else "big"}
        for n in range(60)
    ]
    ads = [
        {
            "ad": ad,
            "cost": ad if ad != 2 else "much",
            "mass": ad if ad != 3 else "heavy",
            "kind": f"k{ad % 2}",
        }
        for ad in range(5)
    ]

    def declared(*names: str) -> dict[str, Any]:
        features: dict[str, Any] = {"user": {"kind": "categorical"}}
        for name in names:
            table = "ads." if name in ads[0] else ""
            features[name] = {"kind": "categorical" if name == "kind" else "numeric", "column": table + name}
        tables = {"ads": {"files": str(tmp_path / "ads.jsonl"), "key": "ad", "max_bad_fraction": 1}}
        source = {"files": str(tmp_path / "rows.jsonl"), "max_bad_fraction": 1}
        return {"name": "history", "source": source, "tables": tables, "features": features}

    log(rows, "rows.jsonl")
    log(ads, "ads.jsonl")
    wanted = declared("size", "mass", "price", "kind")
    hr.build(wanted, out=tmp_path / "fresh")
    before = declared("cost", "price", "kind", "size", "mass")
    old = hr.build(before, out=tmp_path / "store")
    parsed = (tmp_path / "store" / ".build" / "parsed" / "rows" / "parsed.json").read_bytes()
    again = hr.build(wanted, out=tmp_path / "store")
    assert (tmp_path / "store" / ".build" / "parsed" / "rows" / "parsed.json").read_bytes() == parsed
    assert old.manifest.details["tables"]["ads"]["quarantined"] == 2
    assert again.manifest.details["tables"]["ads"]["quarantined"] == 1
    assert store_bytes(tmp_path / "store") == store_bytes(tmp_path / "fresh")
