"""Who gets what, for any sizes: exactly once, in order, with as many steps on every rank."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import OrderError
from headrace.order.plan import Plan, share

lasts = st.sampled_from(["keep", "pad", "drop"])


def plans(size: int, batch: int, world_size: int, last: str, begin: int = 0) -> list[Plan]:
    return [Plan(size, batch * world_size, rank, world_size, last, begin) for rank in range(world_size)]


@settings(deadline=None)
@given(
    size=st.integers(0, 300),
    batch=st.integers(1, 9),
    world_size=st.integers(1, 7),
    last=lasts,
    data=st.data(),
)
def test_positions_come_once_and_in_order(size: int, batch: int, world_size: int, last: str, data) -> None:
    begin = data.draw(st.integers(0, size))
    ranks = plans(size, batch, world_size, last, begin)
    assert len({len(plan) for plan in ranks}) == 1
    seen = []
    for step in range(len(ranks[0])):
        parts = [plan.part(step) for plan in ranks]
        seen += [parts[rank].positions for rank in range(world_size)]
        assert {(part.start, part.stop) for part in parts} == {ranks[0].bounds(step)}
        if last != "keep":
            assert all(part.last - part.first + part.filling == batch for part in parts)
    end = size if last != "drop" else size - (size - begin) % (batch * world_size)
    np.testing.assert_array_equal(np.concatenate([np.empty(0, np.int64), *seen]), np.arange(begin, end))
    assert ranks[0].left_out == size - end
    for plan in ranks if seen else ():
        first = data.draw(st.integers(0, len(plan) - 1))
        count = data.draw(st.integers(1, len(plan) - first))
        assert plan.parts(first, count) == [plan.part(step) for step in range(first, first + count)]


@given(count=st.integers(0, 1000), world_size=st.integers(1, 70))
def test_shares_are_equal_but_for_one(count: int, world_size: int) -> None:
    bounds = [share(count, rank, world_size) for rank in range(world_size)]
    assert bounds[0][0] == 0
    assert bounds[-1][1] == count
    assert all(left[1] == right[0] for left, right in pairwise(bounds))
    sizes = [last - first for first, last in bounds]
    assert sizes == [count // world_size + (rank < count % world_size) for rank in range(world_size)]


@pytest.mark.parametrize(
    ("last", "steps", "rows", "left_out"),
    [("drop", 1, [2, 2, 2], 4), ("pad", 2, [4, 4, 4], 0), ("keep", 2, [4, 3, 3], 0)],
)
def test_ten_samples_on_three_ranks(last: str, steps: int, rows: list[int], left_out: int) -> None:
    ranks = plans(10, 2, 3, last)
    parts = [[plan.part(step) for step in range(len(plan))] for plan in ranks]
    assert [len(plan) for plan in ranks] == [steps] * 3
    assert [sum(part.last - part.first + part.filling for part in each) for each in parts] == rows
    assert ranks[0].left_out == left_out
    assert sum(part.filling for each in parts for part in each) == (2 if last == "pad" else 0)


def test_filling_rows_come_last_in_the_global_batch() -> None:
    parts = [plan.part(1) for plan in plans(10, 2, 3, "pad")]
    assert [(part.positions.tolist(), part.filling) for part in parts] == [([6, 7], 0), ([8, 9], 0), ([], 2)]


def test_a_global_batch_that_ranks_do_not_divide() -> None:
    parts = [Plan(20, 7, rank, 3).part(0) for rank in range(3)]
    assert [part.last - part.first for part in parts] == [3, 2, 2]
    with pytest.raises(OrderError, match=r"7 samples is not divisible by world_size=3.*keep"):
        Plan(20, 7, 0, 3, "pad")


def test_cuts_of_any_size() -> None:
    cuts = np.array([0, 3, 4, 9])
    assert [Plan(9, 0, cuts=cuts).bounds(step) for step in range(3)] == [(0, 3), (3, 4), (4, 9)]
    assert len(Plan(9, 0, cuts=cuts, begin=4)) == 1
    padded = [Plan(9, 0, rank, 2, "pad", cuts=cuts).part(1) for rank in range(2)]
    assert [(part.last - part.first, part.filling) for part in padded] == [(1, 0), (0, 1)]
    with pytest.raises(OrderError, match="position 5 is inside a batch"):
        Plan(9, 0, cuts=cuts, begin=5)
    with pytest.raises(OrderError, match="last='drop'"):
        Plan(9, 0, last="drop", cuts=cuts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((10, 2, 3, 3), r"rank is 3; with world_size=3 it must be in \[0, 3\)"),
        ((10, 2, 0, 0), "world_size is 0"),
        ((10, 0, 0, 1), "global batch of 0 samples"),
        ((10, 2, 0, 1, "trim"), "last='trim'; it is 'keep', 'pad' or 'drop'"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message: str) -> None:
    with pytest.raises(OrderError, match=message):
        Plan(*arguments)


def test_step_ten_million_costs_what_step_ten_costs() -> None:
    plan = Plan(1 << 62, 4096, begin=10_000_000 * 4096)
    assert plan.part(3).first == 10_000_003 * 4096
