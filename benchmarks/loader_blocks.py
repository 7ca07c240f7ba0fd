"""What the block order saves when the data does not fit in the page cache.

    systemd-run --scope -p MemoryMax=1200M python benchmarks/loader_blocks.py --gigabytes 3

Rows of 512 bytes in one memory-mapped file, served in order, in block order and in a true shuffle.
The file is dropped from the page cache before each; give the process less memory than the file has.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from headrace.loading import Fixed, Loader, Rows
from headrace.order import Block

WIDTH, BATCH = 128, 1024
ROW_BYTES = WIDTH * 4


def write_rows(path: Path, gigabytes: float) -> None:
    """Write noise, block by block; then have the kernel forget it."""
    generator = np.random.default_rng(0)
    block = generator.random((1 << 17, WIDTH), dtype=np.float32)
    with path.open("wb") as file:
        for _ in range(int(gigabytes * (1 << 30) / block.nbytes)):
            file.write(block.data)
        file.flush()
        os.fsync(file.fileno())


def forget(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def measure(path: Path, shuffle: Any, seconds: float) -> dict[str, float]:
    """Serve for some seconds from a cold cache."""
    forget(path)
    values = np.memmap(path, np.float32, mode="r").reshape(-1, WIDTH)
    space = Rows([Fixed("vector", [values])], [len(values)], "noise")
    loader = Loader(space, batch_size=BATCH, shuffle=shuffle, seed=1)
    before, started, rows = faults(), time.perf_counter(), 0
    for batch in loader:
        rows += len(batch["vector"])
        if time.perf_counter() - started > seconds:
            break
    elapsed = time.perf_counter() - started
    quality = Loader(space, batch_size=BATCH, shuffle=shuffle, seed=1).shuffle_quality().score
    return {
        "rows/s": rows / elapsed,
        "MB/s": rows * ROW_BYTES / elapsed / 1e6,
        "faults per 1,000 rows": (faults() - before) / rows * 1000,
        "quality": quality,
        "read share": loader.report().shares["read"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    path = arguments.folder / "headrace-blocks.bin"
    write_rows(path, arguments.gigabytes)
    orders = {"in order": False, "block": Block(), "block, window=8": Block(window=8), "global": "global"}
    measure(path, Block(), 1)  # so that everything is compiled
    try:
        for name, shuffle in orders.items():
            found = measure(path, shuffle, arguments.seconds)
            print(f"{name:<16}", "  ".join(f"{key} {value:,.3f}" for key, value in found.items()), flush=True)
    finally:
        path.unlink()


if __name__ == "__main__":
    main()
