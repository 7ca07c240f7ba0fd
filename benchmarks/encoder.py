"""``Encoder`` beside scikit-learn; how a build grows; what a rebuild with one changed feature costs.

    python benchmarks/encoder.py --rows 200000

Three tables:

- one row and 1,000 rows through ``Encoder.encode``, and through a scikit-learn pipeline of
  ``OrdinalEncoder`` and ``log1p`` called row by row, as a service would; and called once for all rows;
- rows per second of a build at 1 and 10 times the rows, and at 1, 2 and 4 times the distinct ids;
- a build, the same with one changed feature, and the same unchanged.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ad_logs
import measure

HERE = Path(__file__).resolve().parent
ROW_BY_ROW = "OrdinalEncoder pipeline: 1,000 rows, row by row (10 times the time of 100)"
ONE_VALUE = ["user_id", "creative_id", "slot", "device", "city", "os"]


def main() -> None:
    """Measure all three, or one part in this process."""
    arguments = parse_arguments()
    if arguments.run:
        print(json.dumps(PARTS[arguments.run](arguments.source, arguments.out)))
        return
    logs = arguments.data or HERE / "work" / f"ads-{arguments.rows}"
    ad_logs.generate(logs, arguments.rows)
    results: dict[str, Any] = {"machine": measure.machine(), "rows": arguments.rows}
    for part in arguments.parts:
        results[part] = TABLES[part](arguments, logs)
    measure.write_json(arguments.json, results)


def parse_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--parts", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument(
        "--data", type=Path, help="where the log of --rows is or goes; default: benchmarks/work"
    )
    parser.add_argument("--json", type=Path, default=HERE / "work" / "encoder.json")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def command(part: str, source: Path, out: Path) -> list[str]:
    """Return the command that measures one part once."""
    return [sys.executable, __file__, "--run", part, "--source", str(source), "--out", str(out)]


def timed(function: Callable[[], Any]) -> float:
    """Return the seconds that a call takes."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def each(function: Callable[[], Any], times: int) -> float:
    """Return the median seconds of a call, after three that are not counted."""
    for _ in range(3):
        function()
    return statistics.median(timed(function) for _ in range(times))


def serve(source: Path, out: Path) -> dict[str, float]:
    """Build a store, then time both encoders on rows of the log."""
    import headrace as hr

    hr.build(source.with_name("jsonl.toml"), out=out)
    encoder = hr.Encoder(out)
    with source.open() as file:
        rows = [row for row in map(json.loads, (next(file) for _ in range(1_100))) if row["price"] != "n/a"][
            :1_000
        ]
    ours = {
        "headrace: 1 row": each(lambda: encoder.encode(rows[:1]), 200),
        "headrace: 1,000 rows": each(lambda: encoder.encode(rows), 20),
        "headrace: 1,000 rows, row by row": timed(lambda: [encoder.encode([row]) for row in rows]),
    }
    return ours if importlib.util.find_spec("sklearn") is None else ours | serve_pipeline(source, rows)


def serve_pipeline(source: Path, rows: list[dict[str, Any]]) -> dict[str, float]:
    """Time scikit-learn on rows of the log."""
    one_value = [{name: row.get(name) for name in [*ONE_VALUE, "price"]} for row in rows]
    pipeline = fitted_pipeline(source)
    return {
        "OrdinalEncoder pipeline: 1 row": each(lambda: pipeline(one_value[:1]), 50),
        ROW_BY_ROW: 10 * timed(lambda: [pipeline([row]) for row in one_value[:100]]),
        "OrdinalEncoder pipeline: 1,000 rows at once": each(lambda: pipeline(one_value), 5),
    }


def fitted_pipeline(source: Path) -> Callable[[list[dict[str, Any]]], Any]:
    """Fit OrdinalEncoder and log1p on the log's columns of one value a row; it knows no lists."""
    import numpy as np
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder

    with source.open() as file:
        rows = [row for row in map(json.loads, file) if row["price"] != "n/a"]
    log = pd.DataFrame({name: [row.get(name) for row in rows] for name in [*ONE_VALUE, "price"]})
    log = log.astype({**dict.fromkeys(ONE_VALUE, object), "price": float})
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    transformer = ColumnTransformer(
        [("ids", ordinal, ONE_VALUE), ("price", FunctionTransformer(np.log1p), ["price"])]
    )
    transformer.fit(log)
    types = dict(log.dtypes)
    return lambda some: transformer.transform(pd.DataFrame(some).astype(types))


def build_once(source: Path, out: Path) -> dict[str, float]:
    """Build a store from nothing, after the compiled code of a small build has been loaded."""
    import headrace as hr

    small = HERE / "work" / "ads-20000"
    ad_logs.generate(small, 20_000)
    with tempfile.TemporaryDirectory() as folder:
        hr.build(small / "jsonl.toml", out=Path(folder) / "store")
        seconds = timed(lambda: hr.build(source.with_name("jsonl.toml"), out=Path(folder) / "measured"))
    return {"seconds": seconds}


def rebuild(source: Path, out: Path) -> dict[str, float]:
    """Build; change one feature and build again; build again unchanged."""
    import tomllib

    import headrace as hr

    declared = tomllib.loads(source.with_name("jsonl.toml").read_text())
    declared["source"]["files"] = str(source)
    changed = json.loads(json.dumps(declared))
    changed["features"]["history"]["max_length"] = 20
    stages: list[str] = []

    def note(stage: str, share: float) -> None:
        if not stages or stages[-1] != stage:
            stages.append(stage)

    first = timed(lambda: hr.build(declared, out=out))
    parsed = {path: path.stat().st_mtime_ns for path in (out / ".build" / "parsed").rglob("*.arrow")}
    second = timed(lambda: hr.build(changed, out=out, progress=note))
    again = {path: path.stat().st_mtime_ns for path in (out / ".build" / "parsed").rglob("*.arrow")}
    third = timed(lambda: hr.build(changed, out=out))
    return {
        "build": first,
        "rebuild, history cut to 20 instead of 50": second,
        "unchanged": third,
        "parsed again": float(parsed != again),
    }


def table_serving(arguments: argparse.Namespace, logs: Path) -> dict[str, float]:
    """Print and return the encoders' times."""
    with tempfile.TemporaryDirectory() as folder:
        result = dict(measure.run_once(command("serve", logs / "ads.jsonl", Path(folder) / "store")).result)
    print("\n| | ms |\n| --- | ---: |")
    for name, seconds in result.items():
        print(f"| {name} | {seconds * 1e3:,.3f} |")
    if ROW_BY_ROW in result:
        result["ratio"] = result[ROW_BY_ROW] / result["headrace: 1,000 rows"]
        print(f"\n1,000 rows: {result['ratio']:,.0f} times the pipeline called row by row")
    return result


def table_growth(arguments: argparse.Namespace, logs: Path) -> list[dict[str, Any]]:
    """Print and return the pace of builds of more rows, and of more distinct ids."""
    rows = arguments.rows
    made = {f"{rows:,} rows": (logs, rows)}
    more = HERE / "work" / f"ads-{10 * rows}"
    ad_logs.generate(more, 10 * rows, formats=("jsonl",))
    made[f"{10 * rows:,} rows"] = (more, 10 * rows)
    for factor in (1, 2, 4):
        folder = HERE / "work" / f"ads-{rows}-ids-{factor}"
        generate_flat(folder, rows, factor)
        made[f"{rows:,} rows, {factor} times the ids"] = (folder, rows)
    commands = {name: command("build", folder / "ads.jsonl", folder) for name, (folder, _) in made.items()}
    done = measure.run_in_turn(commands, arguments.runs)
    table = measure.compare(done, {name: size for name, (_, size) in made.items()}, "rows")
    print(f"\n{measure.table(table, 'rows', first='the first is')}")
    return table


def generate_flat(folder: Path, rows: int, factor: int) -> None:
    """Write a log whose users are drawn evenly from ``factor`` times as many as a tenth of the rows."""
    import numpy as np

    if (folder / "jsonl.toml").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    made = ad_logs.Rows(1, 0, rows, rows)
    made.user = np.random.default_rng(factor).integers(0, factor * rows // 10, rows) * 7919 % 100_000_007
    with (folder / "ads.jsonl").open("w") as file:
        file.writelines(map(ad_logs.json_line, made))
    (folder / "jsonl.toml").write_text(ad_logs.SPEC.format(file="ads.jsonl", options=""))


def table_rebuild(arguments: argparse.Namespace, logs: Path) -> dict[str, float]:
    """Print and return what a rebuild costs."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            measure.run_once(
                command("rebuild", (logs / "ads.jsonl").resolve(), Path(folder) / str(number))
            ).result
            for number in range(arguments.runs)
        ]
    result = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    print("\n| | s |\n| --- | ---: |")
    for name, seconds in result.items():
        print(
            f"| {name} | {seconds:.3f} |"
            if name != "parsed again"
            else f"| raw text parsed again | {bool(seconds)} |"
        )
    return result


PARTS = {"serve": serve, "build": build_once, "rebuild": rebuild}
TABLES = {"serving": table_serving, "growth": table_growth, "rebuild": table_rebuild}

if __name__ == "__main__":
    main()
