"""``headrace show`` of a token store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


def test_windows_are_cut_as_asked_and_written_as_a_page(tmp_path: Path) -> None:
    tokenize(["abcdef", "gh"], lambda text: list(text.encode()), out=tmp_path / "tokens", vocab_size=256)

    def show(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["show", str(tmp_path / "tokens"), *arguments])

    cut = show("--window", "4", "--stride", "2", "--rows", "9", "--json")
    titles = [window["title"] for window in json.loads(cut.output)["windows"]]
    assert [title.partition(", ")[0] for title in titles] == [
        "window 0: document 0 from token 0",
        "window 1: document 0 from token 2",
        "window 2: document 1 from token 0",
    ]
    packed = show("--window", "8", "--pack", "best_fit", "--json")
    (window,) = json.loads(packed.output)["windows"]
    assert {piece["look"]["segment"] for piece in window["pieces"]} == {1, 2}
    page = tmp_path / "page.html"
    written = show("--window", "8", "--pack", "concat", "--html", str(page))
    assert written.exit_code == 0, written.output
    assert written.output == f"{page}: 1 windows\n"
    content = page.read_text(encoding="utf-8")
    assert content.startswith("<!doctype html>")
    assert "border" in content
    assert show("--window", "4", "--stride", "5").exit_code == 2
    assert show("--row", "99").exit_code == 2
