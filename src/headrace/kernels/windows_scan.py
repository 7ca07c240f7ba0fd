"""Looking for an id in a long array: only for data whose documents are marked by nothing else."""

from __future__ import annotations

from headrace.kernels.compile import kernel


@kernel
def count_id(values, token):  # type: ignore[no-untyped-def]
    """Return how often ``token`` is in ``values`` (integers [T])."""
    found = 0
    for i in range(values.size):
        found += values[i] == token
    return found


@kernel
def ends_after(values, token, ends):  # type: ignore[no-untyped-def]
    """Fill ``ends`` (int64 [count]) with the place after each ``token`` in ``values``."""
    found = 0
    for i in range(values.size):
        if values[i] == token:
            ends[found] = i + 1
            found += 1


@kernel
def largest_id(values):  # type: ignore[no-untyped-def]
    """Return the largest of ``values`` (integers [T]), and -1 for none."""
    largest = -1
    for i in range(values.size):
        largest = max(largest, int(values[i]))
    return largest
