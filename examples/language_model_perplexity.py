"""Perplexity of a long text under a stride, by two roads that must meet.

A model with a window of W tokens cannot read a book at once. With a stride S < W every token
but the first few is predicted from at least W - S tokens before it. ``overlap_labels=False``
scores each token exactly once, in the first window that can hold it:

    perplexity = exp(-mean over tokens of log p(token | its window's tokens before it))

The plain definition does that token by token, without windows: slow, and independent.

Run: python examples/language_model_perplexity.py --text ../shared/data/timemachine/timemachine.txt
"""

from __future__ import annotations

import argparse
import math
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax

from headrace.text import Windows

WINDOW, STRIDE, WIDTH, VOCABULARY = 32, 8, 48, 256


class Model(nn.Module):
    """A small causal transformer over bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(WINDOW, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits [B, W, vocabulary] for ids int64 [B, W]."""
        width = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(width)
        x = self.tokens(ids) + self.places(torch.arange(width))
        logits: Tensor = self.head(self.layers(x, mask=mask, is_causal=True))
        return logits


def train(model: Model, text: list[int], steps: int) -> None:
    """Train a little, so that the perplexity is one of a model that knows something."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loader = Windows([text], WINDOW, tail="drop").loader(batch_size=16, shuffle="global", output="torch")
    for batch in islice(loader, steps):
        loss = cross_entropy(model(batch["input_ids"]).flatten(0, 1), batch["labels"].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def by_windows(model: Model, text: list[int]) -> tuple[float, int]:
    """Return perplexity and number of scored tokens, in batches of windows."""
    windows = Windows([text], WINDOW, STRIDE, overlap_labels=False)
    total, count = 0.0, 0
    for batch in windows.loader(batch_size=32, output="torch"):
        labels = batch["labels"].flatten()
        logits = model(batch["input_ids"]).flatten(0, 1)
        total += float(cross_entropy(logits, labels, ignore_index=-100, reduction="sum"))
        count += int((labels != -100).sum())
    return math.exp(total / count), count


@torch.no_grad()
def by_definition(model: Model, text: list[int]) -> tuple[float, int]:
    """Return the same, one token at a time."""
    total = 0.0
    for i in range(1, len(text)):
        start = max(0, -((WINDOW - i) // STRIDE)) * STRIDE
        context = torch.tensor([text[start:i]])
        total -= float(log_softmax(model(context)[0, -1], dim=-1)[text[i]])
    return math.exp(total / (len(text) - 1)), len(text) - 1


def main() -> None:
    """Train, evaluate twice, compare."""
    parser = argparse.ArgumentParser(description="Perplexity under a stride.")
    parser.add_argument("--text", type=Path, default=Path("../shared/data/timemachine/timemachine.txt"))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--tokens", type=int, default=1000)
    arguments = parser.parse_args()
    if not arguments.text.is_file():
        parser.error(f"--text {arguments.text}: there is no such file.")
    torch.manual_seed(0)
    text = list(arguments.text.read_bytes())
    model = Model()
    train(model, text[: -arguments.tokens], arguments.steps)
    model.eval()
    evaluated = text[-arguments.tokens :]
    windows, scored = by_windows(model, evaluated)
    definition, wanted = by_definition(model, evaluated)
    print(f"windows of {WINDOW}, stride {STRIDE}: perplexity {windows:.5f} over {scored} tokens")
    print(f"token by token:             perplexity {definition:.5f} over {wanted} tokens")
    assert scored == wanted
    assert math.isclose(windows, definition, rel_tol=1e-4)


if __name__ == "__main__":
    main()
