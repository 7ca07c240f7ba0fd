"""Which words stay and which are drawn as noise, from the counts of a corpus.

Mikolov et al., "Distributed representations of words and phrases and their
compositionality", NeurIPS 2013: equation 5 (subsampling) and section 2.2
(negative sampling from counts to the power 3/4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.errors import CorpusError
from headrace.kernels.alias import alias_table, integer_masses
from headrace.word2vec.settings import is_number

_TWO_TO_32 = float(1 << 32)


def keep_probabilities(counts: NDArray[np.int64], subsample: float | None) -> NDArray[np.float64]:
    """Return with which probability subsampling keeps each word: ``min(1, sqrt(t / f))``.

    Args:
        counts: int64 [V], occurrences of each word; 0 for ids that are no words.
        subsample: The threshold t, against f = count / total; ``None`` keeps every word.

    Returns:
        float64 [V]; 0 where the count is 0.

    Raises:
        CorpusError: ``subsample`` is not above 0.
    """
    present = (counts > 0).astype(np.float64)
    if subsample is None:
        return present
    if not is_number(subsample) or not subsample > 0:
        raise CorpusError(f"subsample is {subsample!r}; it must be above 0, or None to keep every token.")
    frequencies = counts / max(int(counts.sum()), 1)
    return np.minimum(present, np.sqrt(subsample / np.where(counts > 0, frequencies, 1.0)))


def keep_thresholds(probabilities: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return keep probabilities as uint64 [V]: a token stays when its random uint32 is below."""
    return np.rint(probabilities * _TWO_TO_32).astype(np.uint64)


@dataclass(frozen=True, eq=False)
class Noise:
    """The distribution of noise words: an alias table, and the same as running masses."""

    table: NDArray[np.uint64]
    """uint64 [V], see ``headrace.kernels.alias.alias_table``."""
    cumulative: NDArray[np.uint64]
    """uint64 [V], running integer masses; the last is exactly ``V * 2**32``."""

    @classmethod
    def from_counts(cls, counts: NDArray[np.int64], power: float) -> Noise:
        """Make the distribution ``count ** power``, divided by its sum; a count of 0 is never drawn.

        Args:
            counts: int64 [V], occurrences of each word; 0 for ids that are no words.
            power: 0.75 in the paper; 0 is uniform over the words that occur.

        Raises:
            CorpusError: No count is above 0, or the power or a count to it is not finite.
        """
        if not is_number(power) or not np.isfinite(power):
            raise CorpusError(f"power is {power!r}; it must be a finite number, 0.75 in the paper.")
        if not counts.any():
            raise CorpusError("no word of the vocabulary occurs in the corpus: there is nothing to learn.")
        with np.errstate(over="ignore", under="ignore"):
            weights = np.power(np.maximum(counts, 1), float(power)) * (counts > 0)
            total = weights.sum()
        if not (np.isfinite(total) and total > 0):
            raise CorpusError(f"power is {power!r}; counts to that power are no numbers, 0.75 in the paper.")
        masses = integer_masses(weights)
        return cls(alias_table(masses), np.cumsum(masses))

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """float64 [V], the probability of each id."""
        masses = np.diff(self.cumulative, prepend=np.uint64(0))
        return masses / float(self.cumulative[-1])
