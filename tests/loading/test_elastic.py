"""One sequence of global batches, whatever the ranks, the threads, the stops and the resumes."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import LoaderError, StateError
from headrace.loading import Loader
from headrace.order import Block, ClassBalanced, LengthBucketed, Permutation, Weighted
from headrace.testing import Counting, LoaderShape, loader_shapes, positions_of

WORLD_SIZES = (1, 2, 3, 4, 6, 8, 12, 64)
GLOBAL_BATCH = 192
SIZE = 1001


def orders(size: int):
    return {
        "sequential": False,
        "global": "global",
        "block": Block(block=8, window=3, lanes=12),
        "weighted": Weighted(np.arange(size) + 1.0),
        "class-balanced": ClassBalanced(np.arange(size) % 7),
        "bucketed": LengthBucketed(np.arange(size) % 50, window=300),
    }


def global_batches(world_size: int, steps: int | None = None, state=None, threads: int = 0, **options):
    """Every global batch, put together from the parts of all ranks; filling rows left out."""
    loaders = [
        Loader(Counting(SIZE), rank=rank, world_size=world_size, threads=threads, seed=4, **options)
        for rank in range(world_size)
    ]
    if state is not None:
        for loader in loaders:
            loader.load_state_dict(json.loads(json.dumps(state)))
    out = []
    iterators = [iter(loader) for loader in loaders]
    while steps is None or len(out) < steps:
        parts = [next(iterator, None) for iterator in iterators]
        assert len({part is None for part in parts}) == 1, "a rank has more steps than another"
        if parts[0] is None:
            break
        rows = [part["index"][part.get("valid", slice(None))] for part in parts]
        keys = [part["key"][part.get("valid", slice(None))] for part in parts]
        out.append((np.concatenate(rows).tolist(), np.concatenate(keys).tolist()))
    states = [loader.state_dict() for loader in loaders]
    assert all(other == states[0] for other in states), "ranks have other states"
    return out, states[0]


@pytest.mark.parametrize("order", list(orders(SIZE)))
@pytest.mark.parametrize("last", ["keep", "pad", "drop"])
def test_world_size_changes_no_global_batch(order: str, last: str) -> None:
    shuffle = orders(SIZE)[order]
    options = {"shuffle": shuffle, "last": last, "global_batch_size": GLOBAL_BATCH}
    whole, _ = global_batches(1, **options)
    assert len(whole) == (5 if last == "drop" else 6)
    if order not in ("weighted", "class-balanced") and last != "drop":
        assert sorted(index for rows, _ in whole for index in rows) == list(range(SIZE))
    assert [key for _, keys in whole for key in keys] == list(range(sum(len(rows) for rows, _ in whole)))
    for world_size in WORLD_SIZES[1:]:
        assert global_batches(world_size, **options)[0] == whole


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_change_no_global_batch(threads: int) -> None:
    options = {"shuffle": "global", "global_batch_size": GLOBAL_BATCH}
    assert global_batches(3, threads=threads, **options)[0] == global_batches(1, **options)[0]


@settings(deadline=None, max_examples=60)
@given(
    order=st.sampled_from(list(orders(SIZE))),
    last=st.sampled_from(["keep", "pad", "drop"]),
    before=st.sampled_from(WORLD_SIZES),
    after=st.sampled_from(WORLD_SIZES),
    threads=st.sampled_from([0, 2]),
    stop=st.integers(0, 6),
)
def test_stop_anywhere_and_go_on_with_any_world_size(order, last, before, after, threads, stop) -> None:
    options = {"shuffle": orders(SIZE)[order], "last": last, "global_batch_size": GLOBAL_BATCH}
    whole, _ = global_batches(1, **options)
    stop = min(stop, len(whole))
    first, state = global_batches(before, steps=stop, threads=threads, **options)
    rest, _ = global_batches(after, state=state, threads=threads, **options)
    assert first == whole[:stop]
    if stop < len(whole):
        assert first + rest == whole
    else:  # the end of an epoch is the start of the next one
        assert state["epoch"] == 1
        assert state["position"] == 0
        assert rest == global_batches(1, epoch=1, **options)[0]


@settings(deadline=None, max_examples=40)
@given(
    order=st.sampled_from(["sequential", "global", "block", "weighted"]),
    stop=st.integers(0, 5),
    batch=st.integers(1, 300),
)
def test_another_batch_size_goes_on_at_the_position(order: str, stop: int, batch: int) -> None:
    shuffle = orders(SIZE)[order]
    first, state = global_batches(1, steps=stop, shuffle=shuffle, global_batch_size=GLOBAL_BATCH)
    rest, _ = global_batches(1, state=state, shuffle=shuffle, global_batch_size=batch)
    position = stop * GLOBAL_BATCH
    assert state["position"] == position
    keys = [key for _, batch_keys in first + rest for key in batch_keys]
    assert keys == list(range(SIZE))
    if order != "weighted":
        assert sorted(index for rows, _ in first + rest for index in rows) == list(range(SIZE))
    assert [len(rows) for rows, _ in rest[:-1]] == [batch] * (len(rest) - 1)


@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_token_budgets_are_elastic_too(world_size: int) -> None:
    lengths = Permutation(SIZE, 9)[:] % 30 + 1
    order = LengthBucketed(lengths, window=200)
    whole, _ = global_batches(1, shuffle=order, max_tokens=1920)
    assert global_batches(world_size, shuffle=order, max_tokens=1920 // world_size)[0] == whole
    first, state = global_batches(1, steps=3, shuffle=order, max_tokens=1920)
    rest, _ = global_batches(world_size, state=state, shuffle=order, max_tokens=1920 // world_size)
    assert first + rest == whole


@pytest.mark.parametrize("stop", [0, 1, 200, 999, 1000, 1001, 4999])
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_exact_resume_of_five_thousand_ids(stop: int, threads: int) -> None:
    loader = Loader(Counting(5000), batch_size=1, threads=threads)
    iterator = iter(loader)
    for _ in range(stop):
        next(iterator)
    resumed = Loader(Counting(5000), batch_size=1, threads=threads)
    resumed.load_state_dict(loader.state_dict())
    again = iter(resumed)
    following = [next(again)["index"][0] for _ in range(min(5, 5000 - stop))]
    assert following == list(range(stop, min(stop + 5, 5000)))


def test_save_load_five_times_equals_the_unbroken_run() -> None:
    unbroken = [batch["index"].tolist() for batch in Loader(Counting(500), batch_size=5, shuffle="global")]
    loader, seen = Loader(Counting(500), batch_size=5, shuffle="global"), []
    for _ in range(5):
        for _, batch in zip(range(5), loader, strict=False):
            seen.append(batch["index"].tolist())
        state = loader.state_dict()
        loader = Loader(Counting(500), batch_size=5, shuffle="global")
        loader.load_state_dict(state)
        assert loader.state_dict() == state
    assert seen == unbroken[:25]


def test_a_save_one_batch_after_a_load_is_complete() -> None:
    loader = Loader(Counting(100), batch_size=10)
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    resumed = Loader(Counting(100), batch_size=10)
    resumed.load_state_dict(loader.state_dict())
    next(iter(resumed))
    third = Loader(Counting(100), batch_size=10)
    third.load_state_dict(resumed.state_dict())
    assert next(iter(third))["index"][0] == 50


def test_loading_after_iteration_began_works_and_ends_the_old_pass() -> None:
    loader = Loader(Counting(100), batch_size=10)
    state = loader.state_dict()
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    loader.load_state_dict(state)
    with pytest.raises(LoaderError, match="a loaded state has taken the place"):
        next(iterator)
    assert next(iter(loader))["index"][0] == 0


def test_a_loaded_position_travels_with_a_copy_of_the_loader() -> None:
    loader = Loader(Counting(100), batch_size=10, shuffle="global", seed=3)
    whole = [batch["index"].tolist() for batch in loader]
    loader = Loader(Counting(100), batch_size=10, shuffle="global", seed=3)
    state = {**loader.state_dict(), "position": 30}
    loader.load_state_dict(state)
    copied = copy.deepcopy(loader)
    assert copied.state_dict() == state
    assert [batch["index"].tolist() for batch in copied] == whole[3:]


def test_two_iterators_do_not_mix() -> None:
    loader = Loader(Counting(100), batch_size=10)
    first = iter(loader)
    next(first)
    second = iter(loader)
    assert next(second)["index"][0] == 0
    with pytest.raises(LoaderError, match="another pass"):
        next(first)
    assert next(second)["index"][0] == 10
    assert loader.state_dict()["position"] == 20


def test_set_epoch_keeps_a_loaded_position_of_the_same_epoch_only() -> None:
    loader = Loader(Counting(100), batch_size=10, epoch=3)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    for epoch, expected in ((3, 10), (4, 0)):
        resumed = Loader(Counting(100), batch_size=10)
        resumed.load_state_dict(state)
        resumed.set_epoch(epoch)
        assert next(iter(resumed))["index"][0] == expected


def first_key(loader: Loader) -> tuple[int, int]:
    epoch = loader.epoch
    return epoch, int(next(iter(loader))["key"][0])


@pytest.mark.parametrize("threads", [0, 2])
def test_leaving_after_the_last_batch_is_a_full_pass(threads: int) -> None:
    loader = Loader(Counting(20), batch_size=10, shuffle="global", threads=threads)
    first = [next(iterator)["index"].tolist() for iterator in [iter(loader)] for _ in range(2)]
    state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (1, 0)
    second = [batch["index"].tolist() for batch in loader]
    resumed = Loader(Counting(20), batch_size=10, shuffle="global", threads=threads)
    resumed.load_state_dict(state)
    assert [batch["index"].tolist() for batch in resumed] == second != first
    assert loader.epoch == 2


def test_an_epoch_that_was_gone_through_can_be_asked_for_again() -> None:
    loader = Loader(Counting(20), batch_size=10, shuffle="global")
    first = [next(iterator)["index"].tolist() for iterator in [iter(loader)] for _ in range(2)]
    loader.set_epoch(0)
    assert [batch["index"].tolist() for batch in loader] == first


def test_another_epoch_ends_the_pass_that_is_under_way() -> None:
    loader = Loader(Counting(40), batch_size=10)
    iterator = iter(loader)
    next(iterator)
    loader.set_epoch(0)
    next(iterator)
    loader.set_epoch(5)
    assert (loader.state_dict()["epoch"], loader.state_dict()["position"]) == (5, 0)
    with pytest.raises(LoaderError, match="another epoch or a loaded state has taken the place"):
        next(iterator)
    assert first_key(loader) == (5, 0)


@pytest.mark.parametrize("steps", [1, 3])
def test_loading_and_setting_the_epoch_in_every_order(steps: int) -> None:
    def loader() -> Loader:
        return Loader(Counting(40), batch_size=10)

    run = loader()
    run.set_epoch(3)
    iterator = iter(run)
    for _ in range(steps):
        next(iterator)
    state = run.state_dict()
    for before in (None, 0, 3, 7):
        for after, expected in ((None, (3, 10 * steps)), (3, (3, 10 * steps)), (4, (4, 0)), (2, (2, 0))):
            resumed = loader()
            if before is not None:
                resumed.set_epoch(before)
                next(iter(resumed))
            resumed.load_state_dict(state)
            if after is not None:
                resumed.set_epoch(after)
            assert (resumed.state_dict()["epoch"], resumed.state_dict()["position"]) == expected
            assert first_key(resumed) == expected
            resumed.load_state_dict(state)
            resumed.load_state_dict(state)
            assert first_key(resumed) == (3, 10 * steps)


def test_state_is_a_few_numbers_and_names() -> None:
    loader = Loader(Counting(100), batch_size=10, shuffle="global", seed=7)
    next(iter(loader))
    assert loader.state_dict() == {
        "version": 1,
        "dataset": "counting-100",
        "space": "counting-100",
        "parameters": {},
        "order": {"kind": "global"},
        "seed": 7,
        "epoch": 0,
        "position": 10,
    }


@pytest.mark.parametrize(
    ("space", "options", "message"),
    [
        (Counting(100), {"seed": 8}, r"state is of seed 7, this loader has seed 8.*loader\(seed=7\)"),
        (Counting(100), {"shuffle": False}, "order kind='global', this loader has kind='sequential'"),
        (Counting(100, "other"), {}, "state is of dataset counting-100, this loader has dataset other-100"),
        (Counting(99), {}, "counting-100, this loader has dataset counting-99"),
    ],
)
def test_a_state_of_something_else_is_refused_with_the_difference(space, options, message: str) -> None:
    state = Loader(Counting(100), batch_size=10, shuffle="global", seed=7).state_dict()
    with pytest.raises(StateError, match=message):
        Loader(space, batch_size=10, **{"shuffle": "global", "seed": 7, **options}).load_state_dict(state)


def test_a_plan_of_another_budget_is_refused() -> None:
    order = LengthBucketed(np.arange(100) % 9)
    state = Loader(Counting(100), batch_size=10, shuffle=order).state_dict()
    with pytest.raises(StateError, match="order global_batch=10, this loader has global_batch=20"):
        Loader(Counting(100), batch_size=20, shuffle=order).load_state_dict(state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "state is of version 2"),
        ({"position": 101}, "position 101, and epoch 0 has 100 samples"),
        ({"position": -1}, "position=-1"),
        ({"epoch": "0"}, "epoch='0'"),
        ({"position": 1.0}, "position=1.0"),
        ({"seed": "0"}, "state is of seed '0', this loader has seed 0"),
        ({"order": None}, "order kind=None"),
    ],
)
def test_a_damaged_state_is_refused(change, message: str) -> None:
    loader = Loader(Counting(100), batch_size=10)
    with pytest.raises(StateError, match=message):
        loader.load_state_dict({**loader.state_dict(), **change})
    with pytest.raises(StateError, match="no loader state: version, dataset, space"):
        loader.load_state_dict({"model": 1})
    with pytest.raises(StateError, match="no loader state"):
        loader.load_state_dict(None)


def test_a_position_inside_a_batch_of_a_plan_is_refused_and_changes_nothing() -> None:
    order = LengthBucketed(np.arange(100) % 9)
    loader = Loader(Counting(100), max_tokens=40, shuffle=order)
    next(iter(loader))
    before = loader.state_dict()
    assert before["position"] > 1
    damaged = {**before, "epoch": 4, "position": before["position"] - 1}
    with pytest.raises(StateError, match=r"position \d+ in epoch 4: .*is inside a batch of this plan"):
        loader.load_state_dict(damaged)
    assert loader.state_dict() == before


def test_a_state_may_hold_integers_of_numpy() -> None:
    loader = Loader(Counting(100), batch_size=10)
    loader.load_state_dict({**loader.state_dict(), "epoch": np.int64(2), "position": np.int32(20)})
    assert json.loads(json.dumps(loader.state_dict()))["position"] == 20
    assert first_key(loader) == (2, 20)


def test_another_selection_of_the_same_dataset_is_refused() -> None:
    from headrace.loading import Rows, Scalar

    rows = Rows([Scalar("a", [np.zeros(4, np.uint8)])], [4], "data")
    state = Loader(rows.select([0, 1]), batch_size=1).state_dict()
    with pytest.raises(
        StateError, match=r"state is of space data-\w+, this loader has space data-\w+.*same selection"
    ):
        Loader(rows.select([1, 2]), batch_size=1).load_state_dict(state)


@settings(deadline=None, max_examples=60)
@given(shape=loader_shapes(), shuffle=st.sampled_from([False, "global", "block"]))
def test_a_global_batch_is_its_positions(shape: LoaderShape, shuffle) -> None:
    ranks = [
        Loader(
            Counting(shape.size),
            global_batch_size=shape.global_batch_size,
            shuffle=shuffle,
            rank=rank,
            world_size=shape.world_size,
            last=shape.last,
            threads=0,
        )
        for rank in range(shape.world_size)
    ]
    for step, parts in enumerate(zip(*ranks, strict=True)):
        keys = np.concatenate([part["key"][part.get("valid", slice(None))] for part in parts])
        np.testing.assert_array_equal(keys, positions_of(step, shape))


def test_another_layout_is_refused_by_name() -> None:
    from headrace.loading import Ragged, Rows

    def rows(layout: str) -> Rows:
        return Rows([Ragged("a", [np.array([0, 1])], [np.array([3], np.uint8)], 2)], [1], "x", layout=layout)

    state = Loader(rows("padded"), batch_size=1).state_dict()
    with pytest.raises(StateError, match="layout layout='padded', this loader has layout='jagged'"):
        Loader(rows("jagged"), batch_size=1).load_state_dict(state)


def test_resume_at_step_ten_million_makes_nothing_of_what_came_before() -> None:
    asked = []

    class Watched(Counting):
        def gather(self, indices, keys):
            asked.append(int(keys[0]))
            return super().gather(indices, keys)

    space = Watched(1 << 40)
    loader = Loader(space, batch_size=64, shuffle="global", threads=0)
    state = {**loader.state_dict(), "position": 10_000_000 * 64}
    loader.load_state_dict(state)
    batch = next(iter(loader))
    assert asked == [640_000_000]
    np.testing.assert_array_equal(batch["index"], Permutation(1 << 40)[batch["key"]])
