"""Windows of several lengths: every document cut at each, one bucket a length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headrace.text.cuts import Cut, check_windows
from headrace.text.runs import Integers, Runs


@dataclass(frozen=True, eq=False)
class BucketedCut:
    """The rows of several cuts, one after the other; each row is one run.

    window=[4, 8]    rows 0 .. n4 - 1 of 4 tokens, then n4 .. n4 + n8 - 1 of 8
    """

    cuts: tuple[Cut, ...]

    @cached_property
    def bounds(self) -> Integers:
        """int64 [number of cuts + 1], the rows before each cut."""
        return np.cumsum([0, *(len(cut) for cut in self.cuts)], dtype=np.int64)

    def __len__(self) -> int:
        return int(self.bounds[-1])

    def buckets(self, indices: Integers) -> Integers:
        """Return int64 [B], the cut of each row."""
        return np.searchsorted(self.bounds, indices, side="right") - 1

    def width(self, indices: Integers) -> int:
        """Return the tokens in the longest of the rows.

        Where there are none it is those of the shortest window: a rank that gets no sample of a
        last, incomplete batch may see another width than the others.
        """
        present = np.unique(self.buckets(indices)).tolist()
        return max((self.cuts[bucket].width(indices) for bucket in present), default=self._shortest)

    @property
    def _shortest(self) -> int:
        return min(cut.width(np.empty(0, np.int64)) for cut in self.cuts)

    def runs(self, indices: Integers) -> Runs:
        """Return one run a row."""
        check_windows(indices, len(self))
        buckets = self.buckets(indices)
        position, size, document, seen = np.empty((4, indices.size), np.int64)
        for bucket in np.unique(buckets).tolist():
            rows = buckets == bucket
            runs = self.cuts[bucket].runs(indices[rows] - self.bounds[bucket])
            position[rows], size[rows] = runs.position, runs.size
            document[rows], seen[rows] = runs.document, runs.seen
        return Runs(np.arange(indices.size + 1), position, size, document, seen)
