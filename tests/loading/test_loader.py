"""What a loader delivers: orders, ranks, the last batch, epochs, transforms, errors."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from itertools import chain

import numpy as np
import pytest

from headrace.dataset.dataset import Dataset
from headrace.errors import LoaderError, OrderError, StateError
from headrace.loading import Batch, Loader, Ragged, Rows, Scalar
from headrace.order import LengthBucketed, Permutation, Weighted
from headrace.testing import Counting, assert_batches_equal, check_sample_space


def ids(batches) -> list[list[int]]:
    return [batch["index"].tolist() for batch in batches]


def ranks(size: int, world_size: int, **options) -> list[list[list[int]]]:
    return [
        ids(Loader(Counting(size), rank=rank, world_size=world_size, **options)) for rank in range(world_size)
    ]


def test_in_order_without_shuffle() -> None:
    assert ids(Loader(Counting(10), batch_size=4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_shuffled_by_the_permutation() -> None:
    loader = Loader(Counting(10_000), batch_size=999, shuffle="global", seed=5, epoch=2)
    expected = Permutation(10_000, 5, 2)[:]
    np.testing.assert_array_equal(np.concatenate([batch["index"] for batch in loader]), expected)


def test_keys_are_the_epoch_positions() -> None:
    loader = Loader(Counting(10), batch_size=2, shuffle="global", rank=1, world_size=2)
    assert [batch["key"].tolist() for batch in loader] == [[2, 3], [6, 7], [9]]


def test_ten_samples_on_three_ranks() -> None:
    """Equal steps, exact evaluation: the mean id is 4.5 and not that of repeated samples."""
    assert ranks(10, 3, batch_size=2, last="drop") == [[[0, 1]], [[2, 3]], [[4, 5]]]
    assert ranks(10, 3, batch_size=2, last="keep") == [[[0, 1], [6, 7]], [[2, 3], [8]], [[4, 5], [9]]]
    padded = [
        list(Loader(Counting(10), batch_size=2, rank=rank, world_size=3, last="pad")) for rank in range(3)
    ]
    assert [ids(batches) for batches in padded] == [[[0, 1], [6, 7]], [[2, 3], [8, 9]], [[4, 5], [-1, -1]]]
    valid = np.concatenate([batch["valid"] for batches in padded for batch in batches])
    indices = np.concatenate([batch["index"] for batches in padded for batch in batches])
    assert valid.dtype == bool
    assert (~valid).sum() == 2
    assert indices[valid].mean() == 4.5
    assert all("valid" in batch for batches in padded for batch in batches)


def test_ten_rows_in_batches_of_four_under_a_small_window() -> None:
    from headrace.order import Block

    loader = Loader(Counting(10), batch_size=4, shuffle=Block(block=1, window=6, lanes=1))
    batches = ids(loader)
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert sorted(chain(*batches)) == list(range(10))


@pytest.mark.parametrize("last", ["keep", "pad", "drop"])
@pytest.mark.parametrize("size", [0, 1, 5, 9, 14])
def test_all_ranks_run_as_many_steps(size: int, last: str) -> None:
    loaders = [Loader(Counting(size), batch_size=4, rank=rank, world_size=2, last=last) for rank in range(2)]
    assert len({len(loader) for loader in loaders}) == 1
    assert [len(list(loader)) for loader in loaders] == [len(loaders[0])] * 2


@pytest.mark.parametrize(
    ("last", "rows"), [("keep", [[4, 3], [4, 3]]), ("pad", [[4, 4]] * 2), ("drop", [[4]] * 2)]
)
def test_files_of_five_and_nine_rows_on_two_ranks(last: str, rows: list[list[int]]) -> None:
    values = [np.arange(5, dtype=np.uint8), np.arange(5, 14, dtype=np.uint8)]
    space = Rows([Scalar("user", values)], [5, 9], "two files")
    found = [list(Loader(space, batch_size=4, rank=rank, world_size=2, last=last)) for rank in range(2)]
    assert [[len(batch["user"]) for batch in batches] for batches in found] == rows
    kept = [batch["user"][batch.get("valid", slice(None))] for batches in found for batch in batches]
    assert sorted(np.concatenate(kept).tolist()) == list(range(8 if last == "drop" else 14))


def test_a_rank_may_get_an_empty_batch_with_the_same_names() -> None:
    batches = ranks(5, 4, batch_size=1)
    assert [len(each) for each in batches] == [2, 2, 2, 2]
    assert batches[3][1] == []
    empty = list(Loader(Counting(5), batch_size=1, rank=3, world_size=4))[1]
    assert {name: array.dtype for name, array in empty.items()} == {"index": np.int64, "key": np.int64}


def test_drop_reports_what_it_leaves_out_and_another_set_each_epoch() -> None:
    loader = Loader(Counting(100), batch_size=32, shuffle="global", last="drop")
    left_out = [set(range(100)) - set(chain(*ids(loader))) for _ in range(2)]
    assert [len(each) for each in left_out] == [4, 4]
    assert left_out[0] != left_out[1]
    assert loader.report().left_out == 4
    assert "4 samples of the epoch are left out" in str(loader.report())


def test_a_full_pass_moves_on_and_leaving_early_starts_over() -> None:
    loader = Loader(Counting(50), batch_size=8, shuffle="global")
    first = ids(loader)
    assert loader.epoch == 1
    for batch in loader:
        second_start = batch["index"].tolist()
        break
    assert second_start != first[0]
    assert loader.epoch == 1
    assert ids(loader)[0] == second_start
    assert loader.epoch == 2
    loader.set_epoch(0)
    assert ids(loader) == first


def test_weighted_loader_draws_with_replacement() -> None:
    loader = Loader(Counting(3), batch_size=3, shuffle=Weighted([0, 0, 1.0]))
    assert ids(loader) == [[2, 2, 2]]


def test_any_object_with_sample() -> None:
    class Evens:
        def __len__(self) -> int:
            return 3

        def sample(self, position: int) -> int:
            return 2 * position

    assert ids(Loader(Counting(10), batch_size=2, shuffle=Evens())) == [[0, 2], [4]]


def ragged(lengths: list[int]) -> Rows:
    offsets = np.cumsum([0, *lengths])
    return Rows(
        [Ragged("tokens", [offsets], [np.ones(offsets[-1], np.uint8)], 100)],
        [len(lengths)],
        "x",
        pad_to="batch",
    )


@pytest.mark.parametrize("shuffle", [False, "global", "bucketed"])
def test_token_budgets(shuffle) -> None:
    lengths = (Permutation(500, 3)[:] % 40 + 1).tolist()
    order = LengthBucketed(lengths, window=100, multiple_of=2) if shuffle == "bucketed" else shuffle
    loaders = [
        Loader(ragged(lengths), max_tokens=200, shuffle=order, rank=rank, world_size=2) for rank in range(2)
    ]
    steps = [len(loader) for loader in loaders]
    batches = [list(loader) for loader in loaders]
    assert [len(each) for each in batches] == steps
    assert steps[0] == steps[1]
    seen = sorted(chain(*(batch["sample_id"].tolist() for each in batches for batch in each)))
    assert seen == list(range(500))
    for left, right in zip(*batches, strict=True):
        longest = max(left["tokens"].shape[1], right["tokens"].shape[1])
        assert longest * (len(left["tokens"]) + len(right["tokens"])) <= 400
        if shuffle == "bucketed":
            assert left["tokens"].size <= 200


def test_token_budgets_with_filling_rows() -> None:
    loaders = [
        Loader(ragged([5, 5, 5]), max_tokens=10, rank=rank, world_size=2, last="pad") for rank in range(2)
    ]
    batches = [list(loader) for loader in loaders]
    assert [[len(batch["valid"]) for batch in each] for each in batches] == [[2], [2]]
    assert [batch["valid"].tolist() for each in batches for batch in each] == [[True, True], [True, False]]


def test_filling_rows_of_a_jagged_batch_have_length_zero() -> None:
    offsets = np.array([0, 2, 3])
    space = Rows([Ragged("tokens", [offsets], [np.array([4, 5, 6], np.uint8)], 9)], [2], "x", layout="jagged")
    (batch,) = Loader(space, batch_size=4, last="pad")
    assert batch["tokens"].tolist() == [4, 5, 6]
    assert batch["tokens_lengths"].tolist() == [2, 1, 0, 0]
    assert batch["valid"].tolist() == [True, True, False, False]


def test_transform_gets_arrays_and_keys_before_filling() -> None:
    def double(batch: Batch, keys: np.ndarray) -> Batch:
        assert keys.dtype == np.uint64
        assert len(keys) == len(batch["index"])
        return {**batch, "double": batch["index"] * 2, "place": keys.astype(np.int64)}

    batches = list(Loader(Counting(3), batch_size=2, transform=double, last="pad"))
    assert [batch["double"].tolist() for batch in batches] == [[0, 2], [4, 0]]
    assert [batch["place"].tolist() for batch in batches] == [[0, 1], [2, 0]]


def test_a_transform_that_returns_no_dict_is_an_error() -> None:
    with pytest.raises(LoaderError, match="transform= returned a NoneType"):
        list(Loader(Counting(3), batch_size=2, transform=lambda batch, keys: None))  # type: ignore[arg-type]


def test_group() -> None:
    (batch,) = Loader(Counting(2), batch_size=2, group=True, last="pad")
    assert {name: list(group) for name, group in batch.items()} == {
        "inputs": ["index"],
        "targets": [],
        "meta": ["key", "valid"],
    }


def test_progress_line(capsys) -> None:
    list(Loader(Counting(30), batch_size=10, progress=True))
    shown = capsys.readouterr().err
    assert "epoch 0" in shown
    assert "3/3" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give one of batch_size=, global_batch_size= and max_tokens=; none was given"),
        ({"batch_size": 1, "max_tokens": 2}, "batch_size= and max_tokens= was given"),
        ({"batch_size": 0}, "batch_size=0; it must be at least 1"),
        ({"batch_size": 1, "rank": 0}, "rank= is given without world_size="),
        ({"batch_size": 1, "world_size": 2}, "world_size= is given without rank="),
        ({"batch_size": 1, "rank": 2, "world_size": 2}, "rank is 2"),
        ({"batch_size": 1, "last": "trim"}, "last='trim'"),
        ({"batch_size": 1, "shuffle": "globl"}, "Did you mean 'global'"),
        ({"batch_size": 1, "output": "tensorflow"}, "output='tensorflow'"),
        ({"batch_size": 1, "device": "cpu"}, "device= and pin_memory= are for output='torch'"),
        ({"batch_size": 1, "threads": -1}, "threads=-1"),
        ({"batch_size": 1, "prefetch": -1}, "prefetch=-1"),
        ({"max_tokens": 5}, "needs the length of each sample"),
        ({"max_tokens": "5"}, "max_tokens='5'; it must be an integer"),
        ({"batch_size": "1"}, "batch_size='1'; it must be an integer"),
        ({"batch_size": 1.0}, "batch_size=1.0; it must be an integer"),
        ({"batch_size": True}, "batch_size=True; it must be an integer"),
        ({"batch_size": 1, "seed": "7"}, "seed='7'; it must be an integer"),
        ({"batch_size": 1, "seed": None}, "seed=None; it must be an integer"),
        ({"batch_size": 1, "epoch": 0.5}, "epoch=0.5; it must be an integer"),
        ({"batch_size": 1, "threads": 1.5}, "threads=1.5; it must be an integer"),
        ({"batch_size": 1, "prefetch": "4"}, "prefetch='4'; it must be an integer"),
        ({"batch_size": 1, "rank": "0", "world_size": 1}, "rank='0'; it must be an integer"),
        (
            {"global_batch_size": 3, "rank": 0, "world_size": 2, "last": "pad"},
            "not divisible by world_size=2",
        ),
        ({"batch_size": 1, "shuffle": [0, 9]}, "entry 1 is 9; there are 4 samples"),
    ],
)
def test_what_does_not_fit_is_refused_at_once(options, message: str) -> None:
    with pytest.raises((LoaderError, OrderError), match=message):
        Loader(Counting(4), **options)


class Nothing(Counting):
    def at(self, seed: int, epoch: int):
        return self

    def gather(self, indices, keys):
        return None


@pytest.mark.parametrize("threads", [0, 1])
def test_what_gathers_no_dict_is_an_error(threads: int) -> None:
    with pytest.raises(LoaderError, match=r"positions \[0, 2\).*gather\(\) returned a NoneType"):
        list(Loader(Nothing(4), batch_size=2, threads=threads))


class Constant:
    def __init__(self, index) -> None:
        self.index = index

    def sample(self, position: int):
        return self.index


@pytest.mark.parametrize("wrong", [1.5, "a", None, True, [1]])
def test_a_sample_that_is_no_integer_is_an_error(wrong) -> None:
    with pytest.raises(LoaderError, match=r"sample\(position\)s are .*must be integers"):
        list(Loader(Counting(4), batch_size=2, shuffle=Constant(wrong)))


@pytest.mark.parametrize("space", [None, [1, 2], "rows"])
def test_what_is_no_sample_space_is_refused(space) -> None:
    with pytest.raises(LoaderError, match=r"what a Loader is made of is a .*, which is no sample space"):
        Loader(space, batch_size=2)


def test_a_dataset_has_a_sample_space() -> None:
    rows = Dataset.from_dict({"a": [1]})
    with pytest.raises(
        LoaderError, match=r"is a Dataset, which is no sample space; give its sample_space\(\)"
    ):
        Loader(rows, batch_size=1)


def test_integers_of_numpy_are_taken_and_the_state_goes_through_json() -> None:
    options = {
        "batch_size": 4,
        "seed": 7,
        "epoch": 2,
        "threads": 1,
        "prefetch": 1,
        "rank": 0,
        "world_size": 1,
    }
    plain = Loader(Counting(30), shuffle="global", **options)
    loader = Loader(
        Counting(30), shuffle="global", **{name: np.int32(value) for name, value in options.items()}
    )
    assert json.loads(json.dumps(loader.state_dict())) == plain.state_dict()
    loader.set_epoch(np.int64(3))
    plain.set_epoch(3)
    assert json.dumps(loader.state_dict()) == json.dumps(plain.state_dict())
    with pytest.raises(LoaderError, match="epoch='4'; it must be an integer"):
        loader.set_epoch("4")


def test_ranks_from_the_environment(monkeypatch) -> None:
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "5")
    loader = Loader(Counting(10), batch_size=1)
    assert (loader.rank, loader.world_size) == (2, 5)
    monkeypatch.setenv("RANK", "two")
    with pytest.raises(LoaderError, match="RANK='two'"):
        Loader(Counting(10), batch_size=1)


def environment(monkeypatch, **values: str) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in values.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("values", "ranks"),
    [
        ({}, (0, 1)),
        ({"WORLD_SIZE": "1"}, (0, 1)),
        ({"LOCAL_RANK": "1"}, (0, 1)),
        ({"LOCAL_RANK": "1", "WORLD_SIZE": "2"}, (1, 2)),
        ({"LOCAL_RANK": "1", "WORLD_SIZE": "2", "NODE_RANK": "0"}, (1, 2)),
        ({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "NODE_RANK": "1"}, (3, 4)),
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE='2' and no RANK, so that every process would take the same part"),
        ({"LOCAL_RANK": "1", "WORLD_SIZE": "4", "NODE_RANK": "1"}, "WORLD_SIZE='4' and no RANK"),
        ({"RANK": "1"}, "rank is 1; with world_size=1"),
    ],
)
def test_half_an_environment_never_gives_every_process_the_same_part(monkeypatch, values, ranks) -> None:
    environment(monkeypatch, **values)
    if isinstance(ranks, str):
        with pytest.raises((LoaderError, OrderError), match=ranks):
            Loader(Counting(10), batch_size=1)
    else:
        loader = Loader(Counting(10), batch_size=1)
        assert (loader.rank, loader.world_size) == ranks


@pytest.mark.parametrize("sizes", [{"batch_size": 3}, {"global_batch_size": 6}])
def test_ranks_that_come_up_after_the_loader_was_made(monkeypatch, sizes) -> None:
    environment(monkeypatch)
    given = Loader(Counting(20), rank=0, world_size=1, **sizes)
    made = [Loader(Counting(20), shuffle="global", **sizes) for _ in range(2)]
    travelled = copy.copy(made[1])
    seen = []
    for rank, loader in enumerate([made[0], travelled]):
        monkeypatch.setattr("headrace.loading.loader.distributed_ranks", lambda rank=rank: (rank, 2))
        assert len(loader) == 4
        seen.append(ids(loader))
        assert (loader.rank, loader.world_size) == (rank, 2)
    assert [len(batch) for batch in seen[0]] == [3, 3, 3, 1]
    assert sorted(chain(*seen[0], *seen[1])) == list(range(20))
    assert sorted(chain(*ids(given))) == list(range(20))


def test_a_state_of_token_batches_waits_for_the_ranks_too(monkeypatch) -> None:
    environment(monkeypatch)
    shuffle = LengthBucketed(np.arange(100) % 9)
    state = Loader(Counting(100), max_tokens=80, shuffle=shuffle).state_dict()
    loader = Loader(Counting(100), max_tokens=40, shuffle=shuffle)
    with pytest.raises(StateError, match="global_tokens=80, this loader has global_tokens=40"):
        loader.load_state_dict(state)
    monkeypatch.setattr("headrace.loading.loader.distributed_ranks", lambda: (1, 2))
    loader.load_state_dict(state)


def test_a_space_that_only_gathers_is_enough() -> None:
    check_sample_space(Counting(0))
    check_sample_space(Counting(100))


def test_threads_change_no_bit() -> None:
    streams = [
        Loader(Counting(1000), batch_size=7, shuffle="global", threads=threads) for threads in (0, 1, 2, 8)
    ]
    for batches in zip(*streams, strict=True):
        for batch in batches[1:]:
            assert_batches_equal(batches[0], batch)


def test_import_needs_no_torch_and_no_jax() -> None:
    code = (
        "import sys, headrace.loading, headrace.order\n"
        "assert not {'torch', 'jax', 'pyarrow', 'pandas', 'rich'} & set(sys.modules), sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
