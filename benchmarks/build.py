"""The whole job of a build by headrace and its peers, side by side: raw ad log in, encoded splits on disk.

    python benchmarks/build.py --rows 2000000 --runs 3
    python benchmarks/build.py --contenders headrace polars_memory --formats csv

``peers/job.py`` says what the job is. Every contender's result is read back, outside the time, and its rows,
vocabulary sizes and sums of ids are compared with headrace's. Peers of the slow kind build a log of
``--slow-rows``: the pace counts.
"""

from __future__ import annotations

import argparse
import importlib
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ad_logs
import measure

HERE = Path(__file__).resolve().parent
CONTENDERS = {
    "headrace": "headrace_build",
    "Polars, whole file in memory": "polars_memory",
    "Polars, streaming": "polars_streaming",
    "DuckDB SQL": "duckdb_sql",
    "pandas": "pandas_memory",
    "a line at a time, json/csv and dictionaries": "per_line",
    "datasets.map, 2 processes": "hf_datasets",
}
SLOW = ("pandas_memory", "per_line", "hf_datasets")


def main() -> None:
    """Compare, or run one contender once."""
    arguments = parse_arguments()
    if arguments.run:
        print(json.dumps(run_contender(arguments.run, arguments.source, arguments.out)))
        return
    logs = {False: arguments.data or HERE / "work" / f"ads-{arguments.rows}"}
    ad_logs.generate(logs[False], arguments.rows)
    chosen = {name: module for name, module in CONTENDERS.items() if module in arguments.contenders}
    slow_rows = min(arguments.slow_rows, arguments.rows)
    logs[True] = logs[False] if slow_rows == arguments.rows else HERE / "work" / f"ads-{slow_rows}"
    if any(module in SLOW for module in chosen.values()):
        ad_logs.generate(logs[True], slow_rows)
    results: dict[str, Any] = {"machine": measure.machine(), "runs": arguments.runs}
    for kind in arguments.formats:
        results[kind] = compare(chosen, kind, logs, {False: arguments.rows, True: slow_rows}, arguments.runs)
    measure.write_json(arguments.json, results)


def parse_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    modules = ["headrace" if module == "headrace_build" else module for module in CONTENDERS.values()]
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--slow-rows", type=int, default=500_000, help="rows for the peers that take minutes")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--contenders", nargs="+", choices=modules, default=modules)
    parser.add_argument("--formats", type=lambda text: text.split(","), default=["jsonl", "csv"])
    parser.add_argument(
        "--data", type=Path, help="where the log of --rows is or goes; default: benchmarks/work"
    )
    parser.add_argument("--json", type=Path, default=HERE / "work" / "build.json")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.contenders = {"headrace_build", *arguments.contenders}
    return arguments


def run_contender(module: str, source: Path, out: Path) -> dict[str, Any]:
    """Do the job once in this process; what was written is compared after the clock has stopped."""
    from peers.job import summarise

    contender = importlib.import_module(f"peers.{module}")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    begin = time.perf_counter()
    sizes = contender.build(source, out)
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "figures": summarise(out, sizes)}


def compare(
    chosen: dict[str, str], kind: str, logs: dict[bool, Path], rows: dict[bool, int], runs: int
) -> list[dict[str, Any]]:
    """Run the contenders on logs of one format; print and return the table."""
    (HERE / "work").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HERE / "work") as folder:
        warm_up(kind, Path(folder))
        commands = {
            name: command(module, logs[module in SLOW] / f"ads.{kind}", Path(folder) / module)
            for name, module in chosen.items()
        }
        done = measure.run_in_turn(commands, runs)
        expected = {False: done["headrace"][0].result["figures"]}
        if rows[True] != rows[False] and any(chosen[name] in SLOW for name in done):
            ours = command("headrace_build", logs[True] / f"ads.{kind}", Path(folder) / "headrace_build")
            expected[True] = measure.run_once(ours).result["figures"]
    amounts = {name: rows[chosen[name] in SLOW] for name in done}
    table = measure.compare(done, amounts, "rows")
    for row in table:
        slow = chosen[row["contender"]] in SLOW
        figures = done[row["contender"]][0].result["figures"]
        row["differs"] = differences(figures, expected.get(slow, expected[False]))
    report(kind, table)
    return table


def warm_up(kind: str, folder: Path) -> None:
    """Let headrace's kernels be compiled, in a build of a few rows: the disk keeps them from then on."""
    small = HERE / "work" / "ads-20000"
    ad_logs.generate(small, 20_000)
    measure.run_once(command("headrace_build", small / f"ads.{kind}", folder / "warm-up"))


def command(module: str, source: Path, out: Path) -> list[str]:
    """Return the command that runs one contender once."""
    return [sys.executable, __file__, "--run", module, "--source", str(source), "--out", str(out)]


def differences(figures: dict[str, Any], expected: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the figures that differ from headrace's; sums of floats may differ by rounding."""
    return {
        name: [value, figures.get(name)]
        for name, value in expected.items()
        if not isinstance(figures.get(name), int | float) or abs(figures[name] - value) > 1e-6 * abs(value)
    }


def report(kind: str, table: list[dict[str, Any]]) -> None:
    """Print one format's table, and whose result differs."""
    print(f"\n{kind}\n\n{measure.table(table, 'rows')}\n")
    for row in table:
        for name, (ours, theirs) in row["differs"].items():
            print(f"{row['contender']}: {name} is {theirs}, headrace's is {ours}")


if __name__ == "__main__":
    main()
