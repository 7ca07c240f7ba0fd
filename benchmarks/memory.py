"""A build in bounded memory: a JSON Lines log with millions of different ids, its peak sampled from outside.

    python benchmarks/memory.py --gigabytes 5 --ids 20000000 --memory 1GiB

Memory is the anonymous memory of all processes of the build together, file maps
excluded, sampled every 20 ms; beside it stands what a build of ten rows takes. The
counts are compared with those that the generator knows.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

SPEC = """
name = "ids"

[source]
files = "ids.jsonl"

[features.user]
kind = "categorical"

[features.seen]
kind = "sequence"
max_length = 20
vocabulary = "item"

[vocabularies.item]
min_count = 2

[labels.click]
kind = "binary"
"""

BUILD = """
import sys
import headrace as hr
splits = hr.build(sys.argv[1], out=sys.argv[2], memory=sys.argv[3], threads=int(sys.argv[4]) or None)
users, items = splits.vocabularies["user"], splits.vocabularies["item"]
print(len(users), len(items), int(users.counts.sum()))
"""
_FIRST_ID = 10_000_000
"""Every id has 8 digits, so that lines are rows of one array of bytes."""
_ITEMS = 20


def write_log(path: Path, size: int, ids: int) -> int:
    """Write about ``size`` bytes of log in which every one of ``ids`` users stands; return the rows.

    A row: ``{"user":10007919,"seen":[10013914,...],"click":0}``, with 20 items, a quarter as many as users.
    """
    random = np.random.default_rng(0)
    rows, written = 0, 0
    with path.open("wb") as file:
        while written < size or rows < ids:
            numbers = np.arange(rows, rows + 50_000)
            users = np.where(numbers < ids, numbers * 7919 % ids, random.integers(0, ids, len(numbers)))
            items = random.integers(0, max(ids // 4, 1), (len(numbers), _ITEMS))
            text = _lines(users, items, random.integers(0, 2, len(numbers)))
            file.write(text)
            rows, written = rows + len(numbers), written + len(text)
    return rows


def _lines(users: np.ndarray, items: np.ndarray, clicks: np.ndarray) -> bytes:
    """Return one JSON line for each user."""
    columns = [_digits(users + _FIRST_ID, 8)]
    columns += [_digits(items[:, place] + _FIRST_ID, 8) for place in range(items.shape[1])]
    columns += [_digits(clicks, 1), np.empty((len(users), 0), np.uint8)]
    between = ['{"user":', ',"seen":[', *[","] * (items.shape[1] - 1), '],"click":', "}\n"]
    pieces = []
    for text, column in zip(between, columns, strict=True):
        literal = np.frombuffer(text.encode(), np.uint8)
        pieces += [np.broadcast_to(literal, (len(users), len(literal))), column]
    return np.concatenate(pieces, axis=1).tobytes()


def _digits(numbers: np.ndarray, width: int) -> np.ndarray:
    """Return the decimal digits of numbers as text, uint8 [n, width]."""
    powers = 10 ** np.arange(width - 1, -1, -1)
    return (numbers[:, None] // powers % 10 + ord("0")).astype(np.uint8)


def peak_of(command: list[str]) -> tuple[int, str]:
    """Run a command; return the most bytes of anonymous memory that it had at once, and what it printed.

    Raises:
        subprocess.CalledProcessError: The command failed.
    """
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, anonymous(process.pid))
            time.sleep(0.02)
        assert process.stdout is not None
        printed = process.stdout.read()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, printed)
    return peak, printed


def build_command(spec: Path, out: Path, memory: str, threads: int = 0) -> list[str]:
    """Return the command that builds a store and prints its users, items and counted rows; 0: all threads."""
    return [sys.executable, "-c", BUILD, str(spec), str(out), memory, str(threads)]


def anonymous(process: int) -> int:
    """Return the bytes of anonymous memory of a process and its children."""
    total = 0
    for one in _tree(process):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Anonymous:"))
    return total


def _tree(process: int) -> Iterator[int]:
    yield process
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from _tree(int(child))


def base_of(folder: Path, memory: str, threads: int = 0) -> int:
    """Return the peak of a build of ten rows: what Python, the libraries and the compiled code take."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "ids.toml").write_text(SPEC)
    row = '{"user":1,"seen":[2,3],"click":0}\n'
    (folder / "ids.jsonl").write_text(10 * row)
    return peak_of(build_command(folder / "ids.toml", folder / "store", memory, threads))[0]


def main() -> None:
    """Generate, build, and print the peak."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--ids", type=int, default=20_000_000)
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "work" / "memory")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "ids.toml").write_text(SPEC)
    base = base_of(arguments.out / "base", arguments.memory)
    rows = write_log(arguments.out / "ids.jsonl", int(arguments.gigabytes * 1e9), arguments.ids)
    shutil.rmtree(arguments.out / "store", ignore_errors=True)
    began = time.time()
    peak, printed = peak_of(
        build_command(arguments.out / "ids.toml", arguments.out / "store", arguments.memory)
    )
    users, items, counted = map(int, printed.split())
    seconds = time.time() - began
    print(f"{rows:,} rows, {arguments.ids:,} ids: {seconds:.1f} s, {rows / seconds:,.0f} rows/s")
    print(
        f"peak of anonymous memory {peak / 2**20:,.0f} MiB under --memory {arguments.memory}, "
        f"{(peak - base) / 2**20:,.0f} MiB more than a build of ten rows takes"
    )
    print(f"users {users:,} (PAD, UNKNOWN, MISSING and {arguments.ids:,} expected), items {items:,}")
    assert users == arguments.ids + 3
    assert counted == rows


if __name__ == "__main__":
    main()
