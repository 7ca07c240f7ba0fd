"""From the start of a process to its first batch, imports included: headrace and the loaders that people use.

    python benchmarks/loader_start.py --rows 2000000 --runs 7

Every run is a fresh process over data in the page cache; compiled kernels are in Numba's cache but for the
first run of headrace, which is not counted. Medians of ``--runs``, in turn.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

import measure
from peers.rows.commands import command, prepare
from peers.rows.contenders import CONTENDERS
from peers.rows.layout import write_data

WORK = Path(__file__).resolve().parent / "work"


def starts(folder: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the times of every contender, s."""
    chosen = [one for one in CONTENDERS if one.installed() and one.makes_batches]
    chosen = [one for one in chosen if one is chosen[0] or arguments.match in one.name]
    for contender in chosen:
        prepare(contender, folder)
    commands = {one.name: command(one, folder) for one in chosen}
    measure.run_in_turn(commands, 1)
    rows = []
    for name, runs in measure.run_in_turn(commands, arguments.runs).items():
        times = [run.result["first_batch_at"] - run.began for run in runs]
        rows.append(
            {
                "contender": name,
                "first batch": statistics.median(times),
                "least": min(times),
                "most": max(times),
            }
        )
    return rows


def main() -> None:
    """Measure, and print, the quickest first."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--match", default="", help="only headrace and contenders whose name contains this")
    parser.add_argument("--folder", type=Path, help="where the data is, or goes; default: benchmarks/work")
    parser.add_argument("--json", type=Path, default=WORK / "loader_start.json")
    arguments = parser.parse_args()
    folder = arguments.folder or WORK / f"rows-{arguments.rows}"
    write_data(folder, arguments.rows)
    rows = sorted(starts(folder, arguments), key=lambda row: row["first batch"])
    print("| from process start | first batch s (least, most) |\n| --- | ---: |")
    for row in rows:
        print(f"| {row['contender']} | {row['first batch']:.2f} ({row['least']:.2f}, {row['most']:.2f}) |")
    measure.write_json(arguments.json, {"machine": measure.machine(), "starts": rows})


if __name__ == "__main__":
    main()
