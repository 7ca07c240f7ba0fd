"""A mapped corpus and a vocabulary of millions: time to open, an epoch's pass, pairs a second, memory.

    python benchmarks/word2vec_large.py --tokens 200_000_000 --words 5_000_000 --folder /somewhere/with/room

Words are drawn from Zipf's law; sentences have 20 tokens. ``--scratch`` keeps kept tokens on disk too.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from headrace.fit.vocabulary import Vocabulary
from headrace.kernels.alias import alias_table, draw_many, integer_masses
from headrace.word2vec import Corpus, SkipGram

SENTENCE = 20
BLOCK = 1 << 22


def write_corpus(path: Path, tokens: int, words: int) -> np.ndarray:
    """Write ids of Zipf-distributed words to a flat file, and return a read-only map of it."""
    table = alias_table(integer_masses(1 / np.arange(1.0, words + 1)))
    generator = np.random.Generator(np.random.Philox(key=7))
    with path.open("wb") as file:
        for begin in range(0, tokens, BLOCK):
            random = generator.integers(0, 1 << 32, (min(BLOCK, tokens - begin), 2), dtype=np.uint32)
            (draw_many(table, random) + 2).astype(np.uint32).tofile(file)
    return np.memmap(path, np.uint32, "r")


def anonymous_bytes() -> int:
    """Return the process's memory that is no file map, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    raise OSError("this system does not tell RssAnon")


def measure(space: SkipGram, batches: int, threads: int) -> float:
    """Return pairs a second over some batches."""
    loader = space.loader(batch_size=4096, shuffle="global", threads=threads)
    iterator = iter(loader)
    next(iterator)
    begin = time.perf_counter()
    pairs = sum(int(batch["labels"].sum()) for batch, _ in zip(iterator, range(batches), strict=False))
    return pairs / (time.perf_counter() - begin)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tokens", type=int, default=50_000_000)
    parser.add_argument("--words", type=int, default=5_000_000)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--scratch", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        ids = write_corpus(Path(folder) / "ids", arguments.tokens, arguments.words)
        vocabulary = Vocabulary.fit(np.arange(arguments.words))
        before = anonymous_bytes()
        offsets = np.minimum(np.arange(0, len(ids) + SENTENCE, SENTENCE), len(ids))
        begin = time.perf_counter()
        corpus = Corpus.from_arrays(ids, offsets)
        space = SkipGram(corpus, vocabulary, subsample=1e-5, scratch=folder if arguments.scratch else None)
        opened = time.perf_counter()
        samples = space.at(0, 0)
        passed = time.perf_counter()
        memory = anonymous_bytes() - before
        print(f"{arguments.tokens:,} tokens, {len(vocabulary):,} ids, {len(samples):,} kept")
        print(f"open (count, noise) {opened - begin:.2f} s, epoch's pass {passed - opened:.2f} s")
        print(f"memory beside the map {memory / 1e6:,.0f} MB, of it borders {offsets.nbytes / 1e6:,.0f} MB")
        print(
            f"{measure(space, arguments.batches, arguments.threads) / 1e6:.2f} M pairs/s in batches of 4,096"
        )


if __name__ == "__main__":
    main()
