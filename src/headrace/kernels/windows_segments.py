"""The parts of documents that rows hold, one after the other.

A table int64 [5, N], a column a segment, in the order of rows and columns:

    ROW        the row of the batch
    COLUMN     its first place in the row
    DOCUMENT   the document
    PLACE      its first token's number in the document
    SIZE       its tokens, at least 1
"""

from __future__ import annotations

from headrace.kernels.compile import kernel

ROW, COLUMN, DOCUMENT, PLACE, SIZE = range(5)
FIELDS = 5


@kernel
def list_segments(  # type: ignore[no-untyped-def]
    row_runs, run_position, run_size, run_document, document_offsets, segments
):
    """Fill the segments of the rows of a batch; return their number.

    Args:
        row_runs: int64 [B+1], as in ``fill_batches``; so are the next four.
        run_position: int64 [R].
        run_size: int64 [R].
        run_document: int64 [R].
        document_offsets: int64 [D+1].
        segments: int64 [5, N], filled; or [5, 0], only to count.
    """
    found = 0
    for row in range(row_runs.size - 1):
        column = 0
        for run in range(row_runs[row], row_runs[row + 1]):
            d = run_document[run]
            place = run_position[run] - document_offsets[d]
            left = run_size[run]
            while left > 0:
                size = min(left, document_offsets[d + 1] - document_offsets[d] - place)
                if size > 0:
                    if segments.shape[1] > 0:
                        segments[ROW, found] = row
                        segments[COLUMN, found] = column
                        segments[DOCUMENT, found] = d
                        segments[PLACE, found] = place
                        segments[SIZE, found] = size
                    found += 1
                column += size
                left -= size
                d += 1
                place = 0
    return found
