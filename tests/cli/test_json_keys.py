"""What ``--json`` prints has the keys that docs/cli.md lists, and no other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from headrace.cli.app import app
from headrace.text import tokenize

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
BY_NAME = ("vocabularies", "features", "labels")
COUNTS = ("written", "number_twins", "rows_without_class")


def documented(command: str) -> set[str]:
    """Return the keys in the row of a command."""
    (row,) = re.findall(rf"^\| ({command}) \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return set(re.findall(r"`(\w+)`", row[1]))


def keys(found: Any) -> Iterator[str]:
    """Yield every key but the names that the user chose."""
    if isinstance(found, list):
        for element in found:
            yield from keys(element)
    if isinstance(found, dict):
        for key, value in found.items():
            yield key
            if key not in COUNTS:
                yield from keys(list(value.values()) if key in BY_NAME else value)


def printed(*arguments: object) -> Any:
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_of_a_build(raw: Path, store: Path) -> None:
    assert set(keys(printed("build", raw / "small.toml", "--out", store))) == documented("`build`, `encode`")


def test_of_an_encoding(raw: Path, store: Path, tmp_path: Path) -> None:
    made = printed("encode", store, raw / "rows.jsonl", "--out", tmp_path / "new")
    assert set(keys(made)) == documented("`build`, `encode`")


@pytest.mark.parametrize("command", ["verify", "show"])
def test_of_a_store(store: Path, command: str) -> None:
    assert set(keys(printed(command, store))) == documented(f"`{command}`")


def test_of_tokens(tmp_path: Path) -> None:
    lengths = lambda text: [len(word) for word in text.split()]  # noqa: E731
    tokenize(["one two three"], lengths, out=tmp_path / "tokens", vocab_size=10)
    assert set(keys(printed("show", tmp_path / "tokens"))) == documented("`show` of tokens")
