"""Samples of one's own as a batch: the layout that every batch here has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

BatchTuple = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def batchify(samples: Iterable[tuple[int, Sequence[int], Sequence[int]]]) -> BatchTuple:
    """Lay out samples as *Dive into Deep Learning* does, in NumPy.

        samples               contexts_negatives   masks        labels
        7, [4, 5], [9, 9, 8]  4 5 9 9 8            1 1 1 1 1    1 1 0 0 0
        6, [1], [2, 3]        1 2 3 0 0            1 1 1 0 0    1 0 0 0 0

    Args:
        samples: Triples of a centre, its contexts and its negatives, all word ids.

    Returns:
        int64 ``centers`` [B, 1], ``contexts_negatives`` [B, M], ``masks`` [B, M] and ``labels`` [B, M],
        M being the longest row.
    """
    rows = list(samples)
    width = max((len(contexts) + len(negatives) for _, contexts, negatives in rows), default=0)
    centers = np.array([[center] for center, _, _ in rows], np.int64).reshape(-1, 1)
    filled, masks, labels = (np.zeros((len(rows), width), np.int64) for _ in range(3))
    for row, (_, contexts, negatives) in enumerate(rows):
        size = len(contexts) + len(negatives)
        filled[row, :size] = [*contexts, *negatives]
        masks[row, :size] = 1
        labels[row, : len(contexts)] = 1
    return centers, filled, masks, labels
