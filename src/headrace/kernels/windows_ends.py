"""Whole documents: how they end, and their ids one after the other."""

from __future__ import annotations

from headrace.kernels.compile import kernel
from headrace.kernels.windows_fill import values_at


@kernel
def ends_with(offsets, shard_tokens, addresses, like, token, found):  # type: ignore[no-untyped-def]
    """Fill ``found`` (bool [D]) with whether each document's last id is ``token``; False for an empty one.

    Args:
        offsets: int64 [D+1], where each document begins in the store.
        shard_tokens: int64 [K+1], tokens of the store before each shard.
        addresses: uint64 [K], where each shard's values lie.
        like: Array of the values' dtype.
        token: The id to look for.
        found: bool [D], filled.
    """
    for d in range(found.size):
        found[d] = False
        if offsets[d + 1] > offsets[d]:
            found[d] = values_at(offsets[d + 1] - 1, 1, shard_tokens, addresses, like)[0] == token


@kernel
def copy_documents(  # type: ignore[no-untyped-def]
    begin, stored_offsets, document_offsets, shard_tokens, addresses, like, eos, out
):
    """Fill ``out`` with the ids of whole documents, each with the end token that it lacks.

    Args:
        begin: The first document.
        stored_offsets: int64 [D+1], where each document begins in the store.
        document_offsets: int64 [D+1], where each document begins when added end tokens count.
        shard_tokens: int64 [K+1], tokens of the store before each shard.
        addresses: uint64 [K], where each shard's values lie.
        like: Array of the values' dtype.
        eos: Id of the end token that positions count and the store does not hold.
        out: int64 [T], filled; T tells how many documents.
    """
    filled = 0
    d = begin
    while filled < out.size:
        stored = stored_offsets[d + 1] - stored_offsets[d]
        total = document_offsets[d + 1] - document_offsets[d]
        values = values_at(stored_offsets[d], stored, shard_tokens, addresses, like)
        for i in range(total):
            out[filled + i] = values[i] if i < stored else eos
        filled += total
        d += 1
