"""Looking at the ends of documents."""

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
