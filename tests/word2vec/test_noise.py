from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import CorpusError
from headrace.word2vec import keep_probabilities
from headrace.word2vec.noise import Noise, keep_thresholds


def test_noise_odds_are_8_to_1_and_the_last_cumulative_value_is_exactly_1() -> None:
    noise = Noise.from_counts(np.array([0, 0, 16, 1]), power=0.75)
    assert noise.probabilities == pytest.approx([0, 0, 8 / 9, 1 / 9], abs=1e-9)
    assert int(noise.cumulative[-1]) == 4 << 32


def test_keep_chance_before_and_after_ten_more_b() -> None:
    assert keep_probabilities(np.array([16, 1]), 0.01).round(3).tolist() == [0.103, 0.412]
    assert keep_probabilities(np.array([16, 11]), 0.01).round(3).tolist() == [0.130, 0.157]


def test_no_threshold_keeps_every_word_that_occurs() -> None:
    assert keep_probabilities(np.array([0, 7, 1]), None).tolist() == [0.0, 1.0, 1.0]


def test_rare_words_are_kept_whole() -> None:
    probabilities = keep_probabilities(np.array([1, 1, 10**9]), 1e-4)
    assert probabilities[:2].tolist() == [1.0, 1.0]
    assert keep_thresholds(probabilities)[0] == 1 << 32


@pytest.mark.parametrize("subsample", [0, 0.0, -1e-4, float("nan")])
def test_impossible_threshold(subsample: float) -> None:
    with pytest.raises(CorpusError, match="must be above 0, or None"):
        keep_probabilities(np.array([1, 2]), subsample)


def test_power_0_is_uniform_over_the_words_that_occur() -> None:
    assert Noise.from_counts(np.array([0, 5, 500, 0]), power=0).probabilities.tolist() == [0, 0.5, 0.5, 0]


@pytest.mark.parametrize("power", [float("nan"), float("inf")])
def test_impossible_power(power: float) -> None:
    with pytest.raises(CorpusError, match="finite"):
        Noise.from_counts(np.array([1, 2]), power)


@pytest.mark.parametrize("power", [1e9, -1e9])
def test_a_power_that_no_count_bears(power: float) -> None:
    with pytest.raises(CorpusError, match="counts to that power are no numbers"):
        Noise.from_counts(np.array([0, 2, 3]), power)


def test_five_million_words() -> None:
    counts = (10**9 / np.arange(2, 5_000_002)).astype(np.int64) + 1
    probabilities = Noise.from_counts(counts, 0.75).probabilities
    expected = counts**0.75 / (counts**0.75).sum()
    assert np.abs(probabilities / expected - 1).max() < 1e-3
