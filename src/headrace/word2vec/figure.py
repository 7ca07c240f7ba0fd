"""Before and after subsampling, as a picture: sentence lengths, and kept counts by frequency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import CorpusError
from headrace.word2vec.space import CenterSpace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS = 30


def plot_subsampling(space: CenterSpace, seed: int = 0, epoch: int = 0) -> Figure:
    """Draw what subsampling does to a corpus in one epoch.

    Left, the book's histogram: tokens per sentence in the corpus and in the epoch. Right, for
    each word that occurs: how often it is kept against how often it occurs, and the expectation.

    Args:
        space: A ``SkipGram`` or ``CBOW``.
        seed: Seed of the epoch.
        epoch: Which epoch.

    Returns:
        A matplotlib figure; ``figure.savefig(...)`` writes it.

    Raises:
        CorpusError: matplotlib is not installed.
    """
    figure = _figure_class()(figsize=(11, 4), layout="constrained")
    lengths, kept = figure.subplots(1, 2)
    _plot_lengths(lengths, space, seed, epoch)
    _plot_kept(kept, space, seed, epoch)
    return figure


def _figure_class() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise CorpusError(
            "matplotlib draws this figure and is not installed: pip install 'headrace[report]'."
        ) from None
    return Figure


def _plot_lengths(axes: Any, space: CenterSpace, seed: int, epoch: int) -> None:
    before, after = space.corpus.lengths, space.lengths(seed, epoch)
    edges = np.linspace(0, int(before.max(initial=0)) + 1, _BINS + 1)
    axes.hist([before, after], edges, label=["corpus", f"epoch {epoch}"])
    axes.set(xlabel="tokens in a sentence", ylabel="sentences")
    axes.legend()


def _plot_kept(axes: Any, space: CenterSpace, seed: int, epoch: int) -> None:
    words = np.flatnonzero(space.counts)
    counts = space.counts[words]
    kept = np.bincount(space.at(seed, epoch).words, minlength=len(space.counts))[words]
    order = np.argsort(counts)
    axes.loglog(counts[kept > 0], kept[kept > 0], ".", markersize=3, label=f"epoch {epoch}")
    axes.loglog(counts[order], (counts * space.keep_probabilities[words])[order], label="expected")
    axes.set(xlabel="occurrences of a word", ylabel="kept")
    axes.legend()
