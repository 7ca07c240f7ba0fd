"""The machine's limit: random rows of as many bytes as are read and written for a row of the batches.

Each row's bytes stand together at one random place of an array as large as the columns together, are
fetched ahead of their turn (or not: ``ahead=0``), and are copied with as many bytes of filling behind them as
padding and mask take, on two threads without Python between the batches, into memory that is at hand.
headrace reads the same bytes from two places a row.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path

import numba
import numpy as np

from headrace.kernels.memory import prefetch
from peers.rows.layout import BATCH, LENGTH, SCALARS, SEED, Batches, column, count

WORD, LINE = 8, 64
RUN = 16
"""Batches that a thread makes in one call."""
THREADS = 2


def words_read(folder: Path) -> int:
    """Return the words of a row on disk: scalars, number, two offsets and the mean history."""
    ids = len(column(folder, "values")) / count(folder)
    scalars = sum(np.dtype(dtype).itemsize for dtype in SCALARS.values())
    return round((scalars + 4 + 2 * 4 + 4 * ids) / WORD)


def words_written(id_dtype: str) -> int:
    """Return the words of a row in a batch: ids, number, padded history, its mask and its length."""
    item = np.dtype(id_dtype).itemsize
    return round((len(SCALARS) * item + 4 + LENGTH * item + LENGTH + 4) / WORD)


def compiled(read: int, written: int, ahead: int) -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    """Return the copy, with its sizes as constants."""

    @numba.njit(nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
    def copy_rows(source: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
        start = np.uint64(source.ctypes.data)
        for i in range(index.size):
            if ahead and i + ahead < index.size:
                row = start + np.uint64(index[i + ahead] * read * WORD)
                for line in range(0, read * WORD + LINE - 1, LINE):
                    prefetch(row + np.uint64(line))
            for j in range(read):
                out[i, j] = source[index[i], j]
            for j in range(read, written):
                out[i, j] = 0

    return copy_rows  # type: ignore[no-any-return]


def random_rows(folder: Path, id_dtype: str, ahead: int = 16) -> Batches:
    """Copy rows in a random order for ever; what is yielded are the indices of a run of batches."""
    read, written, rows = words_read(folder), words_written(id_dtype), count(folder)
    copy = compiled(read, written, ahead)
    source = np.ones((rows, read), np.int64)
    outs = cycle(np.zeros((2 * THREADS, RUN * BATCH, written), np.int64))
    runs = cycle(np.array_split(np.random.default_rng(SEED).permutation(rows), -(-rows // (RUN * BATCH))))
    copy(source, np.zeros(1, np.int64), next(outs))

    def make(index: np.ndarray, out: np.ndarray) -> np.ndarray:
        copy(source, index, out)
        return index

    with ThreadPoolExecutor(THREADS) as pool:
        ahead_of_us = [pool.submit(make, index, next(outs)) for index in islice(runs, 2 * THREADS)]
        while True:
            yield {"history": ahead_of_us.pop(0).result()}
            ahead_of_us.append(pool.submit(make, next(runs), next(outs)))
