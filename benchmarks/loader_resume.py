"""What it costs to start a loader again, and to resume in the middle of an epoch.

    python benchmarks/loader_resume.py --rows 2000000

Beside torchdata's StatefulDataLoader over the same columns (``pip install torchdata``).
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.loading import Loader
from headrace.order import Permutation
from loader import BATCH, SEED, NumpyRows, rows_of, write_data


def milliseconds(function: Callable[[], Any], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


def first_batch(loader: Loader) -> None:
    next(iter(loader))


def loader_of(space: Any, position: int = 0) -> Loader:
    loader = Loader(space, batch_size=BATCH, shuffle="global", seed=SEED, output="torch")
    if position:
        loader.load_state_dict({**loader.state_dict(), "position": position})
    return loader


def stateful_state(folder: Path, steps: int) -> tuple[Any, dict[str, Any]]:
    from torchdata.stateful_dataloader import StatefulDataLoader

    def make() -> Any:
        return StatefulDataLoader(NumpyRows(folder), BATCH, shuffle=True, num_workers=2)  # type: ignore[arg-type]

    source = make()
    iterator = iter(source)
    for _ in range(steps):
        next(iterator)
    return make, source.state_dict()


def resume_stateful(make: Callable[[], Any], state: dict[str, Any]) -> None:
    loader = make()
    loader.load_state_dict(state)
    next(iter(loader))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=50, help="steps before StatefulDataLoader is stopped")
    parser.add_argument("--folder", type=Path, help="where the data is, or shall be")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", ".*set_vital.*")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        if not (folder / "history_mask.npy").exists():
            write_data(folder, arguments.rows)
        space = rows_of(folder, "int64")
        first_batch(loader_of(space))
        steps = arguments.steps * BATCH
        print(f"make a second loader          {milliseconds(lambda: loader_of(space), 50):10.2f} ms")
        first = milliseconds(lambda: first_batch(loader_of(space)), 50)
        print(f"…and its first batch          {first:10.2f} ms")
        middle = milliseconds(lambda: first_batch(loader_of(space, steps)), 50)
        print(f"…resumed at step {arguments.steps:<12} {middle:10.2f} ms")
        for step in (10, 10_000_000):
            far = milliseconds(
                lambda step=step: Permutation(1 << 40).at(Permutation(4096)[:] + step * 4096), 50
            )  # type: ignore[misc]
            print(f"order of step {step:<15} {far:10.2f} ms")
        if importlib.util.find_spec("torchdata") is not None:
            make, state = stateful_state(folder, arguments.steps)
            theirs = milliseconds(lambda: resume_stateful(make, state), arguments.repeats)
            print(f"StatefulDataLoader, resumed   {theirs:10.2f} ms   {theirs / middle:,.0f} times as long")


if __name__ == "__main__":
    main()
