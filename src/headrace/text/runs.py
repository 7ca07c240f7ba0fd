"""Which stretches of tokens fill the rows of a batch: what every kind of cut answers with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class Runs(NamedTuple):
    """Which stretches of tokens fill the rows of a batch."""

    row_runs: Integers
    """int64 [B+1], the runs before each row."""
    position: Integers
    """int64 [R], first token of each run, counted over all documents and added end tokens."""
    size: Integers
    """int64 [R], tokens in each run."""
    document: Integers
    """int64 [R], the document of each run's first token."""
    seen: Integers
    """int64 [B], leading tokens of each row that an earlier row of its stream holds."""

    def of_rows(self, first: int, end: int) -> Runs:
        """Return the runs of the rows ``first`` to ``end - 1`` alone."""
        begin, last = self.row_runs[first], self.row_runs[end]
        return Runs(
            self.row_runs[first : end + 1] - begin,
            self.position[begin:last],
            self.size[begin:last],
            self.document[begin:last],
            self.seen[first:end],
        )
