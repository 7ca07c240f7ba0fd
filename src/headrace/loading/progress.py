"""A progress line on standard error, on request."""

from __future__ import annotations

import time


class Progress:
    """Steps, samples a second and time left of one pass.

    Args:
        title: What is in progress.
        steps: Steps of the pass.
        done: Steps that were delivered before, after a resume.
    """

    def __init__(self, title: str, steps: int, done: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]} samples/s"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._started = time.perf_counter()
        self._samples = 0
        self._task = self._bar.add_task(title, total=steps, completed=done, rate="-")
        self._bar.start()

    def advance(self, samples: int) -> None:
        """Count one batch of so many samples."""
        self._samples += samples
        rate = self._samples / max(time.perf_counter() - self._started, 1e-9)
        self._bar.update(self._task, advance=1, rate=f"{rate:,.0f}")

    def close(self) -> None:
        """Leave the line as it is, and end."""
        self._bar.stop()
