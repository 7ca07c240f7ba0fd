"""Counting what rows hold, from lengths alone."""

from __future__ import annotations

from headrace.kernels.compile import inline, kernel
from headrace.kernels.windows_fill import LABELS_NEXT
from headrace.kernels.windows_segments import COLUMN, DOCUMENT, PLACE, ROW, SIZE

SEGMENTS, CONTINUED, UNSCORED, LAST_IN_DOCUMENT, LAST_IN_SEGMENT = range(5)
COUNTERS = 5


@inline
def live_labels(column, size, place, total, seen, label_rule):  # type: ignore[no-untyped-def]
    """Return how many labels of a segment at ``column`` are live, the first ``seen`` columns being hidden."""
    if label_rule == LABELS_NEXT:
        first, stop = column, column + min(size, total - 1 - place)
    else:
        first, stop = column + 1, column + size
    return max(0, stop - max(first, seen))


@kernel
def tally_segments(  # type: ignore[no-untyped-def]
    segments, seen, document_offsets, hide_seen, label_rule, counters, sizes, live
):
    """Count what the rows of a batch hold.

    Args:
        segments: int64 [5, N], from ``list_segments``.
        seen: int64 [B], leading tokens of each row that an earlier row holds.
        document_offsets: int64 [D+1].
        hide_seen: Whether labels of these are hidden.
        label_rule: ``LABELS_NEXT`` or ``LABELS_SAME``.
        counters: int64 [COUNTERS], added to: segments, segments that do not begin their document,
            tokens that begin a row and are in no earlier one though their document began before; and
            raised to: the largest position in a document, the largest in a segment.
        sizes: int64 [B], zeros, filled: tokens of each row.
        live: int64 [B], zeros, filled: live labels of each row.
    """
    for s in range(segments.shape[1]):
        row, column, d = segments[ROW, s], segments[COLUMN, s], segments[DOCUMENT, s]
        place, size = segments[PLACE, s], segments[SIZE, s]
        total = document_offsets[d + 1] - document_offsets[d]
        sizes[row] += size
        live[row] += live_labels(column, size, place, total, seen[row] if hide_seen else 0, label_rule)
        counters[SEGMENTS] += 1
        counters[CONTINUED] += place > 0
        counters[UNSCORED] += place > 0 and column >= seen[row]
        counters[LAST_IN_DOCUMENT] = max(counters[LAST_IN_DOCUMENT], place + size - 1)
        counters[LAST_IN_SEGMENT] = max(counters[LAST_IN_SEGMENT], size - 1)
