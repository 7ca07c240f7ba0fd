"""``headrace show`` of a token store."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from headrace.cli.app import app
from headrace.text import tokenize


def test_windows_of_a_token_store_are_shown(tmp_path: Path) -> None:
    tokenize(
        ["one two three", "four five"],
        lambda text: [len(word) for word in text.split()],
        out=tmp_path / "tokens",
        vocab_size=10,
    )
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "tokens"), "--rows", "1"])
    assert shown.exit_code == 0, shown.output
    assert "document" in shown.output
    read = CliRunner().invoke(app, ["show", str(tmp_path / "tokens"), "--rows", "2", "--json"])
    assert read.exit_code == 0, read.output
    assert len(json.loads(read.output)["windows"]) == 2
