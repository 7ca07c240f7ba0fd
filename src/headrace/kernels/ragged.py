"""Codes to ids in ragged columns: counting, cutting, removing duplicates.

Ragged columns are two flat arrays: ``offsets`` int64 [N + 1] and ``codes``
uint32; row ``i`` holds ``codes[offsets[i]:offsets[i + 1]]``. ``NULL_CODE`` is a
missing element. ``ids`` gives the id of each code.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import inline, kernel
from headrace.kernels.lookup import NULL_CODE

_NULL = np.uint32(NULL_CODE)


@kernel
def count_codes(codes, offsets, rows, counts):  # type: ignore[no-untyped-def]
    """Add the elements of ``rows`` to ``counts`` (int64 [codes + 1]); the last one is for missing ones."""
    last = len(counts) - 1
    for at in range(len(rows)):
        for place in range(offsets[rows[at]], offsets[rows[at] + 1]):
            code = codes[place]
            counts[last if code == _NULL else np.int64(code)] += 1


@kernel
def count_distinct_codes(codes, offsets, rows, counts, seen):  # type: ignore[no-untyped-def]
    """Add the different elements of each of ``rows`` to ``counts``.

    ``seen`` is int64 [codes + 1], all -1: the last place in ``rows`` where a code was met.
    """
    last = len(counts) - 1
    for at in range(len(rows)):
        for place in range(offsets[rows[at]], offsets[rows[at] + 1]):
            code = last if codes[place] == _NULL else np.int64(codes[place])
            if seen[code] != at:
                seen[code] = at
                counts[code] += 1


@kernel
def kept_lengths(offsets, rows, max_length, lengths):  # type: ignore[no-untyped-def]
    """Write the cut length of each of ``rows`` into ``lengths`` (int64 [n])."""
    for at in range(len(rows)):
        length = offsets[rows[at] + 1] - offsets[rows[at]]
        lengths[at] = min(length, max_length)


@kernel
def cut_sequences(codes, offsets, rows, ids, null_id, keep_last, out_offsets, out):  # type: ignore[no-untyped-def]
    """Write the ids of the kept elements of each row into ``out``, which ``out_offsets`` cuts into rows."""
    for at in range(len(rows)):
        length = out_offsets[at + 1] - out_offsets[at]
        start = offsets[rows[at] + 1] - length if keep_last else offsets[rows[at]]
        for place in range(length):
            code = codes[start + place]
            out[out_offsets[at] + place] = null_id if code == _NULL else ids[code]


@inline
def _sort(ids, weights, size):  # type: ignore[no-untyped-def]
    """Sort ``ids[:size]`` ascending, ``weights`` with them; by insertion, as rows are short."""
    for at in range(1, size):
        token, weight = ids[at], weights[at]
        place = at - 1
        while place >= 0 and ids[place] > token:
            ids[place + 1] = ids[place]
            weights[place + 1] = weights[place]
            place -= 1
        ids[place + 1] = token
        weights[place + 1] = weight


@inline
def _merge_equal(ids, weights, size):  # type: ignore[no-untyped-def]
    """Merge neighbours of one id, adding their weights; return the new size."""
    kept = 0
    for at in range(size):
        if kept and ids[kept - 1] == ids[at]:
            weights[kept - 1] += weights[at]
        else:
            ids[kept] = ids[at]
            weights[kept] = weights[at]
            kept += 1
    return kept


@inline
def _row_set(codes, element_weights, start, end, ids, null_id, row_ids, row_weights):  # type: ignore[no-untyped-def]
    """Write a row's ids, ascending and once each, into ``row_ids``; return how many."""
    for place in range(start, end):
        code = codes[place]
        row_ids[place - start] = null_id if code == _NULL else ids[code]
        row_weights[place - start] = element_weights[place] if len(element_weights) else 0.0
    size = end - start
    if size > 64:
        order = np.argsort(row_ids[:size], kind="mergesort")
        row_ids[:size] = row_ids[:size][order]
        row_weights[:size] = row_weights[:size][order]
    else:
        _sort(row_ids, row_weights, size)
    return _merge_equal(row_ids, row_weights, size)


@kernel
def cut_sets(codes, offsets, rows, ids, null_id, first_value, end_value, max_length, out_offsets, out):  # type: ignore[no-untyped-def]
    """Write each row's different ids, ascending, the most frequent ones where there are too many.

    Ids in ``[first_value, end_value)`` are values by falling count, so that the
    smallest are the most frequent; reserved ids and buckets are kept last.

    Args:
        first_value: The id of the most frequent value.
        end_value: One more than the id of the rarest value.
        max_length: Most ids kept in a row.
        out_offsets: int64 [n + 1], filled here.
        out: Room for every element; the filled part ends at ``out_offsets[n]``.
    """
    longest = 0
    for at in range(len(rows)):
        longest = max(longest, offsets[rows[at] + 1] - offsets[rows[at]])
    row_ids = np.empty(longest, np.int64)
    row_weights = np.empty(longest, np.float64)
    nothing = np.empty(0, np.float64)
    total = np.int64(0)
    out_offsets[0] = 0
    for at in range(len(rows)):
        start, end = offsets[rows[at]], offsets[rows[at] + 1]
        size = _row_set(codes, nothing, start, end, ids, null_id, row_ids, row_weights)
        reserved = 0
        while reserved < size and row_ids[reserved] < first_value:
            reserved += 1
        values = reserved
        while values < size and row_ids[values] < end_value:
            values += 1
        kept_values = min(values - reserved, max_length)
        kept_reserved = min(reserved, max_length - kept_values)
        kept_buckets = min(size - values, max_length - kept_values - kept_reserved)
        for place in range(kept_reserved):
            out[total + place] = row_ids[place]
        for place in range(kept_values):
            out[total + kept_reserved + place] = row_ids[reserved + place]
        for place in range(kept_buckets):
            out[total + kept_reserved + kept_values + place] = row_ids[values + place]
        total += kept_reserved + kept_values + kept_buckets
        out_offsets[at + 1] = total


@kernel
def cut_weighted_sets(codes, weights, offsets, rows, ids, null_id, max_length, out_offsets, out, out_weights):  # type: ignore[no-untyped-def]
    """Write each row's different ids, ascending, with the sums of their weights; the largest are kept.

    Of equal weights the smaller id is kept. Arguments as in ``cut_sets``.
    """
    longest = 0
    for at in range(len(rows)):
        longest = max(longest, offsets[rows[at] + 1] - offsets[rows[at]])
    row_ids = np.empty(longest, np.int64)
    row_weights = np.empty(longest, np.float64)
    total = np.int64(0)
    out_offsets[0] = 0
    for at in range(len(rows)):
        start, end = offsets[rows[at]], offsets[rows[at] + 1]
        size = _row_set(codes, weights, start, end, ids, null_id, row_ids, row_weights)
        rank = np.argsort(-row_weights[:size], kind="mergesort")
        place = total
        for entry in range(size):
            position = 0
            while rank[position] != entry:
                position += 1
            if position < max_length:
                out[place] = row_ids[entry]
                out_weights[place] = row_weights[entry]
                place += 1
        total = place
        out_offsets[at + 1] = total


@kernel
def first_disorder(times, offsets, limits, valid_limits, rows):  # type: ignore[no-untyped-def]
    """Judge the element times of each row; write 0 (right), 1 (not ascending) or 2 (not before the limit).

    Args:
        times: int64 [elements].
        offsets: int64 [n + 1].
        limits: int64 [n], the row's own time.
        valid_limits: bool [n], or empty.
        rows: uint8 [n], the verdicts.
    """
    for row in range(len(offsets) - 1):
        rows[row] = 0
        for place in range(offsets[row], offsets[row + 1]):
            if place > offsets[row] and times[place] < times[place - 1]:
                rows[row] = 1
                break
            if (len(valid_limits) == 0 or valid_limits[row]) and times[place] >= limits[row]:
                rows[row] = 2
                break
