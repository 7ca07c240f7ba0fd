"""Fixtures that every room's tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the repository."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the real data folder {SHARED_DATA} is not on this machine")
    return SHARED_DATA


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The files that travel with the repository."""
    return REPOSITORY / "tests" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names that differ between processes: the suite runs in several, which compare theirs."""
    wrong = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if wrong:
        raise pytest.UsageError(f"a test is named by an address in memory: {wrong[0]}; give ids=")
