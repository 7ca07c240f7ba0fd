"""How near skip-gram batches come to what a loop takes that only writes as many bytes.

    python benchmarks/word2vec_limits.py --root ../shared/data/ptb --epochs 9

A compiled kernel writes constants into arrays of the shapes of every batch of an epoch of Penn Treebank:
centers, contexts_negatives, masks, labels, int64, in memory that is used again. Beside it headrace's compiled
loops write the batches themselves into the same memory, without a loader around them. One and two threads,
in turn.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

from headrace.kernels.skipgram import draw_windows, fill_batch
from headrace.order import Permutation
from headrace.word2vec import load_data_ptb

BATCH, WINDOW, NEGATIVES = 512, 5, 5
HELD = 8
"""Batches whose memory a thread uses in turn, as a consumer holds some while others are made."""

Arrays = list[np.ndarray]
Act = Callable[[int, Arrays], Any]


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def write_constants(centers, contexts_negatives, masks, labels):  # type: ignore[no-untyped-def]
    for row in range(len(centers)):
        centers[row, 0] = row
        for column in range(masks.shape[1]):
            contexts_negatives[row, column] = row
        for column in range(masks.shape[1]):
            masks[row, column] = 1
        for column in range(masks.shape[1]):
            labels[row, column] = 0


class Epoch:
    """The batches of one epoch: their centres, positions and shapes."""

    def __init__(self, root: Path) -> None:
        self.space = load_data_ptb(BATCH, WINDOW, NEGATIVES, root)[0].space
        self.samples = self.space.at(0, 0)
        size = len(self.samples)
        order = Permutation(size, 0, 0)[np.arange(size)]
        keys = np.arange(size, dtype=np.uint64)
        steps = [slice(begin, begin + BATCH) for begin in range(0, size, BATCH)]
        self.places = [(order[step], keys[step]) for step in steps]
        windows = [self._windows(*places) for places in self.places]
        self.shapes = [(len(reach), self.space.settings.columns(most)) for reach, most in windows]

    def _windows(self, indices: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, int]:
        return draw_windows(self.samples.kept, indices, keys, self.samples.key, WINDOW)

    def make(self, step: int, arrays: Arrays) -> None:
        reach, _ = self._windows(*self.places[step])
        noise = (self.space.noise.table, self.space.noise.cumulative)
        drawn = (reach, self.samples.key, NEGATIVES, 0, False)
        fill_batch(self.samples.kept, *self.places[step], *drawn, *noise, *arrays)

    def write(self, step: int, arrays: Arrays) -> None:
        write_constants(*arrays)

    def memory(self) -> list[Arrays]:
        widest = BATCH * max(width for _, width in self.shapes)
        return [[np.zeros(size, np.int64) for size in (BATCH, widest, widest, widest)] for _ in range(HELD)]

    def run(self, act: Act, memory: list[Arrays], first: int, threads: int) -> None:
        """Act on every batch of a thread, in memory that is used again."""
        for step in range(first, len(self.shapes), threads):
            rows, width = self.shapes[step]
            centers, *wide = memory[step // threads % HELD]
            act(step, [centers[:rows, None], *(array[: rows * width].reshape(rows, width) for array in wide)])


def seconds(epoch: Epoch, act: Act, memories: list[list[Arrays]]) -> float:
    """Return how long an epoch takes on as many threads as there are memories."""
    threads = [
        threading.Thread(target=epoch.run, args=(act, memory, first, len(memories)))
        for first, memory in enumerate(memories)
    ]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


def measure(root: Path, epochs: int) -> dict[str, float]:
    """Return the median seconds of an epoch, by what is done and on how many threads."""
    epoch = Epoch(root)
    memories = [epoch.memory(), epoch.memory()]
    contenders = {
        f"{name}, {threads} thread{'s' * (threads > 1)}": (act, memories[:threads])
        for name, act in (("only writing", epoch.write), ("compiled loops alone", epoch.make))
        for threads in (1, 2)
    }
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(epochs + 1):  # the first compiles, and is left out
        for name, (act, held) in contenders.items():
            taken[name].append(seconds(epoch, act, held))
    return {name: statistics.median(times[1:]) for name, times in taken.items()}


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=Path, help="folder of ptb.train.txt or ptb.zip")
    parser.add_argument("--epochs", type=int, default=9)
    arguments = parser.parse_args()
    for name, taken in measure(arguments.root, arguments.epochs).items():
        print(f"{name:35} {taken:.4f} s")


if __name__ == "__main__":
    main()
