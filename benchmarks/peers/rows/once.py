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
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from peers.rows.contenders import CONTENDERS, Contender
from peers.rows.layout import Batches

LONGEST = 4
"""No further epoch is begun after so many times the seconds that are asked for."""


def paced(start: Callable[[], Batches], seconds: float) -> dict[str, float]:
    """Serve for some seconds, of several epochs where one is over sooner.

    Rows are counted from each epoch's first batch on, so that neither imports nor the start of workers count.
    """
    batches = start()
    next(batches)
    first = perf_counter()
    rows, passed = _serve(batches, seconds)
    while passed < seconds and perf_counter() - first < LONGEST * seconds:
        batches = start()
        next(batches)
        more, longer = _serve(batches, seconds - passed)
        rows, passed = rows + more, passed + longer
    return {"first_batch_at": first, "rows": rows, "seconds": passed}


def _serve(batches: Batches, seconds: float) -> tuple[int, float]:
    """Return rows and seconds, to the epoch's end or until the time is over."""
    begin = now = perf_counter()
    rows = 0
    for batch in batches if seconds else ():
        rows += len(batch["history"])
        now = perf_counter()
        if now - begin > seconds:
            break
    return rows, now - begin


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
    start = partial(contender.start, arguments.folder, arguments.id_dtype, **arguments.changes)
    return checked(start()) if arguments.check else paced(start, arguments.seconds)


if __name__ == "__main__":
    main()
