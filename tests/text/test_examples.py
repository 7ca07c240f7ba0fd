"""The examples run, and what they assert holds."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("language_model_attention.py", []),
        (
            "language_model_perplexity.py",
            ["--text", "timemachine/timemachine.txt", "--steps", "3", "--tokens", "120"],
        ),
        (
            "language_model_training.py",
            ["--books", "gutenberg", "--steps", "1", "--batch-size", "2", "--paragraphs", "400"],
        ),
    ],
)
def test_example(
    name: str,
    arguments: list[str],
    shared_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    paths = [str(shared_data / a) if (shared_data / a).exists() else a for a in arguments]
    monkeypatch.setattr(sys, "argv", [name, *paths])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out
