"""Runs every benchmark here, one after the other, and says how long each took.

    python benchmarks/all.py            about an hour on two quiet cores
    python benchmarks/all.py --quick    small sizes, one run each: whether everything runs, not how fast

What they print also goes to ``benchmarks/work/<name>.txt``. Those that read books or the Penn Treebank need
the folder ``--data``; where it is not there they are left out, which is said. Ends with 1 when one of them
fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
HELPERS = {"all", "ad_logs", "measure"}


@dataclass(frozen=True)
class Benchmark:
    """One script, with its arguments for a whole and for a quick run; in them ``{data}`` is the real data."""

    script: str
    whole: str
    quick: str
    needs: tuple[str, ...] = ()
    """What must be in the folder of real data."""


BENCHMARKS = [
    Benchmark("build", "", "--rows 20000 --slow-rows 5000 --runs 1"),
    Benchmark("encoder", "", "--rows 5000 --runs 1"),
    Benchmark("memory", "", "--gigabytes 0.02 --ids 50000"),
    Benchmark("loader", "", "--rows 50000 --seconds 0.2 --runs 1 --id-dtypes int64"),
    Benchmark("loader_start", "", "--rows 50000 --runs 1 --match NumPy"),
    Benchmark("loader_resume", "", "--rows 50000 --steps 3 --repeats 2"),
    Benchmark("loader_blocks", "", "--gigabytes 0.1 --seconds 1"),
    Benchmark("windows", "--peers 200", "--tokens 2_000_000 --batches 20 --repeats 1 --peers 2"),
    Benchmark(
        "tokenize_text",
        "--books {data}/gutenberg --tokenizers {data}/tokenizers",
        "--books {data}/gutenberg --tokenizers {data}/tokenizers --copies 1 --repeats 1",
        ("gutenberg", "tokenizers"),
    ),
    Benchmark(
        "word2vec",
        "--root {data}/ptb",
        "--root {data}/ptb --rounds 1 --epochs 1 --workers 0",
        ("ptb",),
    ),
    Benchmark("word2vec_limits", "--root {data}/ptb", "--root {data}/ptb --epochs 1", ("ptb",)),
    Benchmark("word2vec_large", "", "--tokens 1_000_000 --words 50_000 --batches 20"),
]


def missing(benchmark: Benchmark, data: Path) -> list[str]:
    """Return what a benchmark needs that is not in the folder of real data."""
    return [name for name in benchmark.needs if not (data / name).exists()]


def run(benchmark: Benchmark, data: Path, *, quick: bool) -> str:
    """Run one to its end, its output shown and kept; return a line of the summary."""
    words = (benchmark.quick if quick else benchmark.whole).format(data=data).split()
    command = [sys.executable, str(HERE / f"{benchmark.script}.py"), *words]
    print(f"\n== {benchmark.script} {' '.join(words)}", flush=True)
    begin = time.perf_counter()
    with (HERE / "work" / f"{benchmark.script}.txt").open("w", encoding="utf-8") as kept:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in process.stdout or ():
            print(line, end="", flush=True)
            kept.write(line)
    failed = f"failed ({process.returncode})" if process.wait() else "done"
    return f"{benchmark.script:<16} {failed} in {time.perf_counter() - begin:,.0f} s"


def main() -> int:
    """Run all, and print the summary."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=[one.script for one in BENCHMARKS], metavar="NAME")
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    arguments = parser.parse_args()
    (HERE / "work").mkdir(exist_ok=True)
    summary = []
    for benchmark in BENCHMARKS:
        if arguments.only and benchmark.script not in arguments.only:
            continue
        absent = ", ".join(missing(benchmark, arguments.data))
        if absent:
            summary.append(f"{benchmark.script:<16} left out: no {absent} in {arguments.data}")
        else:
            summary.append(run(benchmark, arguments.data, quick=arguments.quick))
    print("\n" + "\n".join(summary))
    return int(any("failed" in line for line in summary))


if __name__ == "__main__":
    sys.exit(main())
