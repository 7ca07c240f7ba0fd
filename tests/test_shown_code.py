"""Code that is shown runs somewhere: examples, examples in docstrings, and every kind of block on a page.

``test_documentation.py`` runs the pages themselves.
"""

from __future__ import annotations

import doctest
import importlib
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCE = REPOSITORY / "src"
EXAMPLES = sorted(path.name for path in (REPOSITORY / "examples").glob("*.py"))
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
FENCE = re.compile(r"^\s*```(.*)$", re.MULTILINE)
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RUN_OR_READ = {"python", "py", "console", "toml", "json"}  # py: by a test of the page's own
WORDS_ONLY = {"text", "sh"}
PARSE: dict[str, Callable[[str], object]] = {
    "toml": tomllib.loads,
    "json": lambda text: [json.loads(line) for line in text.splitlines()],
}


def modules_with_examples() -> list[str]:
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if ">>>" in path.read_text(encoding="utf-8")]
    return [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in paths]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_in_docstrings_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_run_by_a_test(example: str) -> None:
    tests = (path for path in (REPOSITORY / "tests").rglob("test_*.py") if path != Path(__file__))
    assert [path.name for path in tests if f'"{example}"' in path.read_text(encoding="utf-8")] != []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_of_a_kind_that_is_run_or_needs_no_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    opening = [words.split(" ")[0] for words in FENCE.findall(text)[::2]]
    assert set(opening) <= RUN_OR_READ | WORDS_ONLY
    assert len(BLOCK.findall(text)) == len(opening)  # none is indented, where it would not be seen


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_data_can_be_read(page: Path) -> None:
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language in PARSE:
            PARSE[language](text)
