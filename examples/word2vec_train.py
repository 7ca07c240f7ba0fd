"""Train word vectors in torch on batches from headrace, and print nearest neighbours.

    python examples/word2vec_train.py --files ../shared/data/ptb/ptb.train.txt.gz --words bank chip
    python examples/word2vec_train.py --files corpus/*.txt.zst --model cbow --epochs 2

Texts hold one sentence a line. On Penn Treebank five epochs take a minute or two of one core.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import torch

from headrace.fit.vocabulary import Vocabulary
from headrace.word2vec import CBOW, SkipGram, read_corpus

FIRST_RATE, LAST_RATE = 0.025, 0.0001


@dataclass
class Vectors:
    """Word vectors, trained by plain gradient descent as word2vec does."""

    inputs: torch.Tensor
    """float32 [V, D], what is kept at the end."""
    outputs: torch.Tensor
    """float32 [V, D], what words are predicted with."""

    @classmethod
    def start(cls, size: int, dim: int, seed: int) -> Vectors:
        """Draw inputs uniformly from ``±1 / dim``; outputs are zero."""
        generator = torch.Generator().manual_seed(seed)
        inputs = (2 * torch.rand(size, dim, generator=generator) - 1) / dim
        return cls(inputs, torch.zeros(size, dim))

    def skip_gram(self, batch: dict[str, torch.Tensor], rate: float) -> None:
        """Let centres predict their contexts against the noise."""
        centers, words = batch["centers"][:, 0], batch["contexts_negatives"]
        hidden = self.inputs[centers]
        error = self._error(hidden, words, batch["labels"], batch["masks"], rate)
        self.inputs.index_add_(0, centers, torch.bmm(error.unsqueeze(1), self.outputs[words]).squeeze(1))
        self._learn_outputs(words, error, hidden)

    def cbow(self, batch: dict[str, torch.Tensor], rate: float) -> None:
        """Let the mean of the contexts predict the centre against the noise."""
        words, contexts = batch["contexts_negatives"], batch["labels"]
        share = contexts / contexts.sum(1, keepdim=True)
        hidden = torch.bmm(share.unsqueeze(1), self.inputs[words]).squeeze(1)
        candidates = torch.cat([batch["centers"], words], 1)
        right = torch.zeros_like(candidates)
        right[:, 0] = 1
        live = torch.cat([right[:, :1], batch["masks"] - contexts], 1)
        error = self._error(hidden, candidates, right, live, rate)
        change = torch.bmm(error.unsqueeze(1), self.outputs[candidates])
        change = contexts.unsqueeze(2) * change  # word2vec moves each context by the whole gradient
        self.inputs.index_add_(0, words.flatten(), change.flatten(0, 1))
        self._learn_outputs(candidates, error, hidden)

    def _error(
        self,
        hidden: torch.Tensor,
        words: torch.Tensor,
        labels: torch.Tensor,
        masks: torch.Tensor,
        rate: float,
    ) -> torch.Tensor:
        """Return the rate times the gradient of the logistic loss, float32 [B, M]."""
        scores = torch.bmm(self.outputs[words], hidden.unsqueeze(2)).squeeze(2)
        return (labels - torch.sigmoid(scores)) * masks * rate

    def _learn_outputs(self, words: torch.Tensor, error: torch.Tensor, hidden: torch.Tensor) -> None:
        change = error.unsqueeze(2) * hidden.unsqueeze(1)
        self.outputs.index_add_(0, words.flatten(), change.flatten(0, 1))


def train(space: SkipGram | CBOW, *, epochs: int, dim: int, seed: int, batch_size: int = 512) -> Vectors:
    """Train vectors; the rate falls linearly over all steps."""
    vectors = Vectors.start(len(space.vocabulary), dim, seed)
    step = vectors.cbow if isinstance(space, CBOW) else vectors.skip_gram
    loader = space.loader(batch_size=batch_size, shuffle="global", seed=seed, output="torch")
    steps = epochs * len(loader)
    done = 0
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        for batch in loader:
            step(batch, max(FIRST_RATE * (1 - done / steps), LAST_RATE))
            done += 1
    return vectors


def neighbours(vectors: Vectors, vocabulary: Vocabulary, word: str, count: int = 5) -> list[str]:
    """Return the words nearest to a word by cosine."""
    unit = torch.nn.functional.normalize(vectors.inputs, dim=1)
    similarity = unit @ unit[vocabulary[word]]
    similarity[: vocabulary.rules.first_id] = -1
    nearest: list[Any] = torch.topk(similarity, count + 1).indices.tolist()
    return [token for token in vocabulary.to_tokens(nearest) if token != word][:count]


def main() -> None:
    """Train on the files of the command line, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", nargs="+", required=True, help="paths or globs of texts")
    parser.add_argument("--model", choices=["skip-gram", "cbow"], default="skip-gram")
    parser.add_argument("--min-count", type=int, default=10)
    parser.add_argument("--subsample", type=float, default=1e-4)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--words", nargs="*", default=[], help="whose neighbours to print")
    arguments = parser.parse_args()

    corpus, vocabulary = read_corpus(arguments.files, arguments.min_count)
    kind = CBOW if arguments.model == "cbow" else SkipGram
    space = kind(corpus, vocabulary, subsample=arguments.subsample)
    print(f"{corpus.num_tokens:,} tokens in {corpus.num_sentences:,} sentences, {len(vocabulary):,} ids")
    begin = time.perf_counter()
    vectors = train(
        space,
        epochs=arguments.epochs,
        dim=arguments.dim,
        seed=arguments.seed,
        batch_size=arguments.batch_size,
    )
    print(f"{arguments.epochs} epochs in {time.perf_counter() - begin:.0f} s")
    for word in arguments.words or [word for word, _ in vocabulary.token_freqs[100:110]]:
        print(f"{word:>15}: {', '.join(neighbours(vectors, vocabulary, word))}")


if __name__ == "__main__":
    main()
