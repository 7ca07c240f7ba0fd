"""How the contenders are run: each in a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import measure
from peers.rows.contenders import Contender, complete

ONCE = Path(__file__).with_name("once.py")


def command(
    contender: Contender,
    folder: Path,
    id_dtype: str = "int64",
    *,
    seconds: float = 0,
    changes: Mapping[str, Any] | None = None,
    flag: str | None = None,
) -> list[str]:
    """Return the command that runs a contender once; ``flag`` is ``"--check"`` or ``"--prepare"``."""
    what = ["--contender", contender.name, "--folder", str(folder), "--id-dtype", id_dtype]
    how = ["--seconds", str(seconds), "--changes", json.dumps(dict(changes or {}))]
    return [sys.executable, "-W", "ignore", str(ONCE), *what, *how, *([flag] if flag else [])]


def prepare(contender: Contender, folder: Path, changes: Mapping[str, Any] | None = None) -> None:
    """Write the format of its own, where it has one that is not there yet."""
    target = contender.own_format(folder, **(changes or {}))
    if target is not None and not complete(target).exists():
        measure.run_once(command(contender, folder, changes=changes, flag="--prepare"))


def checks(contender: Contender, folder: Path, id_dtype: str) -> dict[str, Any]:
    """Return rows, dtypes, shapes and sums of one whole epoch."""
    prepare(contender, folder)
    return dict(measure.run_once(command(contender, folder, id_dtype, flag="--check")).result)
