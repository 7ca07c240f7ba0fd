"""Tokenizing to a store on disk against the tokenizer library's own batch call, on the same documents.

    python benchmarks/tokenize_text.py --books ../shared/data/gutenberg --tokenizers ../shared/data/tokenizers

The library's call makes ids in memory and nothing else; headrace's reads documents, checks ids,
narrows them and writes shards. Medians of interleaved rounds.
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.text import tokenize
from headrace.text.tokenizer import as_tokenizer


def paragraphs(folder: Path, copies: int) -> list[str]:
    """Return the paragraphs of all books, several times over."""
    texts = [gzip.decompress(path.read_bytes()).decode("utf-8-sig") for path in sorted(folder.glob("*.gz"))]
    return [part for text in texts for part in text.split("\n\n") if part.strip()] * copies


def seconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def to_disk(docs: list[str], tokenizer: Any, threads: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tokenize(docs, tokenizer, Path(folder) / "store", threads=threads)


def main() -> None:
    """Compare for two libraries."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--books", type=Path, default=Path("../shared/data/gutenberg"))
    parser.add_argument("--tokenizers", type=Path, default=Path("../shared/data/tokenizers"))
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    threads = os.cpu_count() or 1
    docs = paragraphs(arguments.books, arguments.copies)
    megabytes = sum(len(text.encode()) for text in docs) / 1e6
    bpe = as_tokenizer(arguments.tokenizers / "claude2")
    gpt2 = as_tokenizer(arguments.tokenizers / "gpt2")
    ways: dict[str, Callable[[], Any]] = {
        "tokenizers, encode_batch_fast": lambda: bpe.backend.encode_batch_fast(
            docs, add_special_tokens=False
        ),  # type: ignore[attr-defined]
        "headrace, same tokenizer, to disk": lambda: to_disk(docs, bpe.backend, threads),  # type: ignore[attr-defined]
        "tiktoken, encode_ordinary_batch": lambda: gpt2.encoding.encode_ordinary_batch(
            docs, num_threads=threads
        ),  # type: ignore[attr-defined]
        "headrace, same encoding, to disk": lambda: to_disk(docs, gpt2.encoding, threads),  # type: ignore[attr-defined]
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(arguments.repeats):
        for name, call in ways.items():
            found[name].append(megabytes / seconds(call))
    print(f"{len(docs):,} documents, {megabytes:.1f} MB, {threads} threads")
    for name, rates in found.items():
        print(f"{name:<40} {statistics.median(rates):>7.2f} MB/s")


if __name__ == "__main__":
    main()
