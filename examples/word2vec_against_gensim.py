"""Score headrace's and gensim's skip-gram vectors with one evaluator, over several seeds.

    pip install gensim
    python examples/word2vec_against_gensim.py --train ../shared/data/ptb/ptb.train.txt.gz \
        --held-out ../shared/data/ptb/ptb.valid.txt.gz

The score is the share of held-out pairs (two words at most five apart) that the vectors rate above
a pair of the same first word and the second word of another pair. gensim reads the very tokens
that headrace's epochs keep, since its own keep rule, sqrt(t/f) + t/f, is not the paper's. Nor is its
noise: it may be any word but the predicted one, here none of the centre's contexts. So headrace is
trained twice, on its own noise and on noise drawn by gensim's rule, where what is left that differs
is how updates are batched and ordered, and which word of a pair is the input.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gensim.models import Word2Vec
from numpy.typing import NDArray

from headrace.fit.vocabulary import Vocabulary
from headrace.kernels.rng import stream_key, uniforms
from headrace.loading.space import Batch, EpochSpace
from headrace.order import Permutation
from headrace.word2vec import Corpus, SkipGram, read_corpus, read_sentences
from word2vec_train import train

WINDOW, NEGATIVES, DIM = 5, 5, 100
RESAMPLES = 2000

Trained = tuple[NDArray[Any], NDArray[Any]]
"""Input and output vectors by headrace's ids, float32 [V, D] each."""


class GensimNoise(SkipGram):
    """Skip-grams with gensim's noise: K draws a pair, of which those of the predicted word do not count."""

    def __init__(self, corpus: Corpus, vocabulary: Vocabulary, window: int, draws: int, **options: Any):
        super().__init__(corpus, vocabulary, window, 0, **options)
        self.draws = draws

    def at(self, seed: int, epoch: int) -> EpochSpace:  # type: ignore[override]
        """Return the samples of an epoch; other noise is drawn in each."""
        noise = self.noise.probabilities.cumsum()
        return NoisyEpoch(super().at(seed, epoch), self.draws, noise, stream_key(seed, epoch, "gensim"))


@dataclass(frozen=True, eq=False)
class NoisyEpoch:
    """An epoch without noise, to which it is added."""

    samples: EpochSpace
    draws: int
    """Noise words for each context."""
    cumulative: NDArray[np.float64]
    """float64 [V], running probabilities of the noise."""
    key: np.uint64
    """Of the stream that noise is drawn from, by epoch position."""

    def __len__(self) -> int:
        return len(self.samples)

    def gather(self, indices: NDArray[np.int64], keys: NDArray[np.uint64]) -> Batch:
        """Return a batch in the layout of ``SkipGram``, but that padding may stand anywhere."""
        batch = self.samples.gather(indices, keys)
        contexts, labels = batch["contexts_negatives"], batch["labels"]
        shape = (*contexts.shape, self.draws)
        places = keys[:, None] * np.uint64(1 << 32) + np.arange(shape[1] * shape[2], dtype=np.uint64)
        drawn = np.empty(places.size)
        uniforms(self.key, places.ravel(), drawn)
        noise = np.searchsorted(self.cumulative, drawn, side="right").reshape(shape)
        live = labels[:, :, None] * (noise != contexts[:, :, None])
        return {
            "centers": batch["centers"],
            "contexts_negatives": np.hstack([contexts, noise.reshape(len(indices), -1)]),
            "masks": np.hstack([labels, live.reshape(len(indices), -1)]),
            "labels": np.hstack([labels, np.zeros_like(live).reshape(len(indices), -1)]),
        }


class KeptSentences:
    """The sentences that an epoch of headrace keeps; each ``iter()`` is the next epoch."""

    def __init__(self, space: SkipGram, seed: int) -> None:
        self.space, self.seed, self.epoch = space, seed, 0
        self.names = np.array(space.vocabulary.to_tokens(range(len(space.vocabulary))), object)

    def __iter__(self) -> Iterator[list[str]]:
        samples = self.space.at(self.seed, self.epoch)
        self.epoch += 1
        words = self.names[samples.words]
        for begin, end in pairwise(samples.offsets.tolist()):
            yield words[begin:end].tolist()


def train_gensim(space: SkipGram, epochs: int, seed: int) -> Trained:
    """Train gensim, on one thread."""
    model = Word2Vec(
        vector_size=DIM, window=WINDOW, negative=NEGATIVES, sg=1, sample=0, min_count=1, workers=1, seed=seed
    )
    ids = np.flatnonzero(space.counts).tolist()
    words = space.vocabulary.to_tokens(ids)
    model.build_vocab_from_freq(dict(zip(words, space.counts[ids].tolist(), strict=True)))
    model.train(KeptSentences(space, seed), total_words=len(space.at(seed, 0)), epochs=epochs)
    inputs, outputs = (np.zeros((len(space.vocabulary), DIM), np.float32) for _ in range(2))
    places = [model.wv.key_to_index[word] for word in words]
    inputs[ids], outputs[ids] = model.wv.vectors[places], model.syn1neg[places]
    return inputs, outputs


def train_headrace(space: SkipGram, epochs: int, seed: int) -> Trained:
    """Train on headrace's batches."""
    vectors = train(space, epochs=epochs, dim=DIM, seed=seed)
    return vectors.inputs.numpy(), vectors.outputs.numpy()


def held_out_pairs(
    files: list[str], vocabulary: Vocabulary, encoding: str, most: int = 60_000
) -> NDArray[np.int64]:
    """Return pairs of known words at most a window apart, int64 [N, 2], in an order of their own."""
    corpus = Corpus.from_sentences(read_sentences(files, encoding), vocabulary)
    pairs = []
    for begin, end in pairwise(corpus.shards[0].offsets):
        row = corpus.shards[0].ids[begin:end]
        row = row[row >= vocabulary.rules.first_id].astype(np.int64)
        for distance in range(1, WINDOW + 1):
            pairs.append(np.stack([row[:-distance], row[distance:]], 1))
            pairs.append(pairs[-1][:, ::-1])
    joined = np.concatenate(pairs)
    return joined[Permutation(len(joined), 0, 0)[np.arange(min(most, len(joined)))]]


def score(vectors: Trained, pairs: NDArray[np.int64]) -> float:
    """Return the share of pairs that are rated above the pair with another pair's second word."""
    inputs, outputs = vectors
    others = pairs[Permutation(len(pairs), 1, 0)[np.arange(len(pairs))], 1]
    first = inputs[pairs[:, 0]]
    right = (first * outputs[pairs[:, 1]]).sum(1)
    wrong = (first * outputs[others]).sum(1)
    return float((right > wrong).mean() + (right == wrong).mean() / 2)


def interval(differences: list[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean difference."""
    generator = np.random.Generator(np.random.Philox(key=int(stream_key(0, 0, "bootstrap"))))
    drawn = generator.choice(differences, (RESAMPLES, len(differences))).mean(1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    """Train and score both on the files of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--train", nargs="+", required=True)
    parser.add_argument("--held-out", nargs="+", required=True)
    parser.add_argument("--min-count", type=int, default=10)
    parser.add_argument("--subsample", type=float, default=1e-4)
    parser.add_argument("--encoding", default="utf-8")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="torch's")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    corpus, vocabulary = read_corpus(arguments.train, arguments.min_count, encoding=arguments.encoding)
    space = SkipGram(corpus, vocabulary, WINDOW, NEGATIVES, subsample=arguments.subsample)
    alike = GensimNoise(corpus, vocabulary, WINDOW, NEGATIVES, subsample=arguments.subsample)
    pairs = held_out_pairs(arguments.held_out, vocabulary, arguments.encoding)
    print(f"{len(vocabulary):,} ids, {len(pairs):,} held-out pairs")
    trainers: dict[str, Callable[[int], Trained]] = {
        "headrace": lambda seed: train_headrace(space, arguments.epochs, seed),
        "headrace, gensim's noise": lambda seed: train_headrace(alike, arguments.epochs, seed),
        "gensim": lambda seed: train_gensim(space, arguments.epochs, seed),
    }
    scores: dict[str, list[float]] = {name: [] for name in trainers}
    for seed in range(arguments.seeds):
        for name, trained in trainers.items():
            scores[name].append(score(trained(seed), pairs))
        print(f"seed {seed}: {', '.join(f'{name} {of[-1]:.4f}' for name, of in scores.items())}", flush=True)
    report(scores)


def report(scores: dict[str, list[float]]) -> None:
    """Print means, and how far each is from gensim's."""
    for name, ours in scores.items():
        low, high = interval([a - b for a, b in zip(ours, scores["gensim"], strict=True)])
        print(f"{name}: mean {statistics.mean(ours):.4f}, above gensim by {low:+.4f} to {high:+.4f} (95 %)")


if __name__ == "__main__":
    main()
