"""Parsed parts of an earlier run that are not what was written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import headrace as hr
from headrace.building.settings import Settings

ROWS = "user,n\n" + "".join(f"u{number % 7},{number}\n" for number in range(2000))


@pytest.fixture
def store(tmp_path: Path) -> Callable[[int], hr.DatasetDict]:
    """Build the same rows, some of them bad, with another ``min_count``."""
    (tmp_path / "rows.csv").write_text(ROWS + "u1,none\n")

    def store(min_count: int) -> hr.DatasetDict:
        features = {
            "user": {"kind": "categorical", "min_count": min_count},
            "n": {"kind": "numeric"},
        }
        source = {"files": str(tmp_path / "rows.csv"), "max_bad_fraction": 0.5}
        spec = {"name": "s", "source": source, "features": features}

        return hr.build(spec, out=tmp_path / "store")

    return store


@pytest.mark.parametrize("cut", ["zeros", "shorter", "no seal", "torn seal", "a list", "folder", "gone"])
def test_a_part_that_lost_bytes_is_parsed_again(
    store: Callable[[int], hr.DatasetDict], tmp_path: Path, cut: str
) -> None:
    store(1)
    part = tmp_path / "store" / ".build" / "parsed" / "rows" / "00000"
    rows = part / "rows.arrow"
    content = rows.read_bytes()
    match cut:
        case "zeros":
            rows.write_bytes(content[: len(content) // 2] + bytes(64) + content[len(content) // 2 + 64 :])
        case "shorter":
            rows.write_bytes(content[:-100])
        case "no seal":
            (part / "seal.json").unlink()
        case "torn seal":
            (part / "seal.json").write_bytes(b"")
        case "a list":
            (part / "seal.json").write_bytes(b"[]")
        case "folder":
            (part / "more").mkdir()
        case "gone":
            rows.unlink()
    splits = store(2)
    assert rows.read_bytes() == content
    assert [row["n"] for row in splits["train"].to_list()] == list(range(2000))


@pytest.mark.parametrize("name", ["rows.arrow", "dictionaries.arrow", "bad.arrow", "seal.json"])
def test_a_flipped_bit_is_found_wherever_it_is(
    store: Callable[[int], hr.DatasetDict], tmp_path: Path, name: str
) -> None:
    """It would be in the shards, and in their checksums, or would lead a look-up out of its arrays."""
    expected = store(2)["train"].to_list()
    path = tmp_path / "store" / ".build" / "parsed" / "rows" / "00000" / name
    content = path.read_bytes()
    for min_count, place in enumerate(range(0, len(content), max(1, len(content) // 5)), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        store(min_count)
        assert path.read_bytes() == content
    assert store(2)["train"].to_list() == expected


def test_a_marker_that_names_fewer_parts_loses_no_rows(
    store: Callable[[int], hr.DatasetDict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "part_bytes", property(lambda _: 4_000))
    monkeypatch.setattr(Settings, "block_bytes", property(lambda _: 1_000))
    assert store(1).accounting["read"] == 2001
    marker = tmp_path / "store" / ".build" / "parsed" / "rows" / "parsed.json"
    content = json.loads(marker.read_bytes())
    assert content["content"]["finished"] > 3
    for damaged in (b"", b"[1]", b"{}", json.dumps({**content, "content": None}).encode()):
        marker.write_bytes(damaged)
        assert store(2).accounting["read"] == 2001
        store(1)
    content["content"]["finished"] -= 1
    marker.write_text(json.dumps(content))
    assert store(2).accounting["read"] == 2001


def test_a_whole_part_is_used_again(store: Callable[[int], hr.DatasetDict], tmp_path: Path) -> None:
    store(1)
    sealed = tmp_path / "store" / ".build" / "parsed" / "rows" / "00000" / "seal.json"
    before = sealed.stat().st_mtime_ns
    assert set(json.loads(sealed.read_bytes())["files"]) == {"bad.arrow", "dictionaries.arrow", "rows.arrow"}
    store(2)
    assert sealed.stat().st_mtime_ns == before
