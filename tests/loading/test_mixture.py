"""A mixture: exact proportions, each part in its own order and epochs, any position at once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from headrace.errors import LoaderError, StateError
from headrace.loading import Loader, Mixture, Ragged, Rows
from headrace.testing import Counting, check_sample_space


def mixture(sizes: dict[str, int], weights: dict[str, float], **options) -> Mixture:
    return Mixture({name: Counting(size, name) for name, size in sizes.items()}, weights, **options)


def two(**options) -> Mixture:
    return mixture({"a": 1000, "b": 500}, {"a": 0.7, "b": 0.3}, **options)


def drawn(loader: Loader) -> tuple[np.ndarray, np.ndarray]:
    batches = list(loader)
    return tuple(np.concatenate([batch[name] for batch in batches]) for name in ("part", "index"))


@pytest.mark.parametrize("stop", ["first", "all"])
def test_every_block_has_exact_proportions(stop: str) -> None:
    part, _ = drawn(Loader(two(stop=stop), batch_size=64))
    for start in range(0, len(part) - 999, 1000):
        assert np.bincount(part[start : start + 1000]).tolist() == [700, 300]


def test_proportions_are_mixed_within_the_block() -> None:
    part, _ = drawn(Loader(two(), batch_size=64))
    share = np.convolve(part[:1000] == 0, np.ones(100) / 100, "valid")
    assert share.min() > 0.5
    assert share.max() < 0.9


def test_first_stops_before_a_part_begins_again() -> None:
    part, index = drawn(Loader(two(), batch_size=64))
    a, b = index[part == 0], index[part == 1]
    assert sorted(a.tolist()) == list(range(1000))
    assert len(set(b.tolist())) == len(b)
    assert len(two().at(0, 0)) == len(part)


def test_all_stops_when_every_part_has_been_gone_through() -> None:
    part, index = drawn(Loader(two(stop="all"), batch_size=64))
    a, b = index[part == 0], index[part == 1]
    assert sorted(b.tolist()) == list(range(500))
    assert sorted(a[:1000].tolist()) == list(range(1000))
    assert a[1000:].tolist() != a[: len(a) - 1000].tolist()
    assert part[-1] == 1


def test_never_goes_on_from_epoch_to_epoch_of_its_parts() -> None:
    space = mixture({"a": 7, "b": 3}, {"a": 0.5, "b": 0.5}, stop="never")
    loader = Loader(space, batch_size=100)
    assert len(loader) > 1 << 50
    batches = [batch for _, batch in zip(range(21), loader, strict=False)]
    part, index = (np.concatenate([batch[name] for batch in batches]) for name in ("part", "index"))
    a = index[part == 0][: 7 * 100].reshape(-1, 7)
    assert (np.sort(a, axis=1) == np.arange(7)).all()
    assert len({tuple(row) for row in a.tolist()}) > 50


def test_the_next_epoch_goes_on_where_each_part_was() -> None:
    loader = Loader(two(), batch_size=64)
    counts: Counter[int] = Counter()
    lengths = []
    for _ in range(7):
        part, index = drawn(loader)
        counts.update(index[part == 1].tolist())
        lengths.append(len(part))
    assert len(set(lengths)) == 1
    assert max(counts.values()) - min(counts.values()) <= 1
    assert sum(counts.values()) == 7 * (part == 1).sum()


def test_parts_in_order_without_shuffle() -> None:
    part, index = drawn(Loader(two(shuffle=False), batch_size=64))
    assert index[part == 0].tolist() == list(range(1000))
    b = index[part == 1]
    assert b.tolist() == list(range(len(b)))


@pytest.mark.parametrize("shuffle", [False, "global"])
def test_ranks_and_resume(shuffle) -> None:
    whole = [batch["index"].tolist() for batch in Loader(two(), global_batch_size=60, shuffle=shuffle)]
    ranks = [
        [batch["index"].tolist() for batch in Loader(two(), global_batch_size=60, rank=rank, world_size=4)]
        for rank in range(4)
    ]
    assert [sum(parts, []) for parts in zip(*ranks, strict=True)] == whole  # noqa: RUF017
    loader = Loader(two(), global_batch_size=60)
    iterator = iter(loader)
    for _ in range(5):
        next(iterator)
    resumed = Loader(two(), global_batch_size=60)
    resumed.load_state_dict(loader.state_dict())
    assert next(iter(resumed))["index"].tolist() == whole[5]


def test_keeps_the_laws_of_a_sample_space() -> None:
    check_sample_space(two())
    check_sample_space(Mixture({"inner": two(), "c": two(stop="all")}, {"inner": 1, "c": 1}))


class Growing(Counting):
    """Epoch e has e + 2 samples."""

    def at(self, seed: int, epoch: int) -> Counting:
        return Counting(epoch + 2)


def test_parts_whose_length_differs_by_epoch() -> None:
    space = Mixture({"a": Growing(0), "b": Counting(4)}, {"a": 0.5, "b": 0.5}, stop="never", shuffle=False)
    part, index = drawn_steps(Loader(space, batch_size=50), 2)
    assert index[part == 0][:14].tolist() == [0, 1, 0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3, 4]


def drawn_steps(loader: Loader, steps: int) -> tuple[np.ndarray, np.ndarray]:
    batches = [batch for _, batch in zip(range(steps), loader, strict=False)]
    return tuple(np.concatenate([batch[name] for batch in batches]) for name in ("part", "index"))


def test_each_epoch_of_an_endless_mixture_is_another_one_from_the_start() -> None:
    space = Mixture({"a": Growing(0), "b": Counting(4)}, {"a": 0.5, "b": 0.5}, stop="never", shuffle=False)
    streams = []
    for epoch in (0, 1, 2, 10**12):
        part, index = drawn_steps(Loader(space, batch_size=50, epoch=epoch), 2)
        assert index[part == 0][:9].tolist() == [0, 1, 0, 1, 2, 0, 1, 2, 3]
        streams.append(tuple(part.tolist()))
    assert len(set(streams)) == 4


def test_an_epoch_beyond_all_counting_is_refused() -> None:
    assert next(iter(Loader(two(), batch_size=4, epoch=100)))["index"].size == 4
    with pytest.raises(LoaderError, match=r"epoch 10+ of a mixture .*fewer than 2\*\*62"):
        Loader(two(), batch_size=4, epoch=10**18)
    endless = mixture({"a": 1 << 62}, {"a": 1})
    assert len(endless.at(0, 0)) == 1 << 62


def test_weights_whose_sum_is_beyond_all_numbers() -> None:
    assert mixture({"a": 1, "b": 1}, {"a": 1e308, "b": 1.5e308}).counts.tolist() == [400, 600]


def test_how_well_a_mixture_is_shuffled_is_not_seen_in_its_numbers() -> None:
    with pytest.raises(LoaderError, match=r"orders its samples itself.*measure the loaders of its parts"):
        Loader(two(), batch_size=4).shuffle_quality()


def test_weights_need_not_sum_to_one_and_go_to_thousandths() -> None:
    space = mixture({"a": 10, "b": 10, "c": 10}, {"a": 1, "b": 1, "c": 1})
    assert space.counts.tolist() == [334, 333, 333]


def test_other_weights_are_another_state() -> None:
    state = Loader(two(), batch_size=4).state_dict()
    other = mixture({"a": 1000, "b": 500}, {"a": 0.6, "b": 0.4})
    with pytest.raises(StateError, match=r"weights='a 700, b 300', this loader has weights='a 600, b 400'"):
        Loader(other, batch_size=4).load_state_dict(state)


def ragged(width: int) -> Rows:
    return Rows([Ragged("a", [np.array([0, 1])], [np.array([3], np.uint8)], width)], [1], str(width))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mixture({}, {}), "at least one space"),
        (lambda: mixture({"a": 1}, {"b": 1}), "only one has a, b"),
        (lambda: Mixture([Counting(1)], [1]), "a dict of weights by name, not list and list"),
        (
            lambda: Mixture({"a": [1]}, {"a": 1}),
            "part 'a' of the mixture is a list, which is no sample space",
        ),
        (lambda: mixture({"a": 1, "b": 1}, {"a": 1, "b": 0}), "weight of 'b' is 0"),
        (lambda: mixture({"a": 1, "b": 1}, {"a": 1, "b": 1e-6}), "'b' is below a thousandth"),
        (lambda: two(stop="last"), "stop='last'"),
        (lambda: mixture({"a": 1}, {"a": "much"}), "weight of 'a' is 'much'; it must be a number"),
        (lambda: Loader(two(), batch_size=1, shuffle="block"), "orders its samples itself"),
        (lambda: mixture({"a": 1, "b": 0}, {"a": 1, "b": 1}).at(0, 0), "'b' of the mixture has no samples"),
        (lambda: two().at(0, -1), "epoch -1"),
        (
            lambda: list(Loader(Mixture({"a": ragged(2), "b": ragged(3)}, {"a": 1, "b": 1}), batch_size=9)),
            r"a is int64 \[3\] in one part of the mixture and int64 \[2\] in another",
        ),
    ],
)
def test_what_cannot_be_mixed_is_refused(make, message: str) -> None:
    with pytest.raises(LoaderError, match=message):
        make()
