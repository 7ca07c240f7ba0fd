"""Skip-gram batches of Penn Treebank: headrace, the book's own pipeline (d2l) and gensim, side by side.

    python benchmarks/word2vec.py --root ../shared/data/ptb --repeats 3

Every contender runs in a process of its own, so that memory is its own too. Needs
``pip install d2l --no-deps`` and ``pip install gensim``; what is not installed is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
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
PICTURE_LIBRARIES = ("torchvision", "PIL", "IPython", "matplotlib_inline")
REPOSITORY = Path(__file__).resolve().parent.parent


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def consume(batches: Iterable[Any]) -> dict[str, int]:
    rows = cells = 0
    for centers, contexts_negatives, *_ in batches:
        rows += len(centers)
        cells += contexts_negatives.numel()
    return {"rows": rows, "bytes": 8 * (3 * cells + rows)}


def run_headrace(root: Path, repeats: int) -> dict[str, Any]:
    from headrace.word2vec import load_data_ptb

    warm_up(load_data_ptb)
    return measure(lambda: load_data_ptb(BATCH, WINDOW, NEGATIVES, root)[0], repeats)


def measure(prepare: Callable[[], Any], repeats: int) -> dict[str, Any]:
    """Time preparations and epochs; memory is what the first of each add to the process's peak."""
    before = peak_bytes()
    first, batches = timed(prepare)
    second, size = timed(lambda: consume(batches))
    memory = peak_bytes() - before
    epochs = [second, *(timed(lambda: consume(batches))[0] for _ in range(repeats - 1))]
    pairs = sum(int(labels.sum()) for *_, labels in batches)
    preparations = [first, *(timed(prepare)[0] for _ in range(repeats - 1))]
    return {
        "preparation": statistics.median(preparations),
        "epoch": statistics.median(epochs),
        "pairs": pairs,
        "memory": memory,
        **size,
    }


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


def run_book(root: Path, repeats: int, workers: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(root / "ptb.zip").extractall(folder)
        d2l = load_book(Path(folder))
        d2l.get_dataloader_workers = lambda: workers
        return measure(lambda: d2l.load_data_ptb(BATCH, WINDOW, NEGATIVES)[0], repeats)


def run_gensim(root: Path, repeats: int) -> dict[str, Any]:
    """Gensim's training on one worker, of the tokens that an epoch keeps: what a batch maker must outrun."""
    import gensim

    from headrace.word2vec import load_data_ptb

    batches, vocabulary = load_data_ptb(BATCH, WINDOW, NEGATIVES, root)
    samples = batches.space.at(0, 0)
    words = vocabulary.to_tokens(samples.words)
    sentences = [words[begin:end] for begin, end in pairwise(samples.offsets.tolist())]
    pairs = sum(int(labels.sum()) for *_, labels in batches)
    model = gensim.models.Word2Vec(
        vector_size=100, window=WINDOW, negative=NEGATIVES, sg=1, sample=0, min_count=1, workers=1
    )
    seconds, _ = timed(lambda: model.build_vocab(sentences))
    epochs = [
        timed(lambda: model.train(sentences, total_examples=len(sentences), epochs=1)) for _ in range(repeats)
    ]
    return {
        "preparation": seconds,
        "epoch": statistics.median(seconds for seconds, _ in epochs),
        "pairs": pairs,
    }


def run_limit(rows: int, cells: int, repeats: int) -> dict[str, Any]:
    """Only write the same bytes: three arrays of int64 for each batch."""
    import numpy as np

    width = cells // rows

    def write() -> None:
        for begin in range(0, rows, BATCH):
            for _ in range(3):
                np.empty((min(BATCH, rows - begin), width), np.int64).fill(1)

    write()
    return {"epoch": statistics.median(timed(write)[0] for _ in range(repeats))}


def child(name: str, root: Path, repeats: int, extra: int = 0) -> dict[str, Any] | None:
    command = [sys.executable, __file__, "--run", name, "--root", str(root)]
    command += ["--repeats", str(repeats), "--extra", str(extra)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{name}: left out ({done.stderr.strip().splitlines()[-1]})", file=sys.stderr)
        return None
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def show(name: str, result: dict[str, Any]) -> None:
    pairs = f"{result['pairs'] / result['epoch'] / 1e6:8.2f} M pairs/s" if "pairs" in result else ""
    memory = f"{result['memory'] / 1e6:7.0f} MB more" if "memory" in result else ""
    print(f"{name:28} {result.get('preparation', 0):8.3f} s {result['epoch']:8.3f} s {pairs} {memory}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=REPOSITORY.parent / "shared" / "data" / "ptb")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="*", default=[0, 2, 4], help="the book's, best counts")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--extra", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        print(json.dumps(_run(arguments)))
    else:
        _compare(arguments)


def _run(arguments: argparse.Namespace) -> dict[str, Any]:
    root, repeats = arguments.root, arguments.repeats
    if arguments.run == "headrace":
        return run_headrace(root, repeats)
    if arguments.run == "gensim":
        return run_gensim(root, repeats)
    if arguments.run == "book":
        return run_book(root, repeats, arguments.extra)
    rows, width = divmod(arguments.extra, 1000)
    return run_limit(rows, rows * width, repeats)


def _compare(arguments: argparse.Namespace) -> None:
    print(f"{'':28} {'prepare':>10} {'epoch':>10}")
    ours = child("headrace", arguments.root, arguments.repeats)
    if ours is None:
        raise SystemExit("headrace itself did not run")
    show("headrace", ours)
    books = []
    for workers in arguments.workers:
        book = child("book", arguments.root, arguments.repeats, workers)
        if book is not None:
            show(f"the book, {workers} workers", book)
            books.append(book)
    gensim = child("gensim", arguments.root, arguments.repeats)
    if gensim is not None:
        show("gensim, trains on 1 core", gensim)
    width = ours["bytes"] // (24 * ours["rows"])
    limit = child("limit", arguments.root, arguments.repeats, ours["rows"] * 1000 + width)
    if limit is not None:
        share = limit["epoch"] / ours["epoch"]
        print(f"only writing the same bytes: {limit['epoch']:.3f} s, {share:.0%} of ours")
    if books:
        print("times the book:", ", ".join(_ratios(ours, books)))


def _ratios(ours: dict[str, Any], books: list[dict[str, Any]]) -> list[str]:
    best = {name: min(book[name] for book in books) for name in ("preparation", "epoch", "memory")}
    faster = [f"{name} {best[name] / ours[name]:.0f}" for name in ("preparation", "epoch")]
    return [*faster, f"memory {ours['memory'] / best['memory']:.2f}"]


if __name__ == "__main__":
    main()
