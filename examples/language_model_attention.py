"""Attention masks from windows: one document cannot see another.

Three documents share a row. One of them is changed, and nothing that the model computes
for the others may change, whichever of torch's attention functions takes the mask:

    scaled_dot_product_attention    document_mask, causal or not
    MultiheadAttention              the same, negated (True means "may not attend" there)
    flex_attention                  segment_ids in a mask function
    nested tensors                  cu_seqlens as offsets: no padding, no mask
    variable-length attention       cu_seqlens, sequence by sequence as such kernels do

Run: python examples/language_model_attention.py
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from headrace.text import Windows, cu_seqlens, document_mask

WIDTH, HEADS, WINDOW = 32, 4, 16
DOCUMENTS = [[5, 6, 7, 8], [9, 10, 11], [12, 13, 14, 15, 16]]
CHANGED = [[1, 2, 3, 4], *DOCUMENTS[1:]]


def batch_of(documents: list[list[int]]) -> dict[str, torch.Tensor]:
    """Return the documents in one padded row."""
    windows = Windows(documents, WINDOW, pack="concat", eos=0, outputs=("input_ids", "segment_ids"))
    batch: dict[str, torch.Tensor] = next(iter(windows.loader(batch_size=1, output="torch")))
    return batch


def queries(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return float32 [B, heads, W, width / heads]: query, key and value at once, for simplicity."""
    torch.manual_seed(0)
    embedded = torch.nn.Embedding(20, WIDTH)(batch["input_ids"])
    return embedded.reshape(1, WINDOW, HEADS, -1).transpose(1, 2)


def with_mask(batch: dict[str, torch.Tensor], causal: bool) -> torch.Tensor:
    """Attend with ``scaled_dot_product_attention``."""
    x = queries(batch)
    return scaled_dot_product_attention(x, x, x, attn_mask=document_mask(batch["segment_ids"], causal=causal))


def with_multihead(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Attend with ``torch.nn.MultiheadAttention``, whose mask says what may *not* be seen."""
    x = queries(batch).transpose(1, 2).reshape(1, WINDOW, WIDTH)
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    forbidden = ~document_mask(batch["segment_ids"])[:, 0].repeat_interleave(HEADS, dim=0)
    result: torch.Tensor = attention(x, x, x, attn_mask=forbidden)[0]
    return result.reshape(1, WINDOW, HEADS, -1).transpose(1, 2)


def with_flex(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Attend with ``flex_attention``, which takes the rule itself."""
    segments = batch["segment_ids"]

    def rule(row: Any, head: Any, query: Any, key: Any) -> Any:
        del head
        same = (segments[row, query] == segments[row, key]) & (segments[row, query] > 0) & (query >= key)
        return same | (query == key)

    x = queries(batch)
    mask = create_block_mask(rule, 1, None, WINDOW, WINDOW, device="cpu")
    result: torch.Tensor = flex_attention(x, x, x, block_mask=mask)
    return result


def with_lengths(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Attend sequence by sequence, as variable-length kernels do; padding never enters."""
    borders, _, places = cu_seqlens(batch["segment_ids"])
    sequences = torch.tensor_split(packed(batch, places), borders[1:-1].long())
    attended = [
        scaled_dot_product_attention(*[s.transpose(0, 1)] * 3, is_causal=True).transpose(0, 1)
        for s in sequences
    ]
    return unpacked(torch.cat(attended), places)


def with_nested(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Attend both ways over a nested tensor, whose offsets are ``cu_seqlens``; padding never enters."""
    borders, _, places = cu_seqlens(batch["segment_ids"])
    nested = torch.nested.nested_tensor_from_jagged(packed(batch, places), borders.long()).transpose(1, 2)
    attended = scaled_dot_product_attention(nested, nested, nested).transpose(1, 2)
    return unpacked(attended.values(), places)


def packed(batch: dict[str, torch.Tensor], places: torch.Tensor) -> torch.Tensor:
    """Return float32 [tokens, heads, width / heads]: a batch without its padding."""
    return queries(batch).transpose(1, 2).reshape(WINDOW, HEADS, -1)[places]


def unpacked(values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Return float32 [B, heads, W, width / heads], zeros on padding."""
    result = torch.zeros(WINDOW, HEADS, WIDTH // HEADS)
    result[places] = values
    return result.reshape(1, WINDOW, HEADS, -1).transpose(1, 2)


@torch.no_grad()
def main() -> None:
    """Compare the others' values before and after the change."""
    warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
    warnings.filterwarnings("ignore", message="The PyTorch API of nested tensors is in prototype stage")
    logging.getLogger("torch.fx").setLevel(logging.ERROR)  # a note of torch on its own names
    before, after = batch_of(DOCUMENTS), batch_of(CHANGED)
    live = before["segment_ids"][0] > 0
    others = before["segment_ids"][0] > 1
    ways = {
        "scaled_dot_product_attention, causal": lambda batch: with_mask(batch, causal=True),
        "scaled_dot_product_attention, both ways": lambda batch: with_mask(batch, causal=False),
        "MultiheadAttention": with_multihead,
        "flex_attention": with_flex,
        "nested tensors, both ways": with_nested,
        "variable length": with_lengths,
    }
    reference = with_mask(before, causal=True)
    for name, attend in ways.items():
        one, other = attend(before), attend(after)
        assert torch.equal(one[:, :, others], other[:, :, others]), f"{name}: a document saw another"
        assert not torch.equal(one, other)
        print(f"{name:<42} the other documents' values are the same to the last bit")
    for attend in (with_flex, with_lengths):
        torch.testing.assert_close(attend(before)[:, :, live], reference[:, :, live])
    both_ways = with_mask(before, causal=False)
    torch.testing.assert_close(with_nested(before)[:, :, live], both_ways[:, :, live])
    leaky = scaled_dot_product_attention(*[queries(before)] * 3, is_causal=True)
    leaky_after = scaled_dot_product_attention(*[queries(after)] * 3, is_causal=True)
    assert not torch.equal(leaky[:, :, others], leaky_after[:, :, others])
    print("plain causal attention                     the other documents' values change: they saw it")


if __name__ == "__main__":
    main()
