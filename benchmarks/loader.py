"""Shuffled minibatches of encoded rows: headrace and everything else that people use, side by side.

    python benchmarks/loader.py --rows 2000000 --seconds 5 --runs 3

``peers/rows/layout.py`` says what the data and a batch are: six scalars, a number and a history of up to 50
that is left-padded with its mask; batches of 4,096 as torch tensors. Contenders run in turn, each in a
process of its own, for ``--seconds`` of one epoch or more; rows per second are counted from the first batch
of each on. Before that each serves one whole epoch of a small data set, and its sums of ids must be
headrace's. What is not installed is left out.

The share of the machine's limit is of what ``peers/rows/machine.py`` copies: random rows of as many bytes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import measure
from peers.rows.commands import checks, command, prepare
from peers.rows.contenders import BOTH, CONTENDERS, Contender
from peers.rows.layout import write_data

WORK = Path(__file__).resolve().parent / "work"
CHECKED_ROWS = 20_000


def agreeing(contenders: Sequence[Contender], id_dtype: str) -> list[Contender]:
    """Return who serves the batches that the first one serves; say who does not, and what differs."""
    folder = WORK / f"rows-{CHECKED_ROWS}"
    write_data(folder, CHECKED_ROWS)
    wanted = checks(contenders[0], folder, id_dtype)
    return [one for one in contenders if not one.makes_batches or _agrees(one, folder, id_dtype, wanted)]


def _agrees(contender: Contender, folder: Path, id_dtype: str, wanted: dict[str, Any]) -> bool:
    try:
        found = checks(contender, folder, id_dtype)
    except measure.FailedError as error:
        print(f"{contender.name} fails: {error}", file=sys.stderr)
        return False
    other = {key: found[key] for key in ("rows", "kinds", "sums") if found[key] != wanted[key]}
    if other:
        print(f"{contender.name} serves other batches: {other}", file=sys.stderr)
    return not other


def compare(folder: Path, id_dtype: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Run all that are installed and chosen; return a row for each."""
    chosen = [one for one in CONTENDERS if one.installed() and id_dtype in one.id_dtypes]
    chosen = [one for one in chosen if one is chosen[0] or any(map(one.name.__contains__, arguments.match))]
    chosen = chosen if arguments.unchecked else agreeing(chosen, id_dtype)
    for contender in chosen:
        prepare(contender, folder)
    commands = {one.name: command(one, folder, id_dtype, seconds=arguments.seconds) for one in chosen}
    return [_row(name, runs) for name, runs in measure.run_in_turn(commands, arguments.runs).items()]


def _row(name: str, runs: Sequence[measure.Run]) -> dict[str, Any]:
    paces = [run.result["rows"] / max(run.seconds, 1e-9) for run in runs]
    return {
        "contender": name,
        "rows/s": statistics.median(paces),
        "least": min(paces),
        "most": max(paces),
        "first batch": statistics.median(run.result["first_batch_at"] - run.began for run in runs),
        "anonymous": statistics.median(run.anonymous for run in runs),
    }


def table(rows: Sequence[dict[str, Any]], id_dtype: str) -> str:
    """Write the rows as a Markdown table."""
    head = (id_dtype, "rows/s (least, most)", "headrace is", "first batch s", "memory")
    lines = [" | ".join(head), " | ".join(["---", *["---:"] * (len(head) - 1)])]
    for row in rows:
        cells = (
            row["contender"],
            f"{row['rows/s']:,.0f} ({row['least']:,.0f}, {row['most']:,.0f})",
            f"{rows[0]['rows/s'] / row['rows/s']:.2f} x",
            f"{row['first batch']:.2f}",
            f"{row['anonymous'] / 1e6:,.0f} MB",
        )
        lines.append(" | ".join(cells))
    return "\n".join(f"| {line} |" for line in lines)


def main() -> None:
    """Compare, for each dtype of the ids."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--id-dtypes", nargs="+", choices=BOTH, default=list(BOTH))
    parser.add_argument(
        "--match",
        nargs="+",
        default=[""],
        help="only headrace and contenders whose name contains one of these",
    )
    parser.add_argument("--unchecked", action="store_true", help="do not compare what they serve")
    parser.add_argument("--folder", type=Path, help="where the data is, or goes; default: benchmarks/work")
    parser.add_argument("--json", type=Path, default=WORK / "loader.json")
    arguments = parser.parse_args()
    folder = arguments.folder or WORK / f"rows-{arguments.rows}"
    write_data(folder, arguments.rows)
    results: dict[str, Any] = {"machine": measure.machine(), "rows": arguments.rows}
    for id_dtype in arguments.id_dtypes:
        results[id_dtype] = compare(folder, id_dtype, arguments)
        print(table(results[id_dtype], id_dtype), end="\n\n", flush=True)
    measure.write_json(arguments.json, results)


if __name__ == "__main__":
    main()
