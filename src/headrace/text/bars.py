"""A line that says how far tokenizing is, on standard error where that is a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Advance = Callable[[int, int], None]
"""Takes how many documents and tokens have come."""


@contextlib.contextmanager
def counting(what: str) -> Iterator[Advance]:
    """Show documents and tokens as they come; nothing where standard error is no terminal.

    Args:
        what: What is done, at the head of the line.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda documents, tokens: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as line:
        task = line.add_task(what, total=None)
        found = [0, 0]

        def advance(documents: int, tokens: int) -> None:
            found[0] += documents
            found[1] += tokens
            line.update(task, description=f"{what}  {found[0]:,} documents  {found[1]:,} tokens")

        yield advance
