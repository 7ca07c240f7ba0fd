"""Counting what rows hold, from lengths alone."""

from __future__ import annotations

from headrace.kernels.compile import inline, kernel
from headrace.kernels.windows_fill import LABELS_NEXT

ROWS = 0
TOKENS = 1
NEW_TOKENS = 2
LABELS = 3
ROWS_WITHOUT_LABEL = 4
SEGMENTS = 5
SPLIT_SEGMENTS = 6
MAX_DOCUMENT_POSITION = 7
MAX_SEGMENT_POSITION = 8
UNSCORED = 9
LONGEST = 10
COUNTERS = 11


@inline
def live_labels(column, size, place, total, seen, label_rule):  # type: ignore[no-untyped-def]
    """Return how many labels of a segment at ``column`` are live, the first ``seen`` columns being hidden."""
    if label_rule == LABELS_NEXT:
        first, stop = column, column + min(size, total - 1 - place)
    else:
        first, stop = column + 1, column + size
    return max(0, stop - max(first, seen))


@kernel
def tally_rows(  # type: ignore[no-untyped-def]
    row_runs, run_position, run_size, run_document, seen, document_offsets, hide_seen, label_rule, counters
):
    """Add to ``counters`` what the rows of a batch hold.

    Args:
        row_runs: int64 [B+1], as in ``fill_rows``; so are the next five.
        run_position: int64 [R].
        run_size: int64 [R].
        run_document: int64 [R].
        seen: int64 [B].
        document_offsets: int64 [D+1].
        hide_seen: Whether labels of tokens that an earlier window has are hidden.
        label_rule: ``LABELS_NEXT`` or ``LABELS_SAME``.
        counters: int64 [COUNTERS], changed: rows, tokens, tokens in no earlier row, live labels, rows
            without one, segments, segments that do not begin their document, largest position in a
            document, largest position in a segment, tokens that begin a row and are in no earlier one
            though their document began before, tokens of the longest row.
    """
    for row in range(row_runs.size - 1):
        column = 0
        live = 0
        for run in range(row_runs[row], row_runs[row + 1]):
            d = run_document[run]
            place = run_position[run] - document_offsets[d]
            left = run_size[run]
            while left > 0:
                total = document_offsets[d + 1] - document_offsets[d]
                size = min(left, total - place)
                if size > 0:
                    live += live_labels(column, size, place, total, seen[row] if hide_seen else 0, label_rule)
                    counters[SEGMENTS] += 1
                    counters[SPLIT_SEGMENTS] += place > 0
                    counters[UNSCORED] += place > 0 and column >= seen[row]
                    counters[MAX_DOCUMENT_POSITION] = max(counters[MAX_DOCUMENT_POSITION], place + size - 1)
                    counters[MAX_SEGMENT_POSITION] = max(counters[MAX_SEGMENT_POSITION], size - 1)
                column += size
                left -= size
                d += 1
                place = 0
        counters[ROWS] += 1
        counters[TOKENS] += column
        counters[LONGEST] = max(counters[LONGEST], column)
        counters[NEW_TOKENS] += column - seen[row]
        counters[LABELS] += live
        counters[ROWS_WITHOUT_LABEL] += live == 0
