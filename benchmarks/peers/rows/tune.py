"""Tries the settings of the row loaders, and says which are the fastest on this machine.

    python benchmarks/peers/rows/tune.py --folder DATA --seconds 3 --match Grain

The first line of each contender is what the benchmark uses; the others are changes of it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import measure
from peers.rows.commands import command, prepare
from peers.rows.contenders import CONTENDERS, Contender
from peers.rows.layout import write_data


def try_settings(contender: Contender, folder: Path, arguments: argparse.Namespace) -> None:
    """Run every setting in turn; print the median pace of each."""
    commands = {}
    for changes in ({}, *contender.tried):
        prepare(contender, folder, changes)
        name = json.dumps(contender.settings | changes)
        commands[name] = command(
            contender, folder, arguments.id_dtype, seconds=arguments.seconds, changes=changes
        )
    done = measure.run_in_turn(commands, arguments.runs)
    for name, runs in done.items():
        paces = [run.result["rows"] / max(run.seconds, 1e-9) for run in runs]
        print(f"{contender.name:<50}{statistics.median(paces):>12,.0f} rows/s   {name}", flush=True)


def main() -> None:
    """Try them all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--match", default="", help="only contenders whose name contains this")
    parser.add_argument("--id-dtype", default="int64")
    parser.add_argument("--folder", type=Path, help="where the data is, or goes")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(__file__).resolve().parents[2] / "work" / f"rows-{arguments.rows}"
    write_data(folder, arguments.rows)
    for contender in CONTENDERS:
        if contender.installed() and arguments.match in contender.name:
            try_settings(contender, folder, arguments)


if __name__ == "__main__":
    main()
