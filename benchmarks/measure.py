"""Runs contenders side by side, each in a process of its own, in turn: A B C, A B C, ...

A contender is a command that prints a JSON object as its last line; ``seconds`` in it is the time of
the job alone, without the imports before it. Beside it stand what the system saw: the wall time and the
processor time of the whole process with its children, and the most memory at one instant.

    anonymous   memory of the process and its children that is not a map of a file, summed, sampled
    resident    the largest process' resident set, maps of files included, as the system keeps it

Ratios are to the first contender, of medians.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

_SAMPLE_EVERY = 0.05


@dataclass(frozen=True)
class Run:
    """One run of one contender."""

    seconds: float
    """The job alone, s."""
    wall: float
    """The whole process, s."""
    cpu: float
    """User and system time of the process and of the children that it waited for, s."""
    anonymous: int
    """Bytes; 0 where the system does not tell."""
    resident: int
    """Bytes."""
    began: float
    """When it was started, s on the system's monotonic clock, which the contender can read too."""
    result: Mapping[str, Any] = field(default_factory=dict)
    """What the contender printed."""


class FailedError(Exception):
    """A contender ended with an error, or took too long."""


def run_once(command: Sequence[str], *, timeout: float = 900.0) -> Run:
    """Run one command to its end and measure it.

    Raises:
        FailedError: It returned an error, printed no result, or took longer than ``timeout`` seconds.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        begin = perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors, start_new_session=True)
        stopper = threading.Timer(timeout, _stop, [process.pid])
        stopper.start()
        memory = _MemorySampler(process.pid)
        signal.signal(signal.SIGTERM, _interrupted)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            wall = perf_counter() - begin
            stopper.cancel()
            anonymous = memory.stop()
            _stop(process.pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise FailedError(_last_line(errors) or f"returned {process.returncode}")
        result = json.loads(_last_line(output))
    unit = 1 if platform.system() == "Darwin" else 1024
    cpu = usage.ru_utime + usage.ru_stime
    return Run(result.get("seconds", wall), wall, cpu, anonymous, usage.ru_maxrss * unit, begin, result)


def _stop(pid: int) -> None:
    """Stop a command, with the processes of its session; some leave workers behind when they end."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _interrupted(number: int, frame: Any) -> None:
    """End as an error does, so that no command is left running."""
    raise SystemExit(128 + number)


def _last_line(file: Any) -> str:
    file.seek(0)
    lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


class _MemorySampler:
    """Watches the anonymous memory of a process and its children until it is stopped."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(_SAMPLE_EVERY):
            self._peak = max(self._peak, sum(map(_anonymous, _family(self._pid))))

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return self._peak


def _family(pid: int) -> list[int]:
    """Return a process and all below it."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in _read(children).split()]
    return found


def _anonymous(pid: int) -> int:
    for line in _read(Path(f"/proc/{pid}/status")).splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def _read(path: Path) -> str:
    """Return a file of /proc; nothing when its process has just ended."""
    try:
        return path.read_text()
    except OSError:
        return ""


def run_in_turn(
    commands: Mapping[str, Sequence[str]], runs: int, *, timeout: float = 900.0
) -> dict[str, list[Run]]:
    """Run every command ``runs`` times, in turn; one that fails is left out from then on, and said so."""
    done: dict[str, list[Run]] = {name: [] for name in commands}
    for number in range(runs):
        for name in list(done):
            _note(f"run {number + 1} of {runs}: {name}")
            try:
                done[name].append(run_once(commands[name], timeout=timeout))
            except FailedError as error:
                _note(f"{name} is left out: {error}\n")
                del done[name]
    _note("")
    return done


def _note(text: str) -> None:
    ending = "" if sys.stderr.isatty() and not text.endswith("\n") else "\n"
    if text or not ending:
        print(f"\r\033[K{text}" if not ending else text.rstrip("\n"), end=ending, file=sys.stderr, flush=True)


def medians(runs: Sequence[Run]) -> dict[str, float]:
    """Return the median of every figure, and the fastest and slowest job."""
    figures = {
        name: statistics.median(getattr(run, name) for run in runs)
        for name in ("seconds", "wall", "cpu", "anonymous", "resident")
    }
    return figures | {
        "fastest": min(run.seconds for run in runs),
        "slowest": max(run.seconds for run in runs),
    }


def compare(
    done: Mapping[str, Sequence[Run]], amounts: Mapping[str, float], unit: str
) -> list[dict[str, Any]]:
    """Return one row a contender: medians, pace, and the ratio of the first one's pace to its.

    Args:
        done: The runs of each contender, ours first.
        amounts: How much each contender did, in ``unit``: the pace is this by the seconds.
        unit: Such as ``"rows"``.
    """
    rows: list[dict[str, Any]] = []
    for name, runs in done.items():
        figures = medians(runs)
        pace = amounts[name] / figures["seconds"]
        ratio = rows[0][f"{unit}/s"] / pace if rows else 1.0
        rows.append({"contender": name, unit: amounts[name], f"{unit}/s": pace, "ratio": ratio, **figures})
    return rows


def table(rows: Sequence[Mapping[str, Any]], unit: str, *, first: str = "headrace is") -> str:
    """Write rows of ``compare`` as a Markdown table; ``first`` heads the ratio of the first row to each."""
    head = (
        "",
        unit,
        f"{unit}/s",
        first,
        "job s (least, most)",
        "process s",
        "CPU s",
        "anonymous",
        "resident",
    )
    lines = [" | ".join(head), " | ".join(["---", *["---:"] * (len(head) - 1)])]
    for row in rows:
        cells = (
            row["contender"],
            f"{row[unit]:,.0f}",
            f"{row[f'{unit}/s']:,.0f}",
            f"{row['ratio']:.2f} x",
            f"{row['seconds']:.2f} ({row['fastest']:.2f}, {row['slowest']:.2f})",
            f"{row['wall']:.2f}",
            f"{row['cpu']:.2f}",
            f"{row['anonymous'] / 1e6:,.0f} MB",
            f"{row['resident'] / 1e6:,.0f} MB",
        )
        lines.append(" | ".join(cells))
    return "\n".join(f"| {line} |" for line in lines)


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    import importlib.metadata as metadata

    names = (
        "headrace",
        "numpy",
        "pyarrow",
        "numba",
        "polars",
        "duckdb",
        "datasets",
        "pandas",
        "scikit-learn",
        "torch",
        "torchdata",
        "spdl",
        "grain",
        "litdata",
        "mosaicml-streaming",
        "webdataset",
    )
    return {
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in names if _installed(name)},
    }


def _installed(name: str) -> bool:
    import importlib.metadata as metadata

    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def write_json(path: Path, content: Any) -> None:
    """Write results where they can be read again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")
