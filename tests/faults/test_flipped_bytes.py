"""A flipped byte anywhere in a store: ``verify`` names the file, and no use of it crashes the process."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FLIPS_AT_ONCE = 12


@pytest.fixture(scope="module")
def copy(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the store, to be damaged and mended."""
    folder = tmp_path_factory.mktemp("flipped") / "store"
    shutil.copytree(store, folder, ignore=shutil.ignore_patterns(".build"))
    return folder


@pytest.fixture(scope="module")
def names(copy: Path) -> list[str]:
    return sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file())


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_byte(forks: Any, job: Any, copy: Path, names: list[str], store: Path, data: Any) -> None:
    flip = st.tuples(st.sampled_from(names), st.integers(0, 1 << 20), st.integers(1, 255))
    flips = data.draw(st.lists(flip, min_size=FLIPS_AT_ONCE, max_size=FLIPS_AT_ONCE))
    note = copy.parent / "note"
    raised = forks.do("flips", copy, job.files[0], flips, note)
    if raised.startswith("killed"):
        name = flips[0][0]
        shutil.rmtree(copy)
        shutil.copytree(store, copy, ignore=shutil.ignore_patterns(".build"))
        raised += f" at {note.read_text()}, {name}"
    assert raised == ""
