"""JAX output, in a process of its own: it warns whoever forks after it was imported."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed")
def test_jax() -> None:
    cases = Path(__file__).with_name("jax_cases.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(cases)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "11 passed" in finished.stdout
