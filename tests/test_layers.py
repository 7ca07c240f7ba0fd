"""A module imports only from rooms below its own; the map is in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import pytest
from importlinter.cli import lint_imports

REPOSITORY = Path(__file__).resolve().parent.parent


def test_every_import_goes_down(capsys: pytest.CaptureFixture[str]) -> None:
    broken = lint_imports(config_filename=str(REPOSITORY / "pyproject.toml"), no_cache=True)
    assert broken == 0, capsys.readouterr().out
