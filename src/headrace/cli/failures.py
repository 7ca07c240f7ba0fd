"""A user's mistake ends in a message and an exit code, never in a traceback."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer

from headrace.errors import HeadraceError, did_you_mean

AT_FAULT = 1
"""The data or the store is at fault."""
INTERRUPTED = 130
"""Ctrl-C, as shells have it: 128 and the number of the signal."""


@contextmanager
def failures(kept: str) -> Iterator[None]:
    """Turn what a command raises into a message on standard error and an exit code.

    Args:
        kept: What an interrupted command leaves behind, and what to do next.
    """
    try:
        yield
    except HeadraceError as error:
        _fail(str(error))
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        _fail(_system_text(error))
    except KeyboardInterrupt:
        print(f"\nInterrupted. {kept}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def _fail(message: str) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    raise typer.Exit(AT_FAULT) from None


def _system_text(error: OSError) -> str:
    """Return what the system refused, and what to do where that is known."""
    where = f"{error.filename}: " if error.filename else ""
    advice = {
        errno.ENOSPC: " Free some space and run the same command again: what is finished is kept.",
        errno.EACCES: " Change the permissions, or choose another folder.",
        errno.EROFS: " Choose a folder that can be written.",
    }.get(error.errno or 0, "")
    return f"{where}{error.strerror or error}.{advice}"


def existing(path: Path, what: str) -> Path:
    """Return a path that an argument names.

    Args:
        path: The argument.
        what: What it should be, for the message: ``"spec file"``.

    Raises:
        typer.BadParameter: There is nothing there; the message has the nearest name.
    """
    try:
        if path.exists():
            return path
        beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{path}: cannot be read: {error}.") from None
    raise typer.BadParameter(f"{path}: there is no such {what}.{did_you_mean(path.name, beside)}")
