"""Every order against what it promises."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from headrace.errors import OrderError
from headrace.order import (
    Block,
    Budget,
    ClassBalanced,
    EpochOrder,
    Global,
    LengthBucketed,
    Listed,
    Permutation,
    Plan,
    Sampler,
    Sequential,
    Weighted,
)
from headrace.order.quality import measure_shuffle
from headrace.order.sampler import as_sampler


def whole(order: EpochOrder, batch: int = 7, begin: int = 0) -> np.ndarray:
    """The epoch as a loader reads it: global batch by global batch."""
    plan = Plan(len(order), batch, begin=begin, cuts=order.cuts)
    bounds = [plan.bounds(step) for step in range(len(plan))]
    parts = [order.indices(np.arange(start, stop), start, stop) for start, stop in bounds]
    return np.concatenate([np.empty(0, np.int64), *parts])


@settings(deadline=None, max_examples=80)
@given(
    size=st.integers(0, 400),
    batch=st.integers(1, 40),
    block=st.integers(1, 20),
    window=st.integers(1, 5),
    lanes=st.integers(1, 9),
    seed=st.integers(0, 5),
)
def test_block_order_is_a_permutation(size, batch, block, window, lanes, seed) -> None:
    order = Block(block, window, lanes).at(size, seed, 1, Budget(batch))
    np.testing.assert_array_equal(np.sort(whole(order, batch)), np.arange(size))


@settings(deadline=None, max_examples=40)
@given(size=st.integers(1, 400), left=st.integers(1, 20), right=st.integers(1, 20), data=st.data())
def test_block_order_goes_on_at_another_batch_size(size, left, right, data) -> None:
    steps = data.draw(st.integers(0, size // left))
    order = Block(8, 2, 4).at(size, 3, 0, Budget(left))
    before = whole(order, left)[: steps * left]
    after = whole(order, right, begin=steps * left)
    np.testing.assert_array_equal(np.sort(np.concatenate([before, after])), np.arange(size))


def test_a_global_batch_takes_equal_parts_of_each_lane_and_a_rank_its_own() -> None:
    size, lanes, batch = 4096, 8, 64
    order = Block(block=16, window=4, lanes=lanes).at(size, 1, 0, Budget(batch))
    blocks_of_rank = [set(), set()]
    for start in range(0, size, batch):
        indices = order.indices(np.arange(start, start + batch), start, start + batch)
        for rank in range(2):
            blocks_of_rank[rank] |= set((indices[rank * 32 : rank * 32 + 32] // 16).tolist())
    assert not blocks_of_rank[0] & blocks_of_rank[1]
    assert len(blocks_of_rank[0] | blocks_of_rank[1]) == size // 16


def test_a_block_is_read_within_one_window() -> None:
    size, lanes, window, block = 4096, 2, 4, 16
    indices = whole(Block(block, window, lanes).at(size, 5, 0, Budget(lanes)), lanes)
    lane = indices[::lanes]
    first_window = lane[: window * block]
    assert len(set((first_window // block).tolist())) == window
    assert not (np.diff(first_window) > 0).all()


def test_block_orders_differ_by_epoch_and_seed() -> None:
    first = whole(Block(4, 2, 2).at(100, 0, 0, Budget(10)), 10)
    assert (first != whole(Block(4, 2, 2).at(100, 0, 1, Budget(10)), 10)).any()
    assert (first != whole(Block(4, 2, 2).at(100, 1, 0, Budget(10)), 10)).any()
    with pytest.raises(OrderError, match="lanes=0"):
        Block(lanes=0)


def test_weighted_draws_in_proportion() -> None:
    weights = np.array([0.0, 1.0, 2.0, 5.0])
    order = Weighted(weights).at(4, 3, 0, Budget(10))
    counts = np.bincount(order.look_up(np.arange(80_000)), minlength=4)
    assert counts[0] == 0
    assert stats.chisquare(counts[1:], weights[1:] * 10_000).pvalue > 1e-3
    assert len(order) == 4


def test_class_balanced_draws_classes_and_members_evenly() -> None:
    labels = [5, 1, 5, 5, 1, 5]
    drawn = ClassBalanced(labels).at(6, 3, 0, Budget(10)).look_up(np.arange(40_000))
    counts = np.bincount(drawn, minlength=6)
    assert stats.chisquare(counts, [5000, 10_000, 5000, 5000, 10_000, 5000]).pvalue > 1e-3


def test_draws_are_fresh_each_epoch_and_depend_on_position_alone() -> None:
    for sampler in (Weighted(np.ones(50)), ClassBalanced(np.arange(50) % 3)):
        first, second = (sampler.at(50, 1, epoch, Budget(4)) for epoch in (0, 1))
        assert (whole(first) != whole(second)).any()
        np.testing.assert_array_equal(whole(first, 3), whole(first, 50))


@settings(deadline=None, max_examples=40)
@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=200),
    batch=st.integers(1, 12),
    window=st.integers(1, 100),
)
def test_bucketed_batches_hold_like_lengths_and_every_sample_once(lengths, batch, window) -> None:
    order = LengthBucketed(lengths, window=window).at(len(lengths), 1, 0, Budget(batch))
    np.testing.assert_array_equal(np.sort(whole(order, batch)), np.arange(len(lengths)))
    assert order.cuts is None


def test_what_bucketing_leaves_over_is_a_fair_draw() -> None:
    """With ``last="drop"`` each sample is left out as often as any other, the longest too."""
    size, batch, epochs = 23, 5, 2000
    order = LengthBucketed(np.arange(size))
    left = [
        whole(order.at(size, 3, epoch, Budget(batch)), batch)[-(size % batch) :] for epoch in range(epochs)
    ]
    counts = np.bincount(np.concatenate(left), minlength=size)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_bucketing_saves_padding() -> None:
    lengths = Permutation(10_000, 1)[:] % 100 + 1
    shuffled, bucketed = (
        sampler.at(10_000, 1, 0, Budget(50)) for sampler in (Global(), LengthBucketed(lengths, window=2000))
    )
    padded = [
        sum(int(lengths[batch].max()) * 50 for batch in whole(order, 50).reshape(-1, 50))
        for order in (shuffled, bucketed)
    ]
    assert padded[1] < 0.6 * padded[0]
    assert padded[1] < 1.06 * lengths.sum()


@settings(deadline=None, max_examples=60)
@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=200),
    tokens=st.integers(30, 200),
    multiple=st.integers(1, 4),
)
def test_token_budgets_are_kept_and_every_sample_comes_once(lengths, tokens, multiple) -> None:
    sampler = LengthBucketed(lengths, window=64, multiple_of=multiple)
    order = sampler.at(len(lengths), 1, 0, Budget(None, tokens))
    np.testing.assert_array_equal(np.sort(whole(order)), np.arange(len(lengths)))
    assert order.cuts is not None
    array = np.array(lengths)
    odd = 0
    for start, stop in zip(order.cuts, order.cuts[1:], strict=False):
        batch = array[order.indices(np.arange(start, stop), start, stop)]
        assert batch.size * batch.max() <= tokens
        odd += batch.size > multiple and batch.size % multiple > 0
    assert odd <= 1


def test_a_sample_larger_than_the_budget_is_named() -> None:
    with pytest.raises(OrderError, match="sample 1 has 50 tokens, and a global batch may hold 40"):
        LengthBucketed([3, 50]).at(2, 0, 0, Budget(None, 40))


def test_listed_order_is_the_same_each_epoch() -> None:
    order = Listed([3, 1, 1]).at(5, 0, 9, Budget(2))
    assert whole(order, 2).tolist() == [3, 1, 1]
    with pytest.raises(OrderError, match=r"entry 1 is 7; there are 5 samples"):
        Listed([3, 7]).at(5, 0, 0, Budget(2))


class Reversed:
    def __init__(self, size: int) -> None:
        self.size = size

    def sample(self, position: int) -> int:
        return self.size - 1 - position


def test_shuffle_argument() -> None:
    assert isinstance(as_sampler(False), Sequential)
    assert isinstance(as_sampler(None), Sequential)
    assert isinstance(as_sampler(True), Global)
    assert isinstance(as_sampler("global"), Global)
    assert isinstance(as_sampler("block"), Block)
    assert whole(as_sampler([2, 0]).at(3, 0, 0, Budget(1))).tolist() == [2, 0]
    assert whole(as_sampler(Reversed(4)).at(4, 0, 0, Budget(1))).tolist() == [3, 2, 1, 0]
    weighted = Weighted([1.0])
    assert as_sampler(weighted) is weighted
    with pytest.raises(OrderError, match="Did you mean 'block'"):
        as_sampler("blocks")
    with pytest.raises(OrderError, match="shuffle= is a float"):
        as_sampler(0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Weighted([1.0, -1.0]), "weight 1 is -1.0"),
        (lambda: Weighted([1.0, float("nan")]), "weight 1 is nan"),
        (lambda: Weighted([0.0, 0.0]), "all weights are 0"),
        (lambda: Weighted([]), "one a sample"),
        (lambda: Weighted("abc"), "weights are numbers"),
        (lambda: Block(block=0), "block=0"),
        (lambda: Block(window=1.5), "window=1.5; it must be an integer"),
        (lambda: LengthBucketed([1], window="8"), "window='8'; it must be an integer"),
        (lambda: Weighted([1.0]).at(2, 0, 0, Budget(1)), "has 1 entries, and there are 2 samples"),
        (lambda: ClassBalanced([]), "one a sample"),
        (lambda: LengthBucketed([1, -1]), "length 1 is -1"),
        (lambda: LengthBucketed([1.5]), "they are integers"),
        (lambda: LengthBucketed([[1], [2, 3]]), "lengths: found a list of unlike elements"),
        (lambda: LengthBucketed(np.array([2**63], np.uint64)), "entry 0 is 9223372036854775808"),
        (lambda: ClassBalanced([None, 1]), r"found object \[2\]; labels are numbers, booleans or texts"),
        (lambda: ClassBalanced([[1], [2, 3]]), "found a list of unlike elements; labels"),
        (lambda: ClassBalanced([1.0, float("nan")]), "label 1 is nan, which is no class"),
        (lambda: Weighted([[1], [2, 3]]), "found a list of unlike elements; weights are numbers"),
        (lambda: Weighted(["1", "2"]), "found <U1"),
        (lambda: Listed([[1], [2, 3]]), "found a list of unlike elements; an order is integers"),
        (lambda: Listed([2**63]), "entry 0 is 9223372036854775808; it must be below"),
        (lambda: Block(block=1 << 40), "of at most 4,294,967,296 samples each"),
        (lambda: Block(window=1 << 20, lanes=1 << 20), "at most 16,777,216 blocks in use"),
        (lambda: Permutation(5)[[[1], [2, 3]]], "positions are lists of unlike lengths"),
        (lambda: as_sampler(Block), r"is the class Block; give an instance, Block\(…\)"),
        (lambda: LengthBucketed([1], window=0), "window=0"),
        (lambda: Listed([0.5]), "an order is integers"),
    ],
)
def test_impossible_orders_are_refused(make, message: str) -> None:
    with pytest.raises(OrderError, match=message):
        make()


def test_index_arrays_of_any_library_are_taken() -> None:
    torch, pandas = pytest.importorskip("torch"), pytest.importorskip("pandas")
    order = [3, 1, 2, 0]
    given = (order, tuple(order), np.array(order, np.uint8), torch.tensor(order), pandas.Series(order))
    for each in (*given, pandas.Index(order), pa.array(order)):
        sampler = as_sampler(each)
        assert sampler.describe() == Listed(order).describe()
        assert whole(sampler.at(4, 0, 0, Budget(4))).tolist() == order


def test_the_dtype_of_labels_and_weights_is_no_part_of_the_order() -> None:
    labels = [0, 1, 1, 0]
    for dtype in (np.int32, np.float32, np.bool_):
        assert ClassBalanced(np.array(labels, dtype)).describe() == ClassBalanced(labels).describe()
        assert Weighted(np.array(labels, dtype)).describe() == Weighted(labels).describe()


def test_sizes_beyond_all_data_are_sizes_of_all_data() -> None:
    lengths, huge = np.arange(9), 10**30
    for budget in (Budget(huge), Budget(None, huge)):
        order = LengthBucketed(lengths, window=huge, multiple_of=huge).at(9, 1, 0, budget)
        assert sorted(whole(order).tolist()) == list(range(9))
    weights = np.array([1e308, 1e308, 1.5e308])
    draws = whole(Weighted(weights).at(3, 0, 0, Budget(3)))
    assert set(draws.tolist()) <= {0, 1, 2}


class Named:
    def fingerprint(self) -> str:
        return "a function where a text should be"

    def sample(self, position: int) -> int:
        return position


def test_a_fingerprint_that_is_a_function_is_refused() -> None:
    with pytest.raises(OrderError, match=r"Named, .* fingerprint, where it has one, a text"):
        as_sampler(Named())


def test_descriptions_tell_orders_apart() -> None:
    samplers: list[Sampler] = [
        Sequential(), Global(), Block(), Block(lanes=8), Weighted([1, 2]), Weighted([2, 1]),
        ClassBalanced([0, 1]), LengthBucketed([1, 2]), LengthBucketed([1, 2], window=5),
        Listed([0, 1]), Listed([1, 0]),
    ]  # fmt: skip
    assert len({str(sampler.describe()) for sampler in samplers}) == len(samplers)


def quality(sampler: Sampler, size: int = 100_000, batch: int = 500):
    order = sampler.at(size, 1, 0, Budget(batch))
    return measure_shuffle(order, Plan(size, batch), size, 1 << 20)


def test_shuffle_quality_tells_good_from_bad() -> None:
    assert quality(Sequential()).score < 0.05
    assert 0.97 < quality(Global()).score <= 1
    buffers = [start + Permutation(100, start)[:] for start in range(0, 100_000, 100)]
    one_buffer = Listed(np.concatenate(buffers))
    assert quality(one_buffer).score < 0.05
    assert quality(Block(block=100, window=8, lanes=64)).score > 0.85


def test_block_order_reaches_many_shards_at_once() -> None:
    """10 shards of 1,000 ids: the first 100 come from 5 of them or more; another epoch starts elsewhere."""
    orders = [Block(block=50, window=4, lanes=64).at(10_000, 0, epoch, Budget(100)) for epoch in (0, 1)]
    first = [order.indices(np.arange(100), 0, 100) // 1000 for order in orders]
    assert len(set(first[0].tolist())) >= 5
    assert (first[0] != first[1]).any()
