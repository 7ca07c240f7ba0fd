"""Cuts by tokens and grouped draws against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.kernels.draws import cut_by_tokens, draw_grouped, draw_weighted
from headrace.kernels.mixture import BLOCK, deal
from headrace.kernels.rng import stream_key


def cut_reference(lengths: list[int], budget: int, multiple: int) -> list[int]:
    """Take as many as fit, cut down to the multiple; the last batch takes what is left."""
    cuts, start = [0], 0
    while start < len(lengths):
        stop = start + 1
        while stop < len(lengths) and (stop + 1 - start) * max(1, *lengths[start : stop + 1]) <= budget:
            stop += 1
        count = stop - start
        if stop < len(lengths) and count >= multiple:
            stop -= count % multiple
        cuts.append(stop)
        start = stop
    return cuts


@settings(deadline=None, max_examples=200)
@given(
    lengths=st.lists(st.integers(0, 12), max_size=60), budget=st.integers(12, 60), multiple=st.integers(1, 5)
)
def test_cuts_equal_the_reference(lengths: list[int], budget: int, multiple: int) -> None:
    found = cut_by_tokens(np.array(lengths, np.int64), budget, multiple)
    assert found.tolist() == cut_reference(lengths, budget, multiple)


def test_the_example_of_the_docstring() -> None:
    assert cut_by_tokens(np.array([3, 3, 4, 9, 2, 5]), 12, 1).tolist() == [0, 3, 4, 6]


def test_grouped_draws_stay_in_their_group() -> None:
    members, offsets = np.array([4, 2, 0, 1, 3]), np.array([0, 1, 5])
    drawn = draw_grouped(np.arange(1000), members, offsets, stream_key(0, 0, "test"))
    assert set(drawn.tolist()) == {0, 1, 2, 3, 4}
    assert 400 < (drawn == 4).sum() < 600


def test_a_table_of_one_draws_it() -> None:
    assert draw_weighted(np.arange(5), np.zeros(1, np.uint64), stream_key(0, 0, "test")).tolist() == [0] * 5


@settings(deadline=None, max_examples=30)
@given(first=st.integers(1, BLOCK - 1), block=st.integers(0, 10**9))
def test_a_block_deals_exact_counts_and_numbers_them(first: int, block: int) -> None:
    counts = np.array([first, BLOCK - first])
    part, draw = deal(np.arange(block * BLOCK, (block + 1) * BLOCK), counts, stream_key(3, 0, "test"))
    for number, count in enumerate(counts.tolist()):
        assert draw[part == number].tolist() == list(range(block * count, (block + 1) * count))
