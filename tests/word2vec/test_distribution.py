"""Draws against their distributions by chi-square; each test also rejects a near miss (its power)."""

from __future__ import annotations

import collections
import math
import random  # noqa: TID251 - the independent version of the book's steps draws with it
from collections.abc import Iterator
from itertools import chain

import numpy as np
import pytest

from headrace.fit.vocabulary import Vocabulary
from headrace.word2vec import Corpus, SkipGram

ACCEPT, REJECT = 4.0, 8.0
"""Standard deviations: a right distribution stays below the first, a wrong one is above the second."""
EPOCHS = 10
THRESHOLD = 1e-3

Row = tuple[int, list[int], list[int]]


def surprise(observed: np.ndarray, expected: np.ndarray, variance: np.ndarray | None = None) -> float:
    """Chi-square as a standard normal value (E. Wilson and M. Hilferty, PNAS 17, 1931).

    Without a variance the cells are a multinomial's, and one degree of freedom is spent.
    """
    spread = expected if variance is None else variance
    used = spread >= 5
    freedom = int(used.sum()) - (variance is None)
    statistic = float(((observed - expected)[used] ** 2 / spread[used]).sum())
    return ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))


def surprise_of_two(first: np.ndarray, second: np.ndarray) -> float:
    """Chi-square of two samples of one unknown distribution, as a standard normal value."""
    total = first + second
    share = first.sum() / total.sum()
    return surprise(first, total * share, total * share * (1 - share))


def surprise_of_kept(first: np.ndarray, second: np.ndarray, counts: np.ndarray) -> float:
    """Chi-square of two binomial counts, each out of ``counts``, as a standard normal value."""
    mean = (first + second) / 2
    return surprise(first, mean, mean * (1 - mean / np.maximum(counts, 1)) / 2)


@pytest.fixture(scope="module")
def sentences() -> list[list[str]]:
    """3,000 sentences of Zipf-distributed words, 2 to 30 long."""
    generator = random.Random(7)
    words = [f"w{rank}" for rank in range(100)]
    weights = [1 / (rank + 1) for rank in range(100)]
    return [generator.choices(words, weights, k=generator.randint(2, 30)) for _ in range(3000)]


@pytest.fixture(scope="module")
def vocabulary(sentences: list[list[str]]) -> Vocabulary:
    return Vocabulary.fit([word for sentence in sentences for word in sentence])


def rows_of(space: SkipGram, epochs: int, seed: int = 0) -> Iterator[Row]:
    for epoch in range(epochs):
        samples = space.at(seed, epoch)
        places = np.arange(len(samples))
        batch = samples.gather(places, places.astype(np.uint64))
        live = batch["masks"].sum(axis=1)
        contexts = batch["labels"].sum(axis=1)
        for row, filled in enumerate(batch["contexts_negatives"].tolist()):
            end = contexts[row]
            yield int(batch["centers"][row, 0]), filled[:end], filled[end : live[row]]


def test_kept_counts(sentences: list[list[str]], vocabulary: Vocabulary) -> None:
    joined = [[*chain.from_iterable(sentences[begin : begin + 100])] for begin in range(0, 3000, 100)]
    space = SkipGram(joined, vocabulary, subsample=THRESHOLD)
    epochs = [space.at(0, epoch) for epoch in range(EPOCHS)]
    assert [len(samples) for samples in epochs] == [space.lengths(0, k).sum() for k in range(EPOCHS)]
    kept = sum(np.bincount(samples.words, minlength=len(vocabulary)) for samples in epochs)

    def against(chance: np.ndarray) -> float:
        expected = EPOCHS * space.counts * chance
        return surprise(kept, expected, expected * (1 - chance))

    assert against(space.keep_probabilities) < ACCEPT
    ratio = THRESHOLD * space.counts.sum() / np.maximum(space.counts, 1)
    assert against(np.where(space.counts > 0, np.minimum(1, np.sqrt(ratio) + ratio), 0)) > REJECT  # gensim's
    assert against(space.keep_probabilities * 0.97) > REJECT


def test_windows_are_uniform(vocabulary: Vocabulary) -> None:
    ids = np.resize(np.arange(2, len(vocabulary), dtype=np.uint16), 60_000)
    space = SkipGram(Corpus.from_arrays(ids, [0, len(ids)]), vocabulary, 5, 0, subsample=None)
    sizes = np.array([len(contexts) for _, contexts, _ in rows_of(space, 1)])[5:-5]
    assert not (sizes % 2).any()
    counts = np.bincount(sizes // 2)[1:]
    assert surprise(counts, np.full(5, len(sizes) / 5)) < ACCEPT
    assert surprise(counts, np.array([0.18, 0.2, 0.2, 0.2, 0.22]) * len(sizes)) > REJECT


def test_noise_without_the_contexts(sentences: list[list[str]], vocabulary: Vocabulary) -> None:
    space = SkipGram(sentences[:1500], vocabulary, subsample=None)
    rows = list(rows_of(space, 1))
    observed = np.bincount([word for *_, noise in rows for word in noise], minlength=len(vocabulary))

    def expected(power: float, exclude: bool = True) -> np.ndarray:
        chance = np.where(space.counts > 0, space.counts.astype(float) ** power, 0)
        chance /= chance.sum()
        total = np.zeros(len(vocabulary))
        for _, contexts, noise in rows:
            banned = [*set(contexts)] if exclude else []
            share = len(noise) / (1 - chance[banned].sum())
            total += share * chance
            total[banned] -= share * chance[banned]
        return total

    assert surprise(observed, expected(0.75)) < ACCEPT
    assert surprise(observed, expected(0.73)) > REJECT
    assert surprise(observed, expected(0.75, exclude=False)) > REJECT


def test_window_and_negatives_of_a_centre_are_independent(vocabulary: Vocabulary) -> None:
    words = np.arange(2, len(vocabulary), dtype=np.uint16)
    ids = np.resize(words, 60_000)
    space = SkipGram(Corpus.from_arrays(ids, [0, len(ids)]), vocabulary, 5, 2, "center", None, power=0)
    inner = list(rows_of(space, 1))[5:-5]
    middle = np.median(words)
    cells = [(len(ctx) // 2 - 1, 2 * (noise[0] > middle) + (noise[1] > middle)) for _, ctx, noise in inner]
    table = np.zeros((5, 4))
    np.add.at(table, tuple(np.array(cells).T), 1)
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
    assert surprise(table.ravel(), expected.ravel()) < ACCEPT
    tilted = expected.copy()
    tilted[0, 0] *= 1.3
    assert surprise(table.ravel(), tilted.ravel()) > REJECT


class Book:
    """The steps of *Dive into Deep Learning*, section 15.3, written anew in plain Python."""

    def __init__(self, sentences: list[list[str]], vocabulary: Vocabulary, seed: int) -> None:
        self.random = random.Random(seed)
        self.sentences = [vocabulary[sentence] for sentence in sentences]
        self.counter = collections.Counter(word for sentence in self.sentences for word in sentence)
        self.total = sum(self.counter.values())
        self.words = sorted(self.counter)
        self.weights = [self.counter[word] ** 0.75 for word in self.words]

    def subsampled(self) -> list[list[int]]:
        return [
            [
                word
                for word in sentence
                if self.random.random() < math.sqrt(THRESHOLD / (self.counter[word] / self.total))
            ]
            for sentence in self.sentences
        ]

    def rows(self, window: int, negatives: int) -> Iterator[Row]:
        for sentence in self.subsampled():
            if len(sentence) < 2:
                continue
            for place, center in enumerate(sentence):
                size = self.random.randint(1, window)
                near = range(max(0, place - size), min(len(sentence), place + size + 1))
                contexts = [sentence[k] for k in near if k != place]
                yield center, contexts, self.noise(contexts, negatives)

    def noise(self, contexts: list[int], negatives: int) -> list[int]:
        drawn: list[int] = []
        while len(drawn) < negatives * len(contexts):
            candidates = self.random.choices(self.words, self.weights, k=negatives * len(contexts))
            drawn += [word for word in candidates if word not in contexts]
        return drawn[: negatives * len(contexts)]


def tallies(rows: list[Row], size: int) -> dict[str, np.ndarray]:
    return {
        "contexts": np.bincount([len(contexts) for _, contexts, _ in rows], minlength=11),
        "noise": np.bincount([word for *_, noise in rows for word in noise], minlength=size),
        "noise of one centre": np.bincount([len(noise) for *_, noise in rows], minlength=31),
    }


def test_agrees_with_the_book(sentences: list[list[str]], vocabulary: Vocabulary) -> None:
    size, epochs, window, negatives = len(vocabulary), 3, 5, 3
    book = Book(sentences, vocabulary, seed=1)
    drawn = [row for _ in range(epochs) for row in book.rows(window, negatives)]
    theirs = tallies(drawn, size)
    kept = np.bincount([center for center, _, _ in drawn], minlength=size)
    options = {"window": window, "negatives": negatives, "subsample": THRESHOLD}

    def against_the_book(**changes: float) -> dict[str, float]:
        space = SkipGram(sentences, vocabulary, **(options | changes))  # type: ignore[arg-type]
        rows = list(rows_of(space, epochs))
        ours = tallies(rows, size)
        centers = np.bincount([center for center, _, _ in rows], minlength=size)
        surprises = {name: surprise_of_two(ours[name], theirs[name]) for name in theirs}
        return surprises | {"centers": surprise_of_kept(centers, kept, epochs * space.counts)}

    assert max(against_the_book().values()) < ACCEPT
    assert against_the_book(subsample=0.8 * THRESHOLD)["centers"] > REJECT
    assert against_the_book(window=4)["contexts"] > REJECT
    assert against_the_book(power=0.65)["noise"] > REJECT
    assert against_the_book(negatives=2)["noise of one centre"] > REJECT
