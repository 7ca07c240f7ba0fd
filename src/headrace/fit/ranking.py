"""The order of a vocabulary: by falling count, ties by value in byte order.

Where the values are too many for memory DuckDB sorts them, spilling to disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import cast

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headrace.arrays import large_strings, texts_of
from headrace.fit.rules import Rules
from headrace.kernels.fields import copy_ranges
from headrace.scratch import Scratch

_SORT_BYTES = 64
"""Anonymous bytes that sorting in memory needs for each value."""
_SORT_MEMORY = (32 << 20, 128 << 20, 512 << 20)
"""What DuckDB may be given, in bytes: at first no less than its share, then more where it says it must."""
_SHARE = 8
"""How many arrays of the largest size that lies in memory DuckDB may take."""
_ROWS_AT_ONCE = 1 << 17


def rank(values: pa.Array, counts: NDArray[np.int64], rules: Rules, scratch: Scratch) -> NDArray[np.int64]:
    """Return the places of the values that are kept, in the order of their ids.

    Args:
        values: large_string [n], each value once.
        counts: int64 [n].
        rules: ``min_count`` and ``max_size`` count here.
        scratch: Its limit says whether the sort is done in memory.
    """
    folder = scratch.folder
    if folder is None or not scratch.is_large(len(values) * _SORT_BYTES):
        return rank_in_memory(values, counts, rules)
    return rank_on_disk(values, counts, rules, scratch, folder)


def rank_in_memory(values: pa.Array, counts: NDArray[np.int64], rules: Rules) -> NDArray[np.int64]:
    """Sort with Arrow."""
    frequent = np.flatnonzero(counts >= rules.min_count)
    table = pa.table({"count": counts[frequent], "value": values.take(pa.array(frequent))})
    order = pc.sort_indices(table, sort_keys=[("count", "descending"), ("value", "ascending")])
    kept: NDArray[np.int64] = frequent[order.to_numpy()[: rules.max_size]]
    return kept


def rank_on_disk(
    values: pa.Array, counts: NDArray[np.int64], rules: Rules, scratch: Scratch, folder: Path
) -> NDArray[np.int64]:
    """Sort with DuckDB, in bounded memory."""
    wanted = min(_SHARE * scratch.limit, _SORT_MEMORY[-2])
    tries = [memory for memory in _SORT_MEMORY if memory >= wanted]
    for memory in tries[:-1]:
        try:
            return _sorted_by_duckdb(values, counts, rules, scratch, folder, memory)
        except duckdb.OutOfMemoryException:
            continue
    return _sorted_by_duckdb(values, counts, rules, scratch, folder, tries[-1])


def _sorted_by_duckdb(
    values: pa.Array, counts: NDArray[np.int64], rules: Rules, scratch: Scratch, folder: Path, memory: int
) -> NDArray[np.int64]:
    places = scratch.empty(len(values), np.int64)
    size = 0
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET threads = 1")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET memory_limit = ?", [f"{memory}B"])
        connection.execute("SET temp_directory = ?", [str(folder)])
        connection.register("counted", _Counted(values, counts).reader())
        query = "SELECT place FROM counted WHERE count >= ? ORDER BY count DESC, value"
        result = connection.sql(query, params=[rules.min_count]).to_arrow_reader(_ROWS_AT_ONCE)
        for batch in cast("Iterable[pa.RecordBatch]", result):
            places[size : size + batch.num_rows] = batch.column(0).to_numpy()
            size += batch.num_rows
    return places[:size][: rules.max_size]


class _Counted:
    """Values, counts and places as record batches, made as they are read."""

    _SCHEMA = pa.schema([("value", pa.large_binary()), ("count", pa.int64()), ("place", pa.int64())])

    def __init__(self, values: pa.Array, counts: NDArray[np.int64]) -> None:
        self._values = values.view(pa.large_binary())
        self._counts = counts

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._SCHEMA, map(self._batch, self._starts()))

    def _starts(self) -> range:
        return range(0, len(self._values), _ROWS_AT_ONCE)

    def _batch(self, start: int) -> pa.RecordBatch:
        values = self._values.slice(start, _ROWS_AT_ONCE)
        places = np.arange(start, start + len(values))
        columns = [values, pa.array(self._counts[start : start + len(values)]), pa.array(places)]
        return pa.RecordBatch.from_arrays(columns, schema=self._SCHEMA)


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
