"""Train a small GPT on real books, with two ways of packing, on the CPU in minutes.

The books are cut into paragraphs, and a paragraph a row leaves almost a third of all places empty;
packed rows are full. Both runs take the same number of steps; what
differs is how many tokens the model sees in them.

Run: python examples/language_model_training.py --books ../shared/data/gutenberg --steps 600
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from headrace.text import Tokens, Windows, document_mask, tokenize

WINDOW, WIDTH, HEADS, LAYERS = 256, 128, 4, 4
END = 256


class Bytes:
    """A tokenizer of 256 bytes and an end token: nothing to download."""

    vocab_size = END + 1
    eos_token_id = END
    fingerprint = "bytes"

    def __call__(self, text: str) -> list[int]:
        """Return the text's UTF-8 bytes."""
        return list(text.encode())


def paragraphs(folder: Path) -> Iterator[str]:
    """Yield the paragraphs of all books in a folder, plain or gzip."""
    for path in sorted(folder.glob("*.txt*")):
        opener: Any = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8-sig") as file:
            for part in file.read().replace("\r\n", "\n").split("\n\n"):
                if part.strip():
                    yield " ".join(part.split())


class Block(nn.Module):
    """Attention and a feed-forward network, each with a norm before it."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return [B, W, width]."""
        rows, columns, _ = x.shape
        heads = self.qkv(self.norms[0](x)).view(rows, columns, 3, HEADS, WIDTH // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x + self.out(attended.transpose(1, 2).reshape(rows, columns, WIDTH))
        result: Tensor = x + self.feed(self.norms[1](x))
        return result


class GPT(nn.Module):
    """A decoder that takes a window's five arrays as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(END + 1, WIDTH)
        self.places = nn.Embedding(WINDOW, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, END + 1, bias=False)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return logits [B, W, vocabulary]."""
        x = self.tokens(batch["input_ids"]) + self.places(batch["position_ids"])
        mask = document_mask(batch["segment_ids"])
        for block in self.blocks:
            x = block(x, mask)
        logits: Tensor = self.head(self.norm(x))
        return logits


def loss_of(model: GPT, batch: dict[str, Tensor]) -> Tensor:
    """Return the mean loss over live labels, in nats a token."""
    return cross_entropy(model(batch).flatten(0, 1), batch["labels"].flatten(), ignore_index=-100)


OUTPUTS = ("input_ids", "labels", "segment_ids", "position_ids", "length")


@torch.no_grad()
def validate(model: GPT, store: Path, batches: int) -> float:
    """Return the loss on the valid split, one paragraph a row, whatever the training did."""
    windows = Windows(Tokens.open(store, "valid"), WINDOW, eos=END, outputs=OUTPUTS)
    loader = windows.loader(batch_size=32, shuffle="global", output="torch")
    losses = [float(loss_of(model, batch)) for batch in islice(loader, batches)]
    return sum(losses) / len(losses)


class Outcome(NamedTuple):
    """What a run saw and learned."""

    tokens: int
    losses: list[float]
    validation: float


def train(store: Path, how: dict[str, Any], steps: int, batch_size: int) -> Outcome:
    """Train for some steps, and print what was seen."""
    torch.manual_seed(0)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    windows = Windows(Tokens.open(store, "train"), WINDOW, outputs=OUTPUTS, **how)
    loader = windows.loader(batch_size=batch_size, shuffle="global", seed=1, output="torch")
    losses, seen, begin = [], 0, time.perf_counter()
    for step, batch in enumerate(islice(loader, steps)):
        loss = loss_of(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seen += int(batch["length"].sum())
        if step % max(1, steps // 6) == 0:
            print(f"    step {step:>4}  loss {losses[-1]:.3f}")
    seconds = time.perf_counter() - begin
    share = seen / (len(losses) * batch_size * WINDOW)
    validation = validate(model, store, batches=1 + steps // 20)
    print(f"    {seen:,} tokens in {seconds:.0f} s, {share:.0%} of all places held one")
    print(f"    validation loss {validation:.3f}")
    return Outcome(seen, losses, validation)


def compare(padded: Outcome, packed: Outcome) -> None:
    """Print what packing changed."""
    for name, run in (("padded", padded), ("packed", packed)):
        fall = sum(run.losses[:5]) / 5 - sum(run.losses[-5:]) / 5
        print(f"{name}: the loss fell by {fall:.3f}")
    print(
        f"in as many steps the packed run saw {packed.tokens / padded.tokens:.2f} times the tokens; its "
        f"validation loss is {padded.validation - packed.validation:.3f} lower"
    )


def main() -> None:
    """Tokenize once, train twice."""
    parser = argparse.ArgumentParser(description="Train a small GPT on books.")
    parser.add_argument("--books", type=Path, default=Path("../shared/data/gutenberg"))
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--paragraphs", type=int, default=None, help="only so many of the books' paragraphs")
    arguments = parser.parse_args()
    if not any(arguments.books.glob("*.txt*")):
        parser.error(f"--books {arguments.books}: there is no *.txt in it.")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "books"
        texts = islice(paragraphs(arguments.books), arguments.paragraphs)
        tokenize(texts, Bytes(), store, split={"valid": 0.02})
        runs = []
        for name, how in (("padded", {"eos": END}), ("packed, best fit", {"pack": "best_fit"})):
            print(f"{name}: {len(Windows(Tokens.open(store, 'train'), WINDOW, **how)):,} rows")
            runs.append(train(store, how, arguments.steps, arguments.batch_size))
        compare(*runs)


if __name__ == "__main__":
    main()
