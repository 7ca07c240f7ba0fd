"""The training loop of *Dive into Deep Learning*, section 15.4, over headrace's batches.

    python examples/word2vec_book.py --root ../shared/data/ptb --epochs 5

Only the line that makes ``data_iter`` is not the book's: ``load_data_ptb`` comes from headrace.
Loss, model and loop are as there, without the plots. A few minutes of one core.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from headrace.word2vec import load_data_ptb

BATCH_SIZE, MAX_WINDOW_SIZE, NUM_NOISE_WORDS = 512, 5, 5
EMBED_SIZE, LEARNING_RATE = 100, 0.002


class SigmoidBCELoss(nn.Module):
    """Binary cross-entropy with masking."""

    def forward(self, inputs: torch.Tensor, target: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the mean over a row, masked cells counting as 0."""
        out = nn.functional.binary_cross_entropy_with_logits(inputs, target, weight=mask, reduction="none")
        return out.mean(dim=1)


def skip_gram(
    center: torch.Tensor, contexts_and_negatives: torch.Tensor, embed_v: nn.Module, embed_u: nn.Module
) -> torch.Tensor:
    """Return the scores of contexts and negatives, [B, 1, M]."""
    v, u = embed_v(center), embed_u(contexts_and_negatives)
    return torch.bmm(v, u.permute(0, 2, 1))


def train(net: nn.Sequential, data_iter: Any, lr: float, num_epochs: int) -> None:
    """Train, printing the loss of each epoch and the speed."""
    for embedding in net:
        nn.init.xavier_uniform_(embedding.weight)
    loss = SigmoidBCELoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    for epoch in range(num_epochs):
        begin, num_batches = time.perf_counter(), len(data_iter)
        total = tokens = 0.0
        for i, (center, context_negative, mask, label) in enumerate(data_iter):
            optimizer.zero_grad()
            pred = skip_gram(center, context_negative, net[0], net[1])
            masked = loss(pred.reshape(label.shape).float(), label.float(), mask)
            rows = masked / mask.sum(axis=1) * mask.shape[1]
            rows.sum().backward()
            optimizer.step()
            total, tokens = total + float(rows.detach().sum()), tokens + rows.numel()
            if (i + 1) % (num_batches // 5) == 0 or i == num_batches - 1:
                print(f"epoch {epoch + (i + 1) / num_batches:.1f}: loss {total / tokens:.3f}", flush=True)
        print(f"{tokens / (time.perf_counter() - begin):,.0f} tokens/s")


def get_similar_tokens(query_token: str, k: int, embed: nn.Embedding, vocab: Any) -> None:
    """Print the words nearest by cosine."""
    weight = embed.weight.data
    x = weight[vocab[query_token]]
    cosine = torch.mv(weight, x) / torch.sqrt(torch.sum(weight * weight, dim=1) * torch.sum(x * x) + 1e-9)
    topk = torch.topk(cosine, k=k + 1)[1].cpu().numpy().astype("int32")
    for i in topk[1:]:
        print(f"cosine sim={float(cosine[i]):.3f}: {vocab.to_tokens(i)}")


def main() -> None:
    """Train on Penn Treebank, and print neighbours."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=Path, help="folder of ptb.train.txt or ptb.zip")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--words", nargs="*", default=["chip", "bank", "president"])
    arguments = parser.parse_args()
    torch.manual_seed(0)

    data_iter, vocab = load_data_ptb(BATCH_SIZE, MAX_WINDOW_SIZE, NUM_NOISE_WORDS, arguments.root)
    net = nn.Sequential(nn.Embedding(len(vocab), EMBED_SIZE), nn.Embedding(len(vocab), EMBED_SIZE))
    train(net, data_iter, LEARNING_RATE, arguments.epochs)
    for word in arguments.words:
        print(f"\n{word}")
        get_similar_tokens(word, 3, net[0], vocab)


if __name__ == "__main__":
    main()
