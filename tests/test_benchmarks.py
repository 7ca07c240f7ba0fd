"""``make bench`` knows every benchmark, and each understands the arguments that it is given."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


def loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import one file of the benchmarks, with its neighbours in reach."""
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_every_benchmark_is_run_by_make_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    every = loaded("all", monkeypatch)
    scripts = {path.stem for path in FOLDER.glob("*.py")} - every.HELPERS
    assert {benchmark.script for benchmark in every.BENCHMARKS} == scripts


@pytest.mark.parametrize("script", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_every_benchmark_is_described_on_the_page(script: str) -> None:
    assert f"`{script}.py`" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_quick_arguments_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    for benchmark in loaded("all", monkeypatch).BENCHMARKS:
        text = (FOLDER / f"{benchmark.script}.py").read_text(encoding="utf-8")
        options = {word for word in f"{benchmark.whole} {benchmark.quick}".split() if word.startswith("--")}
        assert {option for option in options if f'"{option}"' not in text} == set(), benchmark.script
