"""Tokenizing to a store on disk against the tokenizer library's own batch call: same documents, same cores.

    python benchmarks/tokenize_text.py --books ../shared/data/gutenberg --tokenizers ../shared/data/tokenizers

The library's call makes ids in memory and nothing else; headrace's reads documents, hashes them, checks ids,
narrows them and writes shards. The two run in turn, back to back, so that what else the machine does meets
both alike; the ratio is the median of the rounds' ratios. Beside wall time stands processor time, which a
busy machine changes less. A run of headrace pays once for describing the tokenizer and for syncing its
files, so that few and more documents stand side by side. Each side has a ``tokenizers`` object of its own,
since headrace lets its own remember more words.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer

from headrace.text import tokenize
from headrace.text.tokenizer import as_tokenizer

Call = Callable[[], Any]


class Took(NamedTuple):
    """Seconds of one call."""

    wall: float
    cpu: float


def paragraphs(folder: Path, copies: int) -> list[str]:
    """Return the paragraphs of all books, several times over."""
    texts = [gzip.decompress(path.read_bytes()).decode("utf-8-sig") for path in sorted(folder.glob("*.gz"))]
    return [part for text in texts for part in text.split("\n\n") if part.strip()] * copies


def measure(call: Call) -> Took:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return Took(time.perf_counter() - wall, time.process_time() - cpu)


def to_disk(docs: list[str], tokenizer: Any, threads: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tokenize(docs, tokenizer, Path(folder) / "store", threads=threads)


def sentencepiece_of(docs: list[str]) -> Any:
    """Train a small unigram model on some of the documents."""
    import sentencepiece

    model = io.BytesIO()
    lines = (line for doc in docs[:4000] for line in doc.splitlines())
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=model, vocab_size=8000, minloglevel=2, byte_fallback=True
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def pairs(docs: list[str], tokenizers: Path, threads: int) -> dict[str, tuple[Call, Call]]:
    """Return for each library its own batch call, and headrace's with the same tokenizer."""
    bpe, own_bpe = (Tokenizer.from_file(str(tokenizers / "claude2" / "tokenizer.json")) for _ in range(2))
    gpt2: Any = as_tokenizer(tokenizers / "gpt2")
    pieces = sentencepiece_of(docs)
    return {
        "tokenizers, encode_batch_fast": (
            lambda: bpe.encode_batch_fast(docs, add_special_tokens=False),
            lambda: to_disk(docs, own_bpe, threads),
        ),
        "tiktoken, encode_ordinary_batch": (
            lambda: gpt2.encoding.encode_ordinary_batch(docs, num_threads=threads),
            lambda: to_disk(docs, gpt2.encoding, threads),
        ),
        "sentencepiece, encode": (
            lambda: pieces.encode(docs, num_threads=threads),
            lambda: to_disk(docs, pieces, threads),
        ),
    }


def main() -> None:
    """Compare for three libraries, with few and with more documents."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--books", type=Path, default=Path("../shared/data/gutenberg"))
    parser.add_argument("--tokenizers", type=Path, default=Path("../shared/data/tokenizers"))
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 3, 10])
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    for copies in arguments.copies:
        compare(paragraphs(arguments.books, copies), arguments.tokenizers, arguments.repeats)


def compare(docs: list[str], tokenizers: Path, repeats: int) -> None:
    """Print what both do with the same documents."""
    threads = os.cpu_count() or 1
    megabytes = sum(len(text.encode()) for text in docs) / 1e6
    print(f"{len(docs):,} documents, {megabytes:.1f} MB, {threads} threads, {repeats} rounds")
    print(
        f"{'':<34} {'library':>10} {'headrace':>10} {'ratio':>7} {'lowest':>7} {'highest':>8} {'by CPU':>7}"
    )
    for name, (library, ours) in pairs(docs, tokenizers, threads).items():
        library()
        ours()
        rounds = [(measure(library), measure(ours)) for _ in range(repeats)]
        ratios = [theirs.wall / own.wall for theirs, own in rounds]
        cpu = statistics.median(theirs.cpu / own.cpu for theirs, own in rounds)
        rates = [megabytes / statistics.median(took[side].wall for took in rounds) for side in (0, 1)]
        print(
            f"{name:<34} {rates[0]:>5.1f} MB/s {rates[1]:>5.1f} MB/s {statistics.median(ratios):>7.0%} "
            f"{min(ratios):>7.0%} {max(ratios):>8.0%} {cpu:>7.0%}"
        )


if __name__ == "__main__":
    main()
