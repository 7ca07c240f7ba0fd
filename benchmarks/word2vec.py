"""Skip-gram batches of Penn Treebank: headrace, the book's own pipeline (d2l) and gensim, side by side.

    python benchmarks/word2vec.py --root ../shared/data/ptb --rounds 3 --epochs 5

Contenders take turns: every round runs each once, in a process of its own, so that memory is its own too;
figures are medians. Needs ``pip install d2l --no-deps`` and ``pip install gensim``; what is not installed
is left out.

- *headrace* is ``load_data_ptb`` as the book calls it, with its two threads.
- *on one core*: the whole process may use one processor. headrace makes batches (contexts, negatives, masks,
  labels, as tensors) in one thread; gensim trains with one worker, 100 dimensions, on the very tokens that
  headrace keeps.
- *only writing* and *compiled loops alone*: see ``word2vec_limits.py``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

BATCH, WINDOW, NEGATIVES = 512, 5, 5
HEADRACE, HEADRACE_ON_ONE = "headrace", "headrace, on one core"
GENSIM, BOOK, LIMITS = "gensim trains, on one core", "the book", "limits"
PICTURE_LIBRARIES = ("torchvision", "PIL", "IPython", "matplotlib_inline")
REPOSITORY = Path(__file__).resolve().parent.parent


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def consume(batches: Iterable[Any]) -> int:
    """Take every batch, and return the cells of all."""
    return sum(int(contexts_negatives.numel()) for _, contexts_negatives, *_ in batches)


def run_headrace(root: Path, epochs: int) -> dict[str, Any]:
    from headrace.word2vec import load_data_ptb

    warm_up(load_data_ptb)
    return measure(lambda: load_data_ptb(BATCH, WINDOW, NEGATIVES, root)[0], epochs)


def measure(prepare: Callable[[], Any], epochs: int) -> dict[str, Any]:
    """Time a preparation and epochs; memory is what it and one epoch add to the process's peak."""
    before = peak_bytes()
    preparation, batches = timed(prepare)
    first, _ = timed(lambda: consume(batches))
    memory = peak_bytes() - before
    rest = [timed(lambda: consume(batches))[0] for _ in range(epochs - 1)]
    pairs = sum(int(labels.sum()) for *_, labels in batches)
    epoch = statistics.median([first, *rest])
    return {"preparation": preparation, "epoch": epoch, "pairs": pairs, "memory": memory}


def run_headrace_on_one_core(root: Path, epochs: int) -> dict[str, Any]:
    from headrace.word2vec import load_data_ptb

    stay_on_one_core()
    space = load_data_ptb(BATCH, WINDOW, NEGATIVES, root)[0].space
    loader = space.loader(batch_size=BATCH, shuffle="global", threads=1, output="torch")
    pairs = sum(int(batch["labels"].sum()) for batch in loader)
    taken = [timed(lambda: consume(tuple(batch.values()) for batch in loader))[0] for _ in range(epochs)]
    return {"epoch": statistics.median(taken), "pairs": pairs}


def stay_on_one_core() -> None:
    """Let this process, with all its threads, use one processor."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def warm_up(load_data_ptb: Callable[..., Any]) -> None:
    """Load the compiled kernels on a corpus of a few lines: their code is no part of the data's memory."""
    words = [f"word{rank}" for rank in range(100)]
    with tempfile.TemporaryDirectory() as folder:
        lines = [" ".join(words[(row + 7 * k) % 100] for k in range(20)) for row in range(200)]
        (Path(folder) / "ptb.train.txt").write_text("\n".join(lines))
        consume(load_data_ptb(BATCH, WINDOW, NEGATIVES, folder)[0])


def load_book(folder: Path) -> Any:
    """Import d2l with stand-ins for the picture libraries that its first lines want."""
    for name in PICTURE_LIBRARIES:
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = mock.MagicMock()
    from d2l import torch as d2l

    d2l.download_extract = lambda name: str(folder / name)
    return d2l


def run_book(root: Path, workers: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(root / "ptb.zip").extractall(folder)
        d2l = load_book(Path(folder))
        d2l.get_dataloader_workers = lambda: workers
        return measure(lambda: d2l.load_data_ptb(BATCH, WINDOW, NEGATIVES)[0], epochs=1)


def run_gensim_on_one_core(root: Path) -> dict[str, Any]:
    """Gensim's training of the tokens that an epoch keeps: what a batch maker must outrun."""
    import gensim

    from headrace.word2vec import load_data_ptb

    stay_on_one_core()
    batches, vocabulary = load_data_ptb(BATCH, WINDOW, NEGATIVES, root)
    samples = batches.space.at(0, 0)
    words = vocabulary.to_tokens(samples.words)
    sentences = [words[begin:end] for begin, end in pairwise(samples.offsets.tolist())]
    pairs = sum(int(labels.sum()) for *_, labels in batches)
    model = gensim.models.Word2Vec(
        vector_size=100, window=WINDOW, negative=NEGATIVES, sg=1, sample=0, min_count=1, workers=1
    )
    preparation, _ = timed(lambda: model.build_vocab(sentences))
    epoch, _ = timed(lambda: model.train(sentences, total_examples=len(sentences), epochs=1))
    return {"preparation": preparation, "epoch": epoch, "pairs": pairs}


def run_limits(root: Path, epochs: int) -> dict[str, Any]:
    import word2vec_limits

    return {name: {"epoch": taken} for name, taken in word2vec_limits.measure(root, epochs).items()}


def contenders(root: Path, epochs: int, workers: list[int]) -> dict[str, Callable[[], dict[str, Any]]]:
    return {
        HEADRACE: lambda: run_headrace(root, epochs),
        HEADRACE_ON_ONE: lambda: run_headrace_on_one_core(root, epochs),
        GENSIM: lambda: run_gensim_on_one_core(root),
        LIMITS: lambda: run_limits(root, epochs),
        **{f"{BOOK}, {count} workers": lambda count=count: run_book(root, count) for count in workers},
    }


def child(name: str, arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Run one contender in a process of its own; ``None`` where it cannot."""
    command = [sys.executable, __file__, "--run", name, "--root", str(arguments.root)]
    command += ["--epochs", str(arguments.epochs), "--workers", *map(str, arguments.workers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{name}: left out ({done.stderr.strip().splitlines()[-1]})", file=sys.stderr)
        return None
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def compare(arguments: argparse.Namespace) -> None:
    """Run every contender once a round, and print medians."""
    names = list(contenders(arguments.root, arguments.epochs, arguments.workers))
    runs: dict[str, list[dict[str, Any]]] = {}
    for _ in range(arguments.rounds):
        for name in names:
            result = child(name, arguments)
            if result is None:
                continue
            for of, figures in (result if name == LIMITS else {name: result}).items():
                runs.setdefault(of, []).append(figures)
    medians = {name: median_of(figures) for name, figures in runs.items()}
    show(medians)
    show_ratios(medians)


def median_of(runs: list[dict[str, Any]]) -> dict[str, float]:
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def show(medians: dict[str, dict[str, float]]) -> None:
    print(f"{'':35} {'prepare':>9} {'epoch':>10}")
    for name, result in medians.items():
        preparation = f"{result['preparation']:7.3f} s" if "preparation" in result else " " * 9
        pairs = f"{result['pairs'] / result['epoch'] / 1e6:8.2f} M pairs/s" if "pairs" in result else ""
        memory = f"{result['memory'] / 1e6:7.0f} MB more" if "memory" in result else ""
        print(f"{name:35} {preparation} {result['epoch']:8.4f} s {pairs} {memory}")


def show_ratios(medians: dict[str, dict[str, float]]) -> None:
    ours, alone = medians[HEADRACE], medians[HEADRACE_ON_ONE]
    books = [result for name, result in medians.items() if name.startswith(BOOK)]
    if books:
        best = {key: min(book[key] for book in books) for key in ("preparation", "epoch", "memory")}
        faster = [f"{key} {best[key] / ours[key]:.0f}" for key in ("preparation", "epoch")]
        print(
            f"times the book: {', '.join(faster)}; memory {ours['memory'] / best['memory']:.2f} of the book's"
        )
    if GENSIM in medians:
        trained = medians[GENSIM]["pairs"] / medians[GENSIM]["epoch"]
        print(f"pairs a second on one core, times gensim's: {alone['pairs'] / alone['epoch'] / trained:.1f}")
    for name, result, threads in (("one core", alone, "1 thread"), ("two threads", ours, "2 threads")):
        share = medians[f"only writing, {threads}"]["epoch"] / result["epoch"]
        loops = medians[f"compiled loops alone, {threads}"]["epoch"] / result["epoch"]
        print(f"of an epoch on {name}: only writing takes {share:.0%}, the compiled loops {loops:.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=Path, default=REPOSITORY.parent / "shared" / "data" / "ptb")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5, help="of headrace in each round; the book runs one")
    parser.add_argument("--workers", type=int, nargs="*", default=[0, 2, 4], help="the book's, best counts")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        runs = contenders(arguments.root, arguments.epochs, arguments.workers)
        print(json.dumps(runs[arguments.run]()))
    else:
        compare(arguments)


if __name__ == "__main__":
    main()
