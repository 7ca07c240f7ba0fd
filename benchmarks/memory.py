"""A build in bounded memory: a JSON Lines log with millions of different ids, its peak sampled from outside.

    python benchmarks/memory.py --gigabytes 5 --ids 20000000 --memory 1GiB

Memory is the anonymous memory of all processes of the build together, file maps
excluded, sampled every 20 ms. The counts are compared with those that the
generator knows.
"""

from __future__ import annotations

import argparse
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
splits = hr.build(sys.argv[1], out=sys.argv[2], memory=sys.argv[3])
users, items = splits.vocabularies["user"], splits.vocabularies["item"]
print(len(users), len(items), int(users.counts.sum()))
"""


def write_log(path: Path, size: int, ids: int) -> int:
    """Write about ``size`` bytes of log in which every one of ``ids`` users stands; return the rows."""
    random = np.random.default_rng(0)
    rows, written = 0, 0
    with path.open("w") as file:
        while written < size or rows < ids:
            count = 20_000
            users = np.where(
                np.arange(rows, rows + count) < ids,
                (np.arange(rows, rows + count) * 7919) % ids,
                random.integers(0, ids, count),
            )
            seen = random.integers(0, ids // 4, (count, 20))
            lines = [
                f'{{"user":{user},"seen":{items},"click":{click}}}\n'
                for user, items, click in zip(
                    users.tolist(), seen.tolist(), random.integers(0, 2, count).tolist(), strict=True
                )
            ]
            text = "".join(lines)
            file.write(text)
            rows, written = rows + count, written + len(text)
    return rows


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
    rows = write_log(arguments.out / "ids.jsonl", int(arguments.gigabytes * 1e9), arguments.ids)
    subprocess.run(["rm", "-rf", str(arguments.out / "store")], check=True)
    began = time.time()
    command = [sys.executable, "-c", BUILD, str(arguments.out / "ids.toml"), str(arguments.out / "store")]
    process = subprocess.Popen([*command, arguments.memory], stdout=subprocess.PIPE, text=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, anonymous(process.pid))
        time.sleep(0.02)
    users, items, counted = map(int, process.stdout.read().split())  # type: ignore[union-attr]
    seconds = time.time() - began
    print(f"{rows:,} rows, {arguments.ids:,} ids: {seconds:.1f} s, {rows / seconds:,.0f} rows/s")
    print(f"peak of anonymous memory {peak / 2**20:,.0f} MiB under --memory {arguments.memory}")
    print(f"users {users:,} (PAD, UNKNOWN, MISSING and {arguments.ids:,} expected), items {items:,}")
    assert users == arguments.ids + 3
    assert counted == rows


if __name__ == "__main__":
    main()
