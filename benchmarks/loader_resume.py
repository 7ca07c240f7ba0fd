"""What it costs to start a loader again, and to resume in the middle of an epoch.

    python benchmarks/loader_resume.py --rows 2000000

Beside torchdata's StatefulDataLoader over the same columns (``pip install torchdata``), with and without
worker processes, over a dataset of NumPy rows and over one that gathers whole batches. Resuming is: make the
loader, load the state, get the next batch; the state is one that the loader itself gave after ``--steps``
batches. Medians of ``--repeats`` each, the repeats of all in turn, after one of each that is not counted.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from headrace.loading import Loader
from headrace.order import Permutation
from peers.rows.commands import prepare
from peers.rows.contenders import CONTENDERS
from peers.rows.headrace_rows import rows_of
from peers.rows.layout import BATCH, SEED, write_data

WORK = Path(__file__).resolve().parent / "work"
FAR_STEPS = (10, 10_000_000)


def milliseconds(ways: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Time every way ``repeats`` times, in turn, after one time that is not counted.

    To end what a way returns (threads, workers) is not timed.
    """
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(repeats + 1):
        for name, function in ways.items():
            started = time.perf_counter()
            running = function()
            seconds = time.perf_counter() - started
            del running
            if number:
                times[name].append(seconds * 1000)
    return times


def loader_of(space: Any, state: dict[str, Any] | None = None) -> Loader:
    loader = Loader(space, batch_size=BATCH, shuffle="global", seed=SEED, output="torch")
    if state:
        loader.load_state_dict(state)
    return loader


def first_batch(loader: Any) -> Any:
    """Return an iterator that has given its first batch."""
    iterator = iter(loader)
    next(iterator)
    return iterator


def state_after(loader: Any, steps: int) -> dict[str, Any]:
    """Return a loader's state after some batches."""
    iterator = iter(loader)
    for _ in range(steps):
        next(iterator)
    return loader.state_dict()  # type: ignore[no-any-return]


def order_of(step: int) -> Any:
    """Return the indices of one batch of an epoch of 2^40 samples."""
    return Permutation(1 << 40).at(np.arange(BATCH) + step * BATCH)


def ours(folder: Path, steps: int) -> dict[str, Callable[[], Any]]:
    prepare(CONTENDERS[0], folder)
    space = rows_of(folder, "int64")
    state = state_after(loader_of(space), steps)
    orders = {f"order of step {step}": partial(order_of, step) for step in FAR_STEPS}
    return {
        "headrace, resumed": lambda: first_batch(loader_of(space, state)),
        "headrace, made again": lambda: loader_of(space),
        "headrace, made again, first batch": lambda: first_batch(loader_of(space)),
        **orders,
    }


def theirs(folder: Path, steps: int, workers: int, kind: str) -> Callable[[], Any]:
    """Return what resumes a StatefulDataLoader over rows or over whole batches."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    from peers.rows.torch_loaders import NumpyRows, Stack, WholeBatches, as_it_is

    dataset: Any = NumpyRows(folder) if kind == "rows" else WholeBatches(folder, "int64")
    together: Any = Stack("int64") if kind == "rows" else as_it_is

    def make() -> Any:
        return StatefulDataLoader(dataset, BATCH, shuffle=True, num_workers=workers, collate_fn=together)

    state = state_after(make(), steps)

    def resume() -> Any:
        loader = make()
        loader.load_state_dict(state)
        return first_batch(loader)

    return resume


def print_times(times: Mapping[str, list[float]], resumed: float) -> None:
    for name, found in times.items():
        median = statistics.median(found)
        ratio = f"   {median / resumed:,.0f} times as long" if name.startswith("Stateful") else ""
        print(f"{name:<50}{median:10.2f} ms ({min(found):.2f}, {max(found):.2f}){ratio}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--steps", type=int, default=50, help="batches before the loaders are stopped")
    parser.add_argument("--folder", type=Path, help="where the data is, or goes; default: benchmarks/work")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", ".*set_vital.*")
    folder = arguments.folder or WORK / f"rows-{arguments.rows}"
    write_data(folder, arguments.rows)
    ways = ours(folder, arguments.steps)
    if importlib.util.find_spec("torchdata") is not None:
        for kind in ("rows", "whole batches"):
            for workers in (0, 2):
                name = f"StatefulDataLoader, {kind}, {workers} workers, resumed"
                ways[name] = theirs(folder, arguments.steps, workers, kind)
    times = milliseconds(ways, arguments.repeats)
    print_times(times, statistics.median(times["headrace, resumed"]))


if __name__ == "__main__":
    main()
