"""Values in the order of a vocabulary: by falling count, ties by value in byte order.

What is sorted is one entry a value, in three arrays: its count, eight bytes of its text
as a number (after what all texts begin with, big-endian, zeros behind the end), and its
place. Only where count and these bytes are equal are texts looked at. Entries are
sorted by merging from one set of arrays to another and back, first within blocks that
the caches hold, then block by block; each pass goes through memory in order, so that the
arrays may as well be maps of files.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import inline, kernel

BLOCK = 1 << 15
_RUN = 16
_BYTES = 8


@kernel
def common_bytes(data, begins, ends):  # type: ignore[no-untyped-def]
    """Return how many bytes all texts begin with alike, int64."""
    if len(begins) == 0:
        return np.int64(0)
    first = np.int64(begins[0])
    common = np.int64(ends[0]) - first
    for at in range(1, len(begins)):
        start = np.int64(begins[at])
        common = min(common, np.int64(ends[at]) - start)
        place = np.int64(0)
        while place < common and data[start + place] == data[first + place]:
            place += 1
        common = place
    return common


@kernel
def fill_entries(data, begins, ends, skip, all_counts, least, counts, heads, places):  # type: ignore[no-untyped-def]
    """Write an entry for each value that was counted at least ``least`` times; return how many.

    Args:
        data: uint8, the bytes that ``begins`` and ``ends`` (int [n]) point into.
        begins: Where each text begins.
        ends: Where each text ends.
        skip: Bytes that all texts begin with.
        all_counts: int64 [n].
        least: The smallest count.
        counts: int64, filled here; likewise ``heads`` uint64 and ``places`` int64.
    """
    size = 0
    for at in range(len(begins)):
        if all_counts[at] >= least:
            counts[size] = all_counts[at]
            heads[size] = _head(data, np.int64(begins[at]) + skip, np.int64(ends[at]))
            places[size] = at
            size += 1
    return size


@inline
def _head(data, start, end):  # type: ignore[no-untyped-def]
    head = np.uint64(0)
    for place in range(start, min(end, start + _BYTES)):
        head |= np.uint64(data[place]) << np.uint64(8 * (_BYTES - 1 - (place - start)))
    return head


@inline
def _is_before(one, other, data, begins, ends, skip):  # type: ignore[no-untyped-def]
    """Return whether the text at one place is before the text at another, in byte order."""
    start, other_start = np.int64(begins[one]) + skip, np.int64(begins[other]) + skip
    length, other_length = np.int64(ends[one]) - start, np.int64(ends[other]) - other_start
    for place in range(min(length, other_length)):
        if data[start + place] != data[other_start + place]:
            return data[start + place] < data[other_start + place]
    return length < other_length


@inline
def _precedes(count, head, place, other_count, other_head, other_place, data, begins, ends, skip):  # type: ignore[no-untyped-def]
    if count != other_count:
        return count > other_count
    if head != other_head:
        return head < other_head
    return _is_before(place, other_place, data, begins, ends, skip)


@inline
def _sort_run(counts, heads, places, start, end, data, begins, ends, skip):  # type: ignore[no-untyped-def]
    """Sort entries ``[start, end)`` by insertion."""
    for at in range(start + 1, end):
        count, head, place = counts[at], heads[at], places[at]
        to = at
        while to > start and _precedes(
            count, head, place, counts[to - 1], heads[to - 1], places[to - 1], data, begins, ends, skip
        ):
            counts[to], heads[to], places[to] = counts[to - 1], heads[to - 1], places[to - 1]
            to -= 1
        counts[to], heads[to], places[to] = count, head, place


@inline
def _merge(  # type: ignore[no-untyped-def]
    counts, heads, places, start, middle, end, to_counts, to_heads, to_places, data, begins, ends, skip
):
    """Merge two sorted neighbours, ``[start, middle)`` and ``[middle, end)``, into the other arrays."""
    left, right = start, middle
    for to in range(start, end):
        take = right
        if right >= end or (
            left < middle
            and not _precedes(
                counts[right],
                heads[right],
                places[right],
                counts[left],
                heads[left],
                places[left],
                data,
                begins,
                ends,
                skip,
            )
        ):
            take = left
            left += 1
        else:
            right += 1
        to_counts[to], to_heads[to], to_places[to] = counts[take], heads[take], places[take]


@inline
def _merge_neighbours(  # type: ignore[no-untyped-def]
    counts, heads, places, width, to_counts, to_heads, to_places, data, begins, ends, skip
):
    """Merge sorted runs of ``width`` entries two by two into the other arrays."""
    size = len(counts)
    for start in range(0, size, 2 * width):
        middle, end = min(start + width, size), min(start + 2 * width, size)
        _merge(
            counts, heads, places, start, middle, end,
            to_counts, to_heads, to_places, data, begins, ends, skip,
        )  # fmt: skip


@kernel
def sort_block(counts, heads, places, to_counts, to_heads, to_places, data, begins, ends, skip):  # type: ignore[no-untyped-def]
    """Sort all entries; the other arrays are work space. The sorted ones are in the first arrays."""
    size = len(counts)
    for start in range(0, size, _RUN):
        _sort_run(counts, heads, places, start, min(start + _RUN, size), data, begins, ends, skip)
    width = np.int64(_RUN)
    while width < size:
        _merge_neighbours(
            counts, heads, places, width, to_counts, to_heads, to_places, data, begins, ends, skip
        )
        for at in range(size):
            counts[at], heads[at], places[at] = to_counts[at], to_heads[at], to_places[at]
        width *= 2


@kernel
def merge_blocks(counts, heads, places, width, to_counts, to_heads, to_places, data, begins, ends, skip):  # type: ignore[no-untyped-def]
    """Merge sorted blocks of ``width`` entries two by two into the other arrays."""
    _merge_neighbours(counts, heads, places, width, to_counts, to_heads, to_places, data, begins, ends, skip)
