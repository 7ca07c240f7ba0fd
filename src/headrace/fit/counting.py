"""How often each value stands in the train split: partial counts for each part, merged into one table."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import texts_of
from headrace.fit.rules import Rules
from headrace.fit.vocabulary import Vocabulary
from headrace.kernels import ragged
from headrace.parse.interner import Interner
from headrace.scratch import IN_MEMORY, Scratch


def count_elements(
    codes: NDArray[np.uint32],
    borders: NDArray[np.int64],
    chosen: NDArray[np.int64],
    counts: NDArray[np.int64],
    *,
    distinct: bool,
) -> None:
    """Count the elements of chosen rows.

    Args:
        codes: uint32 [elements].
        borders: int64 [n + 1], where each row's elements begin.
        chosen: int64, which rows count.
        counts: int64 [codes + 1], added to, by code; the last one counts missing elements.
        distinct: Count an element once a row.
    """
    if distinct:
        ragged.count_distinct_codes(codes, borders, chosen, counts, np.full(len(counts), -1, np.int64))
    else:
        ragged.count_codes(codes, borders, chosen, counts)


class ValueCounts:
    """Sums the counts of parts and of features that share a vocabulary.

    Args:
        scratch: Where large arrays lie.
    """

    def __init__(self, scratch: Scratch = IN_MEMORY) -> None:
        self._scratch = scratch
        self._interner = Interner(scratch=scratch)
        self._totals = np.zeros(1 << 10, np.int64)
        self._reserved: Counter[int] = Counter()

    def add(self, texts: pa.Array, counts: NDArray[np.int64], missing_id: int) -> None:
        """Add one column's counts.

        Args:
            texts: The id text of each code, large_string [size].
            counts: int64 [size + 1], as ``count_elements`` adds them up.
            missing_id: The reserved id that the column's missing values have.
        """
        met = np.flatnonzero(counts[:-1])
        codes = self._interner.texts(texts_of(texts).select(met))
        if len(self._interner) > len(self._totals):
            totals = self._scratch.zeros(2 * len(self._interner), np.int64)
            totals[: len(self._totals)] = self._totals
            self._totals = totals
        self._totals[codes] += counts[met]
        self._reserved[missing_id] += int(counts[-1])

    def vocabulary(self, rules: Rules) -> Vocabulary:
        """Rank what was counted."""
        values, totals = self._interner.values(), self._totals[: len(self._interner)]
        return Vocabulary.from_counts(values, totals, rules, self._reserved, self._scratch)
