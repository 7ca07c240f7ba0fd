"""What the documentation shows is true: its blocks run, and its output is what is printed.

On every page, in the order of the page, in one folder and one namespace:

- a block with ``title="name"`` is written to that file;
- a ``python`` block runs;
- in a ``console`` block each ``$ headrace ...`` runs, ends with 0, and prints what is shown:
  a line ``...`` stands for any lines, and times and speeds are not compared.

A block that begins with ``# not run`` and a reason is left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from headrace.cli.app import app

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
TIMES = re.compile(r"built in [\d.]+ s, [\d,]+ rows/s")


class Block(NamedTuple):
    language: str
    title: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    for language, title, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if not text.startswith("# not run"):
            yield Block(language, title, text)


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_the_blocks_of_a_page_are_true(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    (tmp_path / "tests").symlink_to(REPOSITORY / "tests")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for number, block in enumerate(blocks(page)):
        if block.title:
            path = tmp_path / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(compile(block.text, f"{page.name}, block {number}", "exec"), names)
        elif block.language == "console":
            for command, shown in sessions(block.text):
                check_command(command, shown)


def sessions(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a console block and the lines shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *shown = part.rstrip().splitlines()
        yield command, shown


def check_command(command: str, shown: list[str]) -> None:
    program, *arguments = shlex.split(command)
    if program != "headrace":
        return
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert matches(shown, done.stdout.rstrip().splitlines()), f"{command} printed\n{done.stdout}"


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the printed lines are the shown ones, where ``...`` stands for any lines."""
    expression = "".join(
        r"(?:.*\n)*" if line.strip() == "..." else re.escape(TIMES.sub("built", line)) + r"\n"
        for line in shown
    )
    return re.fullmatch(expression, "".join(f"{TIMES.sub('built', line)}\n" for line in printed)) is not None


@pytest.mark.parametrize("page", [*PAGES, *sorted((REPOSITORY / "docs" / "decisions").glob("*.md"))], ids=str)
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_decision_is_in_the_index() -> None:
    folder = REPOSITORY / "docs" / "decisions"
    index = (folder / "index.md").read_text(encoding="utf-8")
    assert [path.name for path in folder.glob("[0-9]*.md") if f"({path.name})" not in index] == []
