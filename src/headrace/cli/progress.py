"""Progress bars on standard error, where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[str, float], None]


@contextmanager
def bars(*, quiet: bool) -> Iterator[Progress]:
    """Yield what a build reports its stages to; one bar a stage, or nothing without a terminal.

    Args:
        quiet: Show nothing, as with ``--json``.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda stage, share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as shown:
        yield _Stages(shown)


class _Stages:
    """Adds a bar when a stage is first heard of."""

    def __init__(self, shown: Any) -> None:
        self._shown = shown
        self._tasks: dict[str, Any] = {}

    def __call__(self, stage: str, share: float) -> None:
        if stage not in self._tasks:
            for task in self._tasks.values():
                self._shown.update(task, completed=1.0)
            self._tasks[stage] = self._shown.add_task(stage, total=1.0)
        self._shown.update(self._tasks[stage], completed=share)
