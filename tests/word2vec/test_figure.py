from __future__ import annotations

import builtins
from typing import Any

import pytest

from headrace.errors import CorpusError
from headrace.fit.vocabulary import Vocabulary
from headrace.word2vec import SkipGram, plot_subsampling

SENTENCES = [[*"aaaaaaaabc"], [*"aaaab"], [*"aaaaaaaaaaaaaaabbc"]]
SPACE = SkipGram(SENTENCES, Vocabulary.fit([word for row in SENTENCES for word in row]), subsample=0.05)


def test_lengths_and_counts_are_those_of_the_epoch() -> None:
    pytest.importorskip("matplotlib")
    lengths, kept = plot_subsampling(SPACE, seed=3, epoch=1).axes
    before, after = lengths.containers
    assert sum(bar.get_height() for bar in before) == sum(bar.get_height() for bar in after) == 3
    points, expected = kept.lines
    words = SPACE.at(3, 1).words
    assert sorted(points.get_ydata()) == sorted((words == word).sum() for word in set(words.tolist()))
    assert expected.get_xdata().tolist() == sorted(SPACE.counts[SPACE.counts > 0])


def test_what_to_install_where_matplotlib_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(CorpusError, match=r"pip install 'headrace\[report\]'"):
        plot_subsampling(SPACE)
