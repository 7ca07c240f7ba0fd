"""Warnings of a command: each on standard error as it comes, and all of them in ``--json``."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

import typer


def warn(line: str) -> None:
    """Print a warning."""
    typer.echo(f"warning: {line}", err=True)


@contextlib.contextmanager
def warned(*, quiet: bool) -> Iterator[list[str]]:
    """Yield a list that takes the warnings of the library while the block runs.

    Args:
        quiet: Only keep them; otherwise they are printed too.
    """
    lines: list[str] = []

    def keep(message: Warning | str, *_: object, **__: object) -> None:
        lines.append(str(message))
        if not quiet:
            warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = keep
        yield lines
