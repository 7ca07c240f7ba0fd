"""How documents end, and their ids one after the other."""

from __future__ import annotations

from headrace.kernels.compile import kernel
from headrace.kernels.windows_fill import values_at
from headrace.kernels.windows_layout import last_at_most


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
def copy_positions(  # type: ignore[no-untyped-def]
    first, stored_offsets, document_offsets, shard_tokens, addresses, like, eos, out
):
    """Fill ``out`` with the ids at the positions from ``first`` on, each document's end token included.

    Args:
        first: The first position.
        stored_offsets: int64 [D+1], where each document begins in the store.
        document_offsets: int64 [D+1], where each document begins when added end tokens count.
        shard_tokens: int64 [K+1], tokens of the store before each shard.
        addresses: uint64 [K], where each shard's values lie.
        like: Array of the values' dtype.
        eos: Id of the end token that positions count and the store does not hold.
        out: int64 [T], filled; ``first + T`` is at most ``document_offsets[D]``.
    """
    filled = 0
    d = last_at_most(document_offsets, first)
    place = first - document_offsets[d]
    while filled < out.size:
        stored = stored_offsets[d + 1] - stored_offsets[d]
        count = min(out.size - filled, document_offsets[d + 1] - document_offsets[d] - place)
        kept = max(0, min(count, stored - place))
        values = values_at(stored_offsets[d] + place, kept, shard_tokens, addresses, like)
        for i in range(count):
            out[filled + i] = values[i] if i < kept else eos
        filled += count
        place = 0
        d += 1
