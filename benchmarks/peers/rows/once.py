"""One contender, once, in this process: how soon the first batch is there, and rows per second from there on.

    python benchmarks/peers/rows/once.py --contender "Polars gather" --folder DATA --seconds 5

Prints JSON. ``first_batch_at`` is on the system's monotonic clock, which whoever started the process
reads too.
With ``--check`` a whole epoch is served, and its sums of ids are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from peers.rows.contenders import CONTENDERS, Contender
from peers.rows.layout import Batches


def paced(batches: Batches, seconds: float) -> dict[str, float]:
    """Serve for some seconds, or to the epoch's end; the first batch is not counted."""
    next(batches)
    first = now = perf_counter()
    rows = 0
    if seconds:
        for batch in batches:
            rows += len(batch["history"])
            now = perf_counter()
            if now - first > seconds:
                break
    return {"first_batch_at": first, "rows": rows, "seconds": now - first}


def checked(batches: Batches) -> dict[str, Any]:
    """Serve a whole epoch; return its rows, and the dtype, the shape and the sum of every column.

    A history counts with its places, so that ids in wrong ones are seen; the first batch's
    users are there to show that the order is not that of the data.
    """
    import torch

    from peers.rows.layout import LENGTH, NAMES

    sums = dict.fromkeys(NAMES, 0.0)
    kinds: dict[str, list[Any]] = {}
    users, rows = None, 0
    places = torch.arange(1, LENGTH + 1)
    for batch in batches:
        assert tuple(batch) == NAMES or set(batch) >= set(NAMES), list(batch)
        users = int(batch["user"].sum()) if users is None else users
        rows += len(batch["price"])
        for name in NAMES:
            values = batch[name] * places if batch[name].ndim == 2 else batch[name]
            sums[name] += float(values.sum(dtype=torch.float64))
            kinds[name] = [str(batch[name].dtype), *batch[name].shape[1:]]
    return {
        "rows": rows,
        "first_users": users,
        "kinds": kinds,
        "sums": {n: round(s, 1) for n, s in sums.items()},
    }


def main() -> None:
    """Run, and leave at once: some contenders leave processes behind that would hold this one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--contender", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--id-dtype", default="int64")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--changes", type=json.loads, default={}, help="settings, as JSON")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--prepare", action="store_true", help="write the format of its own only")
    arguments = parser.parse_args()
    contender = next(one for one in CONTENDERS if one.name == arguments.contender)
    print(json.dumps(run(contender, arguments)), flush=True)
    os._exit(0)


def run(contender: Contender, arguments: argparse.Namespace) -> dict[str, Any]:
    """Do what is asked for."""
    if arguments.prepare:
        contender.prepare(arguments.folder, **arguments.changes)
        return {}
    batches = contender.start(arguments.folder, arguments.id_dtype, **arguments.changes)
    return checked(batches) if arguments.check else paced(batches, arguments.seconds)


if __name__ == "__main__":
    main()
