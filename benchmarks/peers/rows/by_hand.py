"""What people write by hand over arrays that are mapped or in memory."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np

from peers.rows.layout import (
    BATCH,
    LENGTH,
    NAMES,
    SCALARS,
    Batch,
    Batches,
    Columns,
    column,
    count,
    gather,
    padded_columns,
    shuffled,
    tensors,
)


def numpy_padded(folder: Path, id_dtype: str, threads: int = 1) -> Batches:
    """Gather with ``take`` over maps that are padded on disk already."""
    columns = padded_columns(folder, id_dtype)
    return in_threads(lambda index: gather(columns, index, id_dtype), count(folder), threads)


def numpy_ragged(folder: Path, id_dtype: str, threads: int = 1) -> Batches:
    """Gather over ragged maps, with an index array of [B, 50] for the history."""
    columns = {name: column(folder, name) for name in (*SCALARS, "price", "offsets", "values")}
    return in_threads(lambda index: gather_ragged(columns, index, id_dtype), count(folder), threads)


def gather_ragged(columns: Columns, index: np.ndarray, id_dtype: str) -> Batch:
    """Return the batch of some rows of ragged columns."""
    batch = {name: columns[name].take(index) for name in (*SCALARS, "price")}
    at = columns["offsets"].take(index + 1)[:, None] + np.arange(-LENGTH, 0)
    mask = at >= columns["offsets"].take(index)[:, None]
    history = columns["values"].take(at, mode="clip").astype(id_dtype)
    history *= mask
    return tensors({**batch, "history": history, "history_mask": mask}, id_dtype)


def in_threads(make: Callable[[np.ndarray], Batch], rows: int, threads: int) -> Batches:
    """Make batches in order, on this thread or on several ahead of it."""
    if threads == 1:
        yield from map(make, shuffled(rows))
        return
    with ThreadPoolExecutor(threads) as pool:
        indices = shuffled(rows)
        ahead = [pool.submit(make, index) for index in islice(indices, 2 * threads)]
        while ahead:
            yield ahead.pop(0).result()
            ahead.extend(pool.submit(make, index) for index in islice(indices, 1))


def torch_memory(folder: Path, id_dtype: str, way: str = "index_select") -> Batches:
    """Index tensors that are all in memory by a permutation, as torch does it: on all processors."""
    import torch

    columns = in_memory(folder, id_dtype)
    for index in torch.randperm(count(folder)).split(BATCH):
        if way == "index":
            yield {name: tensor[index] for name, tensor in columns.items()}
        else:
            yield {name: tensor.index_select(0, index) for name, tensor in columns.items()}


def in_memory(folder: Path, id_dtype: str) -> Batch:
    """Return all columns as tensors in memory, in the dtypes of a batch."""
    columns = padded_columns(folder, id_dtype)
    return tensors({name: np.array(columns[name]) for name in NAMES}, id_dtype)
