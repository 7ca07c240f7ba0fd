from __future__ import annotations

import numpy as np

from headrace.word2vec import batchify


def test_the_rows_of_the_case() -> None:
    centers, contexts_negatives, masks, labels = batchify([(7, [4, 5], [9, 9, 8]), (6, [1], [2, 3])])
    assert centers.tolist() == [[7], [6]]
    assert contexts_negatives.tolist() == [[4, 5, 9, 9, 8], [1, 2, 3, 0, 0]]
    assert masks.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert labels.tolist() == [[1, 1, 0, 0, 0], [1, 0, 0, 0, 0]]


def test_no_samples() -> None:
    arrays = batchify([])
    assert [array.shape for array in arrays] == [(0, 1), (0, 0), (0, 0), (0, 0)]
    assert {array.dtype for array in arrays} == {np.dtype(np.int64)}
