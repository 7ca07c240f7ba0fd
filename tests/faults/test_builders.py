"""Two builders of one store, as real processes: one builds, the other is told so."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import headrace as hr


@pytest.fixture
def first(forks: Any, job: Any, steps: int, tmp_path: Path) -> int:
    """A build that is stopped in the middle, so that it surely holds the lock."""
    first: int = forks.start("stopped", steps // 2, "build", job.spec, tmp_path / "store")
    end = time.monotonic() + 200
    while psutil.Process(first).status() != psutil.STATUS_STOPPED:
        assert time.monotonic() < end
        time.sleep(0.005)
    return first


def test_the_second_builder_is_told(
    forks: Any, headrace: Any, job: Any, store: Path, bytes_of: Any, first: int, tmp_path: Path
) -> None:
    out = tmp_path / "store"
    second = headrace("build", job.toml, "--out", out)
    third = forks.do("encode", store, [str(job.files[0])], out)
    os.kill(first, signal.SIGCONT)
    assert forks.wait(first) == ""
    assert second.code == 1
    assert second.err.startswith(f"error: {out} is being written by another process (lock file ")
    assert "Wait for it to end, or choose another --out." in second.err
    assert third.startswith(f"BuildError: {out} is being written by another process")
    assert bytes_of(out) == bytes_of(store)


def test_a_killed_builder_holds_no_lock(
    forks: Any, job: Any, store: Path, bytes_of: Any, first: int, tmp_path: Path
) -> None:
    os.kill(first, signal.SIGKILL)
    assert forks.wait(first) == "killed by 9"
    assert forks.do("build", job.spec, tmp_path / "store") == ""
    assert bytes_of(tmp_path / "store") == bytes_of(store)


@pytest.mark.parametrize("count", [6])
def test_many_builders_at_once(
    forks: Any, job: Any, store: Path, bytes_of: Any, tmp_path: Path, count: int
) -> None:
    """At least one succeeds; the others are told; what stands there is one build's."""
    out = tmp_path / "store"
    raised = [forks.wait(one) for one in [forks.start("build", job.spec, out) for _ in range(count)]]
    assert "" in raised
    assert all(one == "" or "is being written by another process" in one for one in raised)
    assert bytes_of(out) == bytes_of(store)
    assert hr.verify(out) == []
