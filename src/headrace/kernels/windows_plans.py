"""Whether a plan that was read from disk can be followed without leaving the tokens."""

from __future__ import annotations

from headrace.kernels.compile import kernel


@kernel
def runs_lie_inside(offsets, position, size, total):  # type: ignore[no-untyped-def]
    """Return whether runs are lists over ``[0, total)``.

    Args:
        offsets: int64 [K+1], which runs are of which list: from 0 to N, never falling.
        position: int64 [N], first token of each run.
        size: int32 [N], tokens of each run, at least 1.
        total: Number of tokens.
    """
    if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != position.size or size.size != position.size:
        return False
    for k in range(offsets.size - 1):
        if offsets[k + 1] < offsets[k]:
            return False
    for n in range(position.size):
        if size[n] < 1 or position[n] < 0 or position[n] > total - size[n]:
            return False
    return True


@kernel
def largest_sum(offsets, size):  # type: ignore[no-untyped-def]
    """Return the largest sum of the sizes (int32 [N]) of a list; 0 where there is none."""
    largest = 0
    for k in range(offsets.size - 1):
        total = 0
        for n in range(offsets[k], offsets[k + 1]):
            total += size[n]
        largest = max(largest, total)
    return largest
