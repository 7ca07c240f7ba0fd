"""Filling the rows of a batch from tokens that lie in one or several shards.

A *run* is a stretch of tokens that fills part of a row: a position and a size,
counted over all documents one after the other, the end-of-sequence tokens that
were added included. A window is one run; a packed row is several. Each part of
a run that lies in one document is a *segment*, numbered from 1 in each row.

    documents    a b c | d e            end token E added to both
    positions    0 1 2 3 | 4 5 6        a b c E | d e E
    run (2, 4)   c E | d e              segments 1 1 2 2

No mask, label or segment is derived from an id: all of it comes from lengths.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import inline, kernel
from headrace.kernels.memory import prefetch
from headrace.kernels.pointers import array_at
from headrace.kernels.windows_layout import last_at_most

LABELS_NEXT = 0
"""A label is the next token of the same document, also when it lies outside the row."""
LABELS_SAME = 1
"""A label is the token itself, where the row holds a token of the same document before it."""
POSITIONS_SEGMENT = 0
POSITIONS_WINDOW = 1
POSITIONS_DOCUMENT = 2
_CACHE_LINE = 64
IGNORED = -100
"""The label that loss functions skip."""


@inline
def values_at(number, count, shard_tokens, addresses, like):  # type: ignore[no-untyped-def]
    """Return ``count`` stored tokens from token ``number`` on, a view of the shard that holds them."""
    shard = last_at_most(shard_tokens, number) if addresses.size > 1 and count > 0 else 0
    address = addresses[shard] + np.uint64(number - shard_tokens[shard]) * np.uint64(like.itemsize)
    return array_at(address, (count,), like)


@inline
def next_tokens(  # type: ignore[no-untyped-def]
    row,
    row_runs,
    run_position,
    run_size,
    run_document,
    stored_offsets,
    document_offsets,
    shard_tokens,
    addresses,
    like,
):
    """Return where the tokens of a row's first run lie and end in memory; (0, 0) behind the last row."""
    if row >= row_runs.size - 1:
        return np.uint64(0), np.uint64(0)
    run = row_runs[row]
    d = run_document[run]
    number = stored_offsets[d] + run_position[run] - document_offsets[d]
    shard = last_at_most(shard_tokens, number) if addresses.size > 1 and number < shard_tokens[-1] else 0
    address = addresses[shard] + np.uint64((number - shard_tokens[shard]) * like.itemsize)
    return address, address + np.uint64((run_size[run] + 1) * like.itemsize)


@inline
def touch(near, end):  # type: ignore[no-untyped-def]
    """Ask for what lies between two addresses."""
    while near < end:
        prefetch(near)
        near += np.uint64(_CACHE_LINE)


@inline
def copy_tokens(out, values, count):  # type: ignore[no-untyped-def]
    """Fill the first ``count`` of ``out``."""
    target, source = out[:count], values[:count]
    for i in range(count):
        target[i] = source[i]


@kernel
def locate_documents(positions, document_offsets, documents):  # type: ignore[no-untyped-def]
    """Fill, for each position, the document that holds it.

    Args:
        positions: int64 [R], each below ``document_offsets[-1]``.
        document_offsets: int64 [D+1], where each document begins when added end tokens count.
        documents: int64 [R], filled.
    """
    for r in range(positions.size):
        documents[r] = last_at_most(document_offsets, positions[r])


@inline
def copy_inputs(out, values, count, eos):  # type: ignore[no-untyped-def]
    """Fill ``out`` with ``count`` values, and the end token behind them."""
    copy_tokens(out, values, count)
    for i in range(count, out.size):
        out[i] = eos


@inline
def copy_next(out, values, ends_with_eos, eos):  # type: ignore[no-untyped-def]
    """Fill ``out[i]`` with the token after ``values[i]``; ``values`` reach one further where they can."""
    count = max(0, min(out.size, values.size - 1))
    copy_tokens(out, values[1:], count)
    for i in range(count, out.size):
        out[i] = eos if ends_with_eos and i == values.size - 1 else IGNORED


@inline
def fill_labels(out, values, ends_with_eos, eos, rule):  # type: ignore[no-untyped-def]
    """Fill the labels of one segment."""
    if rule == LABELS_NEXT:
        copy_next(out, values, ends_with_eos, eos)
    else:
        copy_inputs(out, values, min(out.size, values.size), eos)
        out[0] = IGNORED


@inline
def fill_steps(out, first):  # type: ignore[no-untyped-def]
    """Fill ``out`` with ``first``, ``first + 1``, ..."""
    for i in range(out.size):
        out[i] = first + i


@inline
def first_position(rule, column, place):  # type: ignore[no-untyped-def]
    """Return the position id of a segment's first token."""
    if rule == POSITIONS_WINDOW:
        return column
    return place if rule == POSITIONS_DOCUMENT else 0


@inline
def fill_padding(  # type: ignore[no-untyped-def]
    row, column, pad, input_ids, labels, attention_mask, segment_ids, position_ids
):
    """Fill what stands behind a row's ``column`` tokens, and the attention mask."""
    if input_ids.shape[0] > 0:
        input_ids[row, column:] = pad
    if labels.shape[0] > 0:
        labels[row, column:] = IGNORED
    if attention_mask.shape[0] > 0:
        attention_mask[row, :column] = 1
        attention_mask[row, column:] = 0
    if segment_ids.shape[0] > 0:
        segment_ids[row, column:] = 0
    if position_ids.shape[0] > 0:
        position_ids[row, column:] = 0


@inline
def fill_origin(  # type: ignore[no-untyped-def]
    row, run, column, run_position, run_document, document_offsets, document, start, length
):
    """Fill where a row's first token is from, and how many tokens the row has."""
    if document.size > 0:
        document[row] = run_document[run]
    if start.size > 0:
        start[row] = run_position[run] - document_offsets[run_document[run]]
    if length.size > 0:
        length[row] = column


@kernel
def fill_rows(  # type: ignore[no-untyped-def]
    first_row,
    end_row,
    row_runs,
    run_position,
    run_size,
    run_document,
    seen,
    hide,
    stored_offsets,
    document_offsets,
    shard_tokens,
    addresses,
    like,
    eos,
    pad,
    label_rule,
    position_rule,
    input_ids,
    labels,
    attention_mask,
    segment_ids,
    position_ids,
    document,
    start,
    length,
):
    """Fill all arrays of one batch, whose rows are ``first_row`` to ``end_row - 1`` of the whole run.

    The other arguments are those of ``fill_batches``; arrays that are not wanted have no rows.
    What the next row needs is asked for all at once: it comes while this row is written.
    """
    for row in range(end_row - first_row):
        numbered = first_row + row
        near, end = next_tokens(
            numbered + 1,
            row_runs,
            run_position,
            run_size,
            run_document,
            stored_offsets,
            document_offsets,
            shard_tokens,
            addresses,
            like,
        )
        touch(near, end)
        column = 0
        segment = 0
        for run in range(row_runs[numbered], row_runs[numbered + 1]):
            d = run_document[run]
            place = run_position[run] - document_offsets[d]
            left = run_size[run]
            while left > 0:
                stored = stored_offsets[d + 1] - stored_offsets[d]
                total = document_offsets[d + 1] - document_offsets[d]
                size = min(left, total - place)
                if size > 0:
                    segment += 1
                    kept = max(0, min(size + 1, stored - place))
                    values = values_at(stored_offsets[d] + place, kept, shard_tokens, addresses, like)
                    cells = slice(column, column + size)
                    if input_ids.shape[0] > 0:
                        ids = input_ids[row, cells]
                        copy_inputs(ids, values, min(size, kept), eos)
                    if labels.shape[0] > 0:
                        has_eos = total > stored
                        fill_labels(labels[row, cells], values, has_eos, eos, label_rule)
                    if segment_ids.shape[0] > 0:
                        segment_ids[row, cells] = segment
                    if position_ids.shape[0] > 0:
                        first = first_position(position_rule, column, place)
                        fill_steps(position_ids[row, cells], first)
                column += size
                left -= size
                d += 1
                place = 0
        fill_padding(row, column, pad, input_ids, labels, attention_mask, segment_ids, position_ids)
        if hide and labels.shape[0] > 0:
            labels[row, : seen[numbered]] = IGNORED
        fill_origin(
            row,
            row_runs[numbered],
            column,
            run_position,
            run_document,
            document_offsets,
            document,
            start,
            length,
        )


@inline
def rows_at(address, rows, width, like):  # type: ignore[no-untyped-def]
    """Return the array [rows, width] of ``like``'s dtype at an address; of no rows at address 0."""
    return array_at(address, (rows if address != 0 else 0, width), like)


@inline
def values_of_rows_at(address, rows, like):  # type: ignore[no-untyped-def]
    """Return the array [rows] of ``like``'s dtype at an address; of no rows at address 0."""
    return array_at(address, (rows if address != 0 else 0,), like)


@kernel
def fill_batches(  # type: ignore[no-untyped-def]
    bounds,
    widths,
    out,
    row_runs,
    run_position,
    run_size,
    run_document,
    seen,
    hide,
    stored_offsets,
    document_offsets,
    shard_tokens,
    addresses,
    like,
    eos,
    pad,
    label_rule,
    position_rule,
    mask_like,
):
    """Fill all arrays of some batches in one pass; one at address 0 is not wanted.

    Args:
        bounds: int64 [batches+1], which of the R rows are of which batch; a batch has B.
        widths: int64 [batches], the width W of each batch.
        out: uint64 [batches, 8 or more], the addresses of each batch's arrays:

            0  input_ids        int64 [B, W]; ``pad`` on padding
            1  labels           int64 [B, W]; ``IGNORED`` where there is none
            2  attention_mask   [B, W]; 1 on tokens
            3  segment_ids      int64 [B, W]; 1.. on tokens, 0 on padding
            4  position_ids     int64 [B, W]; 0 on padding
            5  document         int64 [B]: the document of the first token
            6  start            int64 [B]: the first token's number in its document
            7  length           int64 [B]: tokens in the row

        row_runs: int64 [R+1], which runs are of which row.
        run_position: int64 [N], first token, counted over all documents.
        run_size: int64 [N], at least 1; the runs of a row have at most W tokens together.
        run_document: int64 [N], the document of each run's first token.
        seen: int64 [R], leading tokens of the row that an earlier window has.
        hide: Whether their labels are hidden.
        stored_offsets: int64 [D+1], where each document begins in the store.
        document_offsets: int64 [D+1], where each document begins when added end tokens count.
        shard_tokens: int64 [K+1], tokens of the store before each shard.
        addresses: uint64 [K], where each shard's values lie.
        like: Array of the values' dtype.
        eos: Id of the end token that positions count and the store does not hold.
        pad: Id on padding.
        label_rule: ``LABELS_NEXT`` or ``LABELS_SAME``.
        position_rule: ``POSITIONS_SEGMENT``, ``POSITIONS_WINDOW`` or ``POSITIONS_DOCUMENT``.
        mask_like: Array of the attention mask's dtype, int64 or bool.
    """
    int64 = bounds
    for b in range(bounds.size - 1):
        first, end, width = bounds[b], bounds[b + 1], widths[b]
        rows = end - first
        fill_rows(
            first,
            end,
            row_runs,
            run_position,
            run_size,
            run_document,
            seen,
            hide,
            stored_offsets,
            document_offsets,
            shard_tokens,
            addresses,
            like,
            eos,
            pad,
            label_rule,
            position_rule,
            rows_at(out[b, 0], rows, width, int64),
            rows_at(out[b, 1], rows, width, int64),
            rows_at(out[b, 2], rows, width, mask_like),
            rows_at(out[b, 3], rows, width, int64),
            rows_at(out[b, 4], rows, width, int64),
            values_of_rows_at(out[b, 5], rows, int64),
            values_of_rows_at(out[b, 6], rows, int64),
            values_of_rows_at(out[b, 7], rows, int64),
        )


@kernel
def first_outside(indices, count):  # type: ignore[no-untyped-def]
    """Return where in ``indices`` (int64 [B]) the first one outside ``[0, count)`` stands, or -1."""
    for i in range(indices.size):
        if indices[i] < 0 or indices[i] >= count:
            return i
    return -1


@kernel
def hide_seen(labels, seen):  # type: ignore[no-untyped-def]
    """Set the first ``seen`` (int64 [B]) labels of each row of ``labels`` (int64 [B, W]) to ``IGNORED``."""
    for row in range(seen.size):
        labels[row, : seen[row]] = IGNORED
