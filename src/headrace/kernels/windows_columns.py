"""Columns that are parallel to the tokens, into the rows of a batch."""

from __future__ import annotations

from headrace.kernels.compile import kernel
from headrace.kernels.windows_fill import values_at
from headrace.kernels.windows_segments import COLUMN, DOCUMENT, PLACE, ROW, SIZE


@kernel
def fill_column(  # type: ignore[no-untyped-def]
    segments, stored_offsets, document_offsets, shard_tokens, addresses, like, shift, out
):
    """Fill the rows of a batch with a column that is parallel to the tokens.

    An added end token takes the value of the token before it, 0 where there is none.

    Args:
        segments: int64 [5, N], from ``list_segments``.
        stored_offsets: int64 [D+1], where each document begins in the store.
        document_offsets: int64 [D+1], where each document begins when added end tokens count.
        shard_tokens: int64 [K+1], tokens of the store before each shard.
        addresses: uint64 [K], where each shard's values of the column lie.
        like: Array of the column's dtype.
        shift: 0 for the token's own value, 1 for that of the next token of its document.
        out: [B, W], filled; 0 on padding and where there is no next token.
    """
    out[:, :] = 0
    for s in range(segments.shape[1]):
        row, column, d = segments[ROW, s], segments[COLUMN, s], segments[DOCUMENT, s]
        place = segments[PLACE, s] + shift
        stored = stored_offsets[d + 1] - stored_offsets[d]
        total = document_offsets[d + 1] - document_offsets[d]
        values = values_at(stored_offsets[d], stored, shard_tokens, addresses, like)
        for i in range(max(0, min(segments[SIZE, s], total - place)) if stored > 0 else 0):
            out[row, column + i] = values[min(place + i, stored - 1)]
