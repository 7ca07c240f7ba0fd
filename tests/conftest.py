"""Fixtures that every room's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from headrace.kernels.native import translate

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


@pytest.fixture(scope="session", autouse=True)
def _kernels_are_kept() -> Iterator[None]:
    """Fail where a kernel's code cannot be kept on disk: every process would compile it, for seconds."""
    with_numba = translate.numba_callable

    @wraps(with_numba)
    def refused(function: FunctionType) -> Any:
        raise AssertionError(f"the machine code of {function.__qualname__} cannot be linked")

    translate.numba_callable = refused
    yield
    translate.numba_callable = with_numba


@pytest.fixture
def left_to_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Numba compile what cannot be linked, in a test of just that."""
    monkeypatch.setattr(translate, "numba_callable", translate.numba_callable.__wrapped__)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names that differ between processes: the suite runs in several, which compare theirs."""
    wrong = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if wrong:
        raise pytest.UsageError(f"a test is named by an address in memory: {wrong[0]}; give ids=")
