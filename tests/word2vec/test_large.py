"""Vocabularies of millions, and corpora that stay on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.fit.vocabulary import Vocabulary
from headrace.word2vec import Corpus, SkipGram

psutil = pytest.importorskip("psutil")

WORDS = 5_000_000
TOKENS = 12_000_000


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.fit(np.arange(WORDS))


def test_five_million_words(vocabulary: Vocabulary) -> None:
    ids = (np.arange(TOKENS, dtype=np.uint64) * 2_654_435_761 % WORDS + 2).astype(np.uint32)
    space = SkipGram(Corpus.from_arrays(ids, np.arange(0, TOKENS + 1, 20)), vocabulary, subsample=1e-6)
    samples = space.at(0, 0)
    assert samples.kept.dtype == np.uint32
    rows = np.arange(0, len(samples), len(samples) // 4096)[:4096]
    batch = samples.gather(rows, rows.astype(np.uint64))
    noise = batch["contexts_negatives"][(batch["masks"] == 1) & (batch["labels"] == 0)]
    assert noise.min() >= 2
    assert noise.max() < WORDS + 2
    assert len(np.unique(noise)) > 0.95 * len(noise)  # of 100,000 draws from 5 million few meet


def test_a_mapped_corpus_costs_memory_for_kept_tokens_only(vocabulary: Vocabulary, tmp_path: Path) -> None:
    path = tmp_path / "ids"
    ids = np.lib.format.open_memmap(path, "w+", np.uint32, (TOKENS,))
    ids[:] = np.arange(TOKENS) % 1000 + 2
    ids.flush()
    mapped = np.load(path, mmap_mode="r")
    space = SkipGram(Corpus.from_arrays(mapped, [0, TOKENS]), vocabulary, subsample=1e-5, scratch=tmp_path)
    before = anonymous_bytes()
    samples = space.at(0, 0)
    assert len(samples) == pytest.approx(TOKENS * 0.1, rel=0.01)
    assert anonymous_bytes() - before < TOKENS  # its ids are 4 bytes a token, and so is their room


def anonymous_bytes() -> int:
    memory = psutil.Process().memory_info()
    return int(memory.rss - memory.shared)
