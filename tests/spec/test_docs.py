"""docs/spec.md is true: its blocks load and run, and it names every key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import headrace.spec as spec_module
from headrace.errors import SpecError
from headrace.spec import Spec
from headrace.spec.base import Declared

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spec.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
TOML = [text for language, text in BLOCKS if language == "toml"]
PYTHON = [text for language, text in BLOCKS if language == "python"]
PUBLIC = vars(spec_module).values()
DECLARATIONS = [one for one in PUBLIC if isinstance(one, type) and issubclass(one, Declared)]
SECTIONS_OF_NAMES = ("vocabularies", "features", "labels", "tables")


def joined(first: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    names = {section: {**first.get(section, {}), **part.get(section, {})} for section in SECTIONS_OF_NAMES}
    return {**first, **part, **names}


@pytest.mark.parametrize("part", TOML)
def test_every_toml_block_loads_after_the_first(part: str) -> None:
    spec = Spec.from_dict(joined(tomllib.loads(TOML[0]), tomllib.loads(part)))
    assert Spec.from_dict(spec.to_dict()) == spec


@pytest.mark.parametrize("block", PYTHON)
def test_every_python_block_runs(block: str) -> None:
    exec(compile(block, "docs/spec.md", "exec"), {})


def test_the_mistakes_shown_are_the_ones_made(tmp_path: Path) -> None:
    shown = next(text for language, text in BLOCKS if language == "text")
    user = '[features.user_id]\nkind = "categorical"\n'
    wrong = TOML[0].replace(user, user + "min_cout = 5\n")
    wrong = wrong.replace('vocabulary = "creative"', 'vocabulary = "creativ"')
    (tmp_path / "ads.toml").write_text(wrong)
    with pytest.raises(SpecError) as caught:
        Spec.load(tmp_path / "ads.toml")
    assert str(caught.value).replace(str(tmp_path) + "/", "") == shown.rstrip()


def test_every_key_is_on_the_page() -> None:
    named = set(re.findall(r"`\[?(\w+)(?:\.NAME)?\]?`", PAGE.read_text(encoding="utf-8")))
    keys = {key for one in DECLARATIONS for key in one.allowed()}
    said_in_headings = {"kind"}
    assert keys - named - said_in_headings == set()


def test_every_value_of_a_choice_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    literals = [
        text
        for one in DECLARATIONS
        for field in one.model_fields.values()
        for text in re.findall(r"Literal\[([^\]]*)\]", str(field.annotation))
    ]
    choices = {value for text in literals for value in re.findall(r"'(\w+)'", text)}
    assert {value for value in choices if f'"{value}"' not in page and f"### {value}" not in page} == set()
