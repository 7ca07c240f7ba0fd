"""Windows against what people use: 200 million uint16 tokens, shuffled batches of 32 × 1,024, int64.

    python benchmarks/windows.py --tokens 200_000_000 --batches 6000 --repeats 9 --peers 200

Every way makes ``input_ids`` and ``labels`` of the same shuffled windows. Medians of ``--repeats``
interleaved rounds, of nearly a whole epoch each (1,000 batches take 20 ms, less than threads and memory
need to get going); ratios count, absolute figures are this machine's.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from headrace import disk
from headrace.text import Tokens, Windows
from peers import token_loaders

WINDOW, ROWS = 1024, 32
FIVE = ("input_ids", "labels", "attention_mask", "segment_ids", "position_ids")

Batches = Iterator[Any]
Arguments = argparse.Namespace


def headrace_loader(
    values: np.ndarray, arguments: Arguments, threads: int | None = None, **how: Any
) -> Batches:
    """Serve shuffled windows with the loader, as torch tensors."""
    windows = Windows(Tokens.from_arrays(values, [0, values.size]), WINDOW, **how)
    threads = arguments.threads if threads is None else threads
    options = {"threads": threads, "prefetch": arguments.prefetch, "output": "torch"}
    return iter(windows.loader(batch_size=ROWS, shuffle="global", seed=1, **options))


def in_two_threads(make: Callable[[], Batches]) -> Batches:
    """Make batches in two threads that hand nothing over: each in its own loop, counted alone.

    What is yielded is one for each batch that either has made since.
    """
    done = [0, 0]
    over = threading.Event()

    def work(place: int) -> None:
        for _ in make():
            done[place] += 1
            if over.is_set():
                return

    threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    try:
        given = 0
        while True:
            time.sleep(0.001)
            made = sum(done)
            yield from range(given, made)
            given = made
    finally:
        over.set()
        for thread in threads:
            thread.join()


def headrace_gather(values: np.ndarray, **how: Any) -> Batches:
    """Make the same arrays with the space alone, on this thread."""
    space = Windows(Tokens.from_arrays(values, [0, values.size]), WINDOW, **how).at(0, 0)
    keys = np.zeros(ROWS, np.uint64)
    for rows in shuffled(len(space) - 1):
        yield space.gather(rows, keys)


def shuffled(count: int) -> Iterator[np.ndarray]:
    order = np.random.default_rng(1).permutation(count)
    for first in range(0, count - ROWS, ROWS):
        yield order[first : first + ROWS]


def numpy_index(values: np.ndarray) -> Batches:
    """Gather with an index array, one for each of the two."""
    columns = np.arange(WINDOW)
    for rows in shuffled((values.size - 1) // WINDOW):
        places = rows[:, None] * WINDOW + columns
        yield values[places].astype(np.int64), values[places + 1].astype(np.int64)


def numpy_two(values: np.ndarray) -> Batches:
    """Gather rows of W + 1 from a sliding view, then make the two arrays."""
    view = sliding_window_view(values, WINDOW + 1)
    for rows in shuffled((values.size - 1) // WINDOW):
        block = view[rows * WINDOW]
        yield block[:, :-1].astype(np.int64), block[:, 1:].astype(np.int64)


def numpy_views(values: np.ndarray) -> Batches:
    """Make one int64 block of W + 1; ids and labels are views of it."""
    view = sliding_window_view(values, WINDOW + 1)
    for rows in shuffled((values.size - 1) // WINDOW):
        block = view[rows * WINDOW].astype(np.int64)
        yield block[:, :-1], block[:, 1:]


def nanogpt(values: np.ndarray) -> Batches:
    """The loop of nanoGPT's train.py with the map kept open; windows are drawn with replacement."""
    generator = torch.Generator().manual_seed(1)
    while True:
        places = torch.randint(values.size - WINDOW, (ROWS,), generator=generator)
        x = torch.stack([torch.from_numpy(values[i : i + WINDOW].astype(np.int64)) for i in places])
        y = torch.stack([torch.from_numpy(values[i + 1 : i + 1 + WINDOW].astype(np.int64)) for i in places])
        yield x, y


def nanogpt_reopened(folder: Path) -> Batches:
    """The same loop with the map opened for each batch, as train.py does it."""
    while True:
        yield next(nanogpt(np.memmap(folder / "train.bin", np.uint16, mode="r")))


class WindowDataset(torch.utils.data.Dataset[Any]):
    """The usual map-style dataset."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __len__(self) -> int:
        return (self.values.size - 1) // WINDOW

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        chunk = torch.from_numpy(self.values[number * WINDOW : (number + 1) * WINDOW + 1].astype(np.int64))
        return chunk[:-1], chunk[1:]


def torch_dataset(values: np.ndarray) -> Batches:
    """``DataLoader`` over the dataset in this process."""
    return iter(torch.utils.data.DataLoader(WindowDataset(values), batch_size=ROWS, shuffle=True))


def copied(bytes_a_batch: int) -> Batches:
    """Copy as many bytes as a batch writes: the limit of five arrays."""
    source = np.random.default_rng(1).integers(0, 9, 1 << 24, dtype=np.int64)
    count = bytes_a_batch // 8
    first = 0
    while True:
        yield source[first : first + count].copy()
        first = (first + count) % (source.size - count)


def tokens_a_second(batches: Batches, count: int) -> float:
    """Return tokens a second over ``count`` batches, after three to warm up."""
    for _ in islice(batches, 3):
        pass
    begin = time.perf_counter()
    found = sum(1 for _ in islice(batches, count))
    return found * ROWS * WINDOW / (time.perf_counter() - begin)


def compare(
    ways: dict[str, Callable[[], Batches]], arguments: Arguments, base: str, fewer: Sequence[str] = ()
) -> None:
    """Run all ways in turn, several times, some over ``--peers`` batches; print medians and their ratios."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(arguments.repeats):
        for name, make in ways.items():
            count = arguments.peers if name in fewer else arguments.batches
            found[name].append(tokens_a_second(make(), count))
    medians = {name: statistics.median(rates) for name, rates in found.items()}
    for name, rate in medians.items():
        print(f"{name:<52} {rate / 1e6:>8,.0f} M tokens/s   {rate / medians[base]:>6.2f} ×")
    print()


def against_loaders(values: np.ndarray, arguments: Arguments) -> None:
    """Compare the loader with the slower ones of others, some of which read files of their own."""
    name = f"headrace, {arguments.threads} threads and the consumer's"
    with tempfile.TemporaryDirectory() as folder:
        with disk.writing(Path(folder) / "train.bin") as file:
            file.write(values.data)
        ways = {
            name: lambda: headrace_loader(
                np.memmap(Path(folder) / "train.bin", np.uint16, mode="r"), arguments
            ),
            "nanoGPT's loop, map kept open": lambda: nanogpt(values),
            "nanoGPT's loop, as it is": lambda: nanogpt_reopened(Path(folder)),
            "torch Dataset, DataLoader, 0 workers": lambda: torch_dataset(values),
            **token_loaders.ways(values, Path(folder), (0, 1, 2)),
        }
        compare(ways, arguments, base=name, fewer=[other for other in ways if other != name])


def epoch_start() -> None:
    """Time the first batch over 10 billion tokens in 10 million documents, on a sparse file."""
    lengths = np.full(10_000_000, 1000)
    lengths[::2] += 1
    lengths[1::2] -= 1
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokens.bin"
        with path.open("wb") as file:
            file.truncate(int(offsets[-1]) * 2)
        tokens = Tokens.from_arrays(np.memmap(path, np.uint16, mode="r"), offsets)
        tokens = replace(tokens, folder=Path(folder), digest="10 billion zeros")  # so that plans are kept
        ways: tuple[tuple[str, dict[str, Any]], ...] = (
            ("pack=False", {}),
            ("concat", {"pack": "concat", "eos": False}),
            ("best_fit, planned", {"pack": "best_fit", "eos": False}),
            ("best_fit, plan read", {"pack": "best_fit", "eos": False}),
        )
        for name, how in ways:
            next(iter(Windows(Tokens.from_documents([[1, 2]]), 2, **how).loader(batch_size=1)))
            begin, before = time.perf_counter(), anonymous_bytes()
            windows = Windows(tokens, 1024, **how)
            next(iter(windows.loader(batch_size=ROWS, shuffle="global", threads=0)))
            seconds, grown = time.perf_counter() - begin, anonymous_bytes() - before
            print(
                f"first batch of 10 billion tokens, {name:<20} {seconds:.3f} s, {grown / 1e6:>6,.0f} MB more"
            )
            del windows


def anonymous_bytes() -> int:
    """Return the memory of this process that is no map of a file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=200_000_000)
    parser.add_argument("--batches", type=int, default=6000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--prefetch", type=int, default=8)
    parser.add_argument(
        "--peers", type=int, default=0, help="batches of each token loader of others; 0: none"
    )
    arguments = parser.parse_args()
    values = np.random.default_rng(0).integers(0, 50257, arguments.tokens, dtype=np.uint16)
    print("ids and labels")
    compare(
        {
            "NumPy gather, index arrays, 1 thread": lambda: numpy_index(values),
            "NumPy gather from a sliding view, 1 thread": lambda: numpy_two(values),
            "NumPy, both views of one block, 1 thread": lambda: numpy_views(values),
            "NumPy gather from a sliding view, 2 threads": lambda: in_two_threads(lambda: numpy_two(values)),
            "NumPy, both views of one block, 2 threads": lambda: in_two_threads(lambda: numpy_views(values)),
            "headrace, the space alone, 1 thread": lambda: headrace_gather(values),
            "headrace, the consumer's thread alone": lambda: headrace_loader(values, arguments, 0),
            "headrace, 1 thread and the consumer's": lambda: headrace_loader(values, arguments, 1),
            "headrace, 2 threads": lambda: headrace_loader(values, arguments, 2),
            "nanoGPT's loop, map kept open": lambda: nanogpt(values),
            "torch Dataset, DataLoader, 0 workers": lambda: torch_dataset(values),
        },
        arguments,
        base="NumPy gather from a sliding view, 1 thread",
    )
    if arguments.peers:
        print("ids and labels, against token loaders")
        against_loaders(values, arguments)
    print("five arrays, against a plain copy of as many bytes")
    compare(
        {
            "copy, 1 thread": lambda: copied(5 * 8 * ROWS * WINDOW),
            "copy, 2 threads": lambda: in_two_threads(lambda: copied(5 * 8 * ROWS * WINDOW)),
            "headrace, the space alone, 1 thread": lambda: headrace_gather(values, outputs=FIVE),
            "headrace, the consumer's thread alone": lambda: headrace_loader(
                values, arguments, 0, outputs=FIVE
            ),
            "headrace, 1 thread and the consumer's": lambda: headrace_loader(
                values, arguments, 1, outputs=FIVE
            ),
            "headrace, 2 threads": lambda: headrace_loader(values, arguments, 2, outputs=FIVE),
        },
        arguments,
        base="copy, 1 thread",
    )
    epoch_start()


if __name__ == "__main__":
    main()
