"""Parsed parts that lost bytes while the machine was off."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import headrace as hr
from headrace.building import seal

ROWS = "user,n\n" + "".join(f"u{number % 7},{number}\n" for number in range(2000))


@pytest.fixture
def store(tmp_path: Path) -> Callable[[int], hr.DatasetDict]:
    """Build the same rows with another ``min_count``."""
    (tmp_path / "rows.csv").write_text(ROWS)

    def store(min_count: int) -> hr.DatasetDict:
        features = {
            "user": {"kind": "categorical", "min_count": min_count},
            "n": {"kind": "numeric"},
        }
        spec = {"name": "s", "source": {"files": str(tmp_path / "rows.csv")}, "features": features}
        return hr.build(spec, out=tmp_path / "store")

    return store


def restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal, "current_boot", lambda: "another")


@pytest.mark.parametrize("cut", ["zeros", "shorter", "no seal", "torn seal", "gone"])
def test_a_part_that_lost_bytes_is_parsed_again(
    store: Callable[[int], hr.DatasetDict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: str
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
        case "gone":
            rows.unlink()
    restart(monkeypatch)
    splits = store(2)
    assert rows.read_bytes() == content
    assert [row["n"] for row in splits["train"].to_list()] == list(range(2000))


@pytest.mark.parametrize("started_again", [False, True])
def test_a_whole_part_is_used_again(
    store: Callable[[int], hr.DatasetDict],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    started_again: bool,
) -> None:
    store(1)
    sealed = tmp_path / "store" / ".build" / "parsed" / "rows" / "00000" / "seal.json"
    before = sealed.stat().st_mtime_ns
    assert set(json.loads(sealed.read_bytes())["files"]) == {"bad.jsonl", "dictionaries.arrow", "rows.arrow"}
    if started_again:
        restart(monkeypatch)
    store(2)
    assert sealed.stat().st_mtime_ns == before
