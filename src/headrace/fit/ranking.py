"""The order of a vocabulary: by falling count, ties by value in byte order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import Texts, large_strings, texts_of
from headrace.fit.rules import Rules
from headrace.kernels import ranking
from headrace.kernels.fields import copy_ranges
from headrace.scratch import Scratch

_ROWS_AT_ONCE = 1 << 17


def rank(values: pa.Array, counts: NDArray[np.int64], rules: Rules, scratch: Scratch) -> NDArray[np.int64]:
    """Return the places of the values that are kept, in the order of their ids.

    Sorting takes 48 bytes a value, in files where that is large.

    Args:
        values: large_string [n], each value once.
        counts: int64 [n].
        rules: ``min_count`` and ``max_size`` count here.
        scratch: Where large arrays lie.
    """
    texts = texts_of(values)
    size = int(np.count_nonzero(counts >= rules.min_count))
    skip = ranking.common_bytes(texts.data, texts.begins, texts.ends)
    entries, others = _entries(size, scratch), _entries(size, scratch)
    ranking.fill_entries(texts.data, texts.begins, texts.ends, skip, counts, rules.min_count, *entries)
    return _sorted(entries, others, texts, skip)[: rules.max_size]


Entries = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]
"""Counts, heads and places; see ``headrace.kernels.ranking``."""


def _entries(size: int, scratch: Scratch) -> Entries:
    return scratch.empty(size, np.int64), scratch.empty(size, np.uint64), scratch.empty(size, np.int64)


def _part(entries: Entries, start: int, size: int) -> Entries:
    counts, heads, places = entries
    end = start + size
    return counts[start:end], heads[start:end], places[start:end]


def _sorted(entries: Entries, others: Entries, texts: Texts, skip: int) -> NDArray[np.int64]:
    """Sort entries, with others as work space; return the places in order."""
    size, width = len(entries[0]), ranking.BLOCK
    for start in range(0, size, width):
        block, work = _part(entries, start, width), _part(others, start, width)
        ranking.sort_block(*block, *work, texts.data, texts.begins, texts.ends, skip)
    while width < size:
        ranking.merge_blocks(*entries, width, *others, texts.data, texts.begins, texts.ends, skip)
        entries, others, width = others, entries, 2 * width
    return entries[2]


def taken(values: pa.Array, places: NDArray[np.int64], scratch: Scratch) -> pa.Array:
    """Return the values at some places, large_string, with large arrays in ``scratch``."""
    texts = texts_of(values)
    offsets = scratch.zeros(len(places) + 1, np.int64)
    for start in range(0, len(places), _ROWS_AT_ONCE):
        some = places[start : start + _ROWS_AT_ONCE]
        np.cumsum(texts.ends[some] - texts.begins[some], out=offsets[start + 1 : start + 1 + len(some)])
        offsets[start + 1 : start + 1 + len(some)] += offsets[start]
    data = scratch.empty(int(offsets[-1]), np.uint8)
    for start in range(0, len(places), _ROWS_AT_ONCE):
        some = places[start : start + _ROWS_AT_ONCE]
        copy_ranges(texts.data, texts.begins[some], texts.ends[some], offsets[start:], data)
    return large_strings(data, offsets)
