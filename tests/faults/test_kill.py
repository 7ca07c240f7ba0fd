"""Builds and encodings that are killed at any instant, as real processes, and then run again."""

from __future__ import annotations

import os
import random  # noqa: TID251 - draws test data
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import StoreError

SEED = 20_250_601
INSTANTS = 30


def finished_shards(out: Path) -> dict[str, tuple[int, int]]:
    """Inode and modification time of every shard that appeared, staged or in its place, by its name."""
    found = {}
    for folder in (out, out / ".build" / "store"):
        for path in [*folder.glob("*/[0-9]*.arrow")]:
            status = path.stat()
            found[f"{path.parent.name}/{path.name}"] = (status.st_ino, status.st_mtime_ns)
    return found


def finished_parts(out: Path) -> dict[str, tuple[int, int]]:
    """The same for the files of every parsed part."""
    parsed = out / ".build" / "parsed"
    paths = [path for path in parsed.glob("*/[0-9]*/*") if not path.parent.name.endswith(".tmp")]
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


@pytest.fixture(scope="session")
def holds(bytes_of: Callable[..., Any], forks: Any) -> Callable[..., int]:
    """Holds what must be true of ``out`` after a kill and ``again``; returns how many shards were kept."""

    def holds(out: Path, again: tuple[Any, ...], expected: dict[str, bytes], *, opens: bool = False) -> int:
        if (out / "headrace.json").exists():
            assert opens or bytes_of(out) == expected
        else:
            with pytest.raises(StoreError, match=r"no such folder|whose build has not ended"):
                hr.load_from_disk(out)
        shards, parts = finished_shards(out) if not opens else {}, finished_parts(out)
        assert forks.do(*again) == ""
        assert bytes_of(out) == expected
        assert not [*out.rglob("*.tmp"), *out.rglob("spool-*")]
        after = finished_shards(out)
        assert {name: after[name] for name in shards} == shards
        assert finished_parts(out).items() >= parts.items()
        assert not (out / ".build" / "store").exists()
        return len(shards)

    return holds


def test_a_build_killed_at_30_instants_is_finished_by_the_next_run(
    forks: Any, job: Any, store: Path, bytes_of: Any, holds: Any, tmp_path: Path
) -> None:
    """Instants of the clock, wherever they fall; a build that was over by then is tried again."""
    started = time.monotonic()
    forks.do("build", job.spec, tmp_path / "measured")
    latest = time.monotonic() - started
    expected, draw, killed = bytes_of(store), random.Random(SEED), 0
    assert bytes_of(tmp_path / "measured") == expected
    while killed < INSTANTS:
        out = tmp_path / str(killed)
        process = forks.start("build", job.spec, out)
        time.sleep(latest * (killed + draw.random()) / INSTANTS)
        os.kill(process, signal.SIGKILL)
        if forks.wait(process) == "killed by 9":
            holds(out, ("build", job.spec, out), expected)
            killed += 1
        else:
            latest *= 0.9
            shutil.rmtree(out)


@pytest.mark.parametrize("place", range(12))
def test_a_build_killed_at_a_step_on_the_file_system(
    forks: Any, job: Any, store: Path, bytes_of: Any, holds: Any, tmp_path: Path, steps: int, place: int
) -> None:
    """Files appear, move and go one by one: a kill between any two leaves what the next run can use.

    The first shard is whole after a third of the steps, so that kills in the second half find some to keep.
    """
    step = 1 + (place * steps + random.Random(SEED + place).randrange(steps)) // 12
    out = tmp_path / "store"
    assert forks.do("killed", step, "build", job.spec, out) == "killed by 9"
    kept = holds(out, ("build", job.spec, out), bytes_of(store))
    assert kept > 0 or place < 6


def test_a_build_that_is_killed_again_and_again_comes_to_its_end(
    forks: Any, job: Any, store: Path, bytes_of: Any, holds: Any, tmp_path: Path
) -> None:
    """Each run is given a little more time: what one finished, the next one has."""
    out = tmp_path / "store"
    for step in range(60, 2_000, 60):
        if forks.do("killed", step, "build", job.spec, out) != "killed by 9":
            break
    holds(out, ("build", job.spec, out), bytes_of(store))
    assert 120 < step < 2_000 - 60


@pytest.mark.parametrize("place", range(10))
def test_a_killed_rebuild_leaves_the_old_store_or_none(
    forks: Any, job: Any, store: Path, bytes_of: Any, holds: Any, tmp_path: Path, steps: int, place: int
) -> None:
    """What opens is the old store or the new one, whole: never files of both."""
    old = tmp_path / "old.json"
    old.write_text(job.spec.read_text().replace('"max_length": 4', '"max_length": 2'))
    out = tmp_path / "store"
    assert forks.do("build", old, out) == ""
    before, after = bytes_of(out), bytes_of(store)
    assert forks.do("killed", 1 + steps * (2 * place + 1) // 20, "build", job.spec, out) in (
        "killed by 9",
        "",
    )
    if (out / "headrace.json").exists():
        assert bytes_of(out) in (before, after)
        assert hr.verify(out) == []
    holds(out, ("build", job.spec, out), after, opens=True)


def test_an_encoding_that_is_killed_is_finished_by_the_next_run(
    forks: Any, job: Any, store: Path, bytes_of: Any, holds: Any, tmp_path: Path
) -> None:
    def encode(out: Path) -> tuple[Any, ...]:
        return "encode", store, [str(path) for path in job.files], out

    steps = int(forks.do("steps", *encode(tmp_path / "whole")))
    expected, draw, kept = bytes_of(tmp_path / "whole"), random.Random(SEED), 0
    assert len([name for name in expected if name.startswith("data/")]) >= 4
    for place in range(12):
        out = tmp_path / str(place)
        step = 1 + (place * steps + draw.randrange(steps)) // 12
        assert forks.do("killed", step, *encode(out)) == "killed by 9"
        kept += holds(out, encode(out), expected)
    assert kept > 0
