"""For those who write a sample space of their own: the laws that every space keeps, as a test.

    from headrace.testing import check_sample_space

    def test_my_space():
        check_sample_space(MySpace(...))

and hypothesis strategies for the arguments of a loader (``pip install hypothesis``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from headrace.loading.checks import needed_order
from headrace.loading.loader import Loader
from headrace.loading.space import Batch, EpochSpace, Role, SampleSpace
from headrace.order.permutation import Permutation
from headrace.order.plan import Last

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = [
    "Counting",
    "LoaderShape",
    "assert_batches_equal",
    "check_sample_space",
    "loader_shapes",
    "positions_of",
]

_SEEDS = (0, 7)
_EPOCHS = (0, 1)
_MOST_SAMPLES = 64


class Counting:
    """The smallest sample space: sample i is ``{"index": i, "key": its epoch position}``.

    What a loader delivers of it is what it asked for, so that orders, ranks and resumes can be tested.

    Args:
        size: Number of samples.
        name: Part of the fingerprint; two spaces of other data have other names.
    """

    def __init__(self, size: int, name: str = "counting") -> None:
        self.size = size
        self.name = name

    def __len__(self) -> int:
        return self.size

    @property
    def fingerprint(self) -> str:
        """Stands for name and size."""
        return f"{self.name}-{self.size}"

    @property
    def fill(self) -> Mapping[str, float]:
        """Filling rows hold -1, which is no index."""
        return {"index": -1}

    @property
    def roles(self) -> Mapping[str, Role]:
        """The key is meta."""
        return {"key": "meta"}

    def at(self, seed: int, epoch: int) -> Counting:
        """Return itself: all epochs are alike."""
        return self

    def gather(self, indices: NDArray[np.int64], keys: NDArray[np.uint64]) -> Batch:
        """Return the indices and the keys."""
        return {"index": indices.astype(np.int64), "key": keys.astype(np.int64)}


def positions_of(step: int, shape: LoaderShape) -> NDArray[np.int64]:
    """Return the epoch positions of a step's whole global batch: ``[s·B, (s+1)·B)``, cut at the end."""
    start = step * shape.global_batch_size
    return np.arange(start, min(start + shape.global_batch_size, shape.size), dtype=np.int64)


@dataclass(frozen=True)
class LoaderShape:
    """Sizes that a loader must cope with."""

    size: int
    global_batch_size: int
    world_size: int
    last: Last


def loader_shapes(most: int = 200) -> SearchStrategy[LoaderShape]:
    """Return a hypothesis strategy of sizes, ranks and ``last=`` that fit together."""
    from hypothesis import strategies as st

    def shape(size: int, per_rank: int, world_size: int, last: Last) -> LoaderShape:
        return LoaderShape(size, per_rank * world_size, world_size, last)

    return st.builds(
        shape, st.integers(0, most), st.integers(1, 17), st.integers(1, 8), st.sampled_from(get_args(Last))
    )


def assert_batches_equal(left: Mapping[str, Any], right: Mapping[str, Any]) -> None:
    """Assert that two batches have the same names, dtypes, shapes and bits."""
    assert list(left) == list(right), f"names differ: {list(left)} and {list(right)}"
    for name, array in left.items():
        other = right[name]
        assert array.dtype == other.dtype, f"{name}: dtype {array.dtype} and {other.dtype}"
        assert array.shape == other.shape, f"{name}: shape {array.shape} and {other.shape}"
        assert array.tobytes() == other.tobytes(), f"{name}: values differ"


def check_sample_space(
    space: SampleSpace, *, seeds: Sequence[int] = _SEEDS, epochs: Sequence[int] = _EPOCHS
) -> None:
    """Assert that a space keeps the laws of the protocol, on up to 64 of its samples.

    The laws: names and dtypes are the same for every batch, the empty one too; a sample is the
    same whatever stands beside it, in whatever order, in any thread, and when it is asked for
    again; arrays belong to the caller and share no memory; roles, fill and fingerprint fit.

    Args:
        space: What is tested; at least one of its epochs should have samples.
        seeds: Seeds to test with.
        epochs: Epochs to test.

    Raises:
        AssertionError: A law is broken; the message says which, and where.
    """
    _check_attributes(space)
    for seed in seeds:
        for epoch in epochs:
            _check_epoch(space, seed, epoch)
    _check_loader(space)


def _check_attributes(space: SampleSpace) -> None:
    assert isinstance(space, SampleSpace), "the space lacks fingerprint, fill, roles or at()"
    assert isinstance(space.fingerprint, str), "the fingerprint is not a str"
    assert space.fingerprint, "the fingerprint is empty"
    assert space.fingerprint == space.fingerprint, "the fingerprint changes by itself"
    wrong = {role for role in space.roles.values() if role not in get_args(Role)}
    assert not wrong, f"roles are {get_args(Role)}, not {wrong}"
    json.dumps(dict(getattr(space, "parameters", {})))


def _check_epoch(space: SampleSpace, seed: int, epoch: int) -> None:
    epoch_space = space.at(seed, epoch)
    size = len(epoch_space)
    assert size == len(space.at(seed, epoch)), "at(seed, epoch) has another length when asked again"
    jagged: Mapping[str, str] = getattr(space, "jagged", {})
    indices, keys = _some_samples(size, seed)
    whole = _gather(epoch_space, indices, keys, jagged)
    _check_memory(whole)
    empty = _gather(epoch_space, indices[:0], keys[:0], jagged)
    kinds = {name: array.dtype for name, array in whole.items()}
    assert kinds == {name: array.dtype for name, array in empty.items()}, (
        "an empty batch has other names or dtypes"
    )
    assert_batches_equal(whole, _gather(space.at(seed, epoch), indices, keys, jagged))
    _check_alone(epoch_space, indices, keys, whole, jagged)
    _check_threads(epoch_space, indices, keys, whole, jagged)


def _some_samples(size: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return up to 64 indices of an epoch in a shuffled order, and their keys."""
    positions = np.arange(min(size, _MOST_SAMPLES), dtype=np.int64)
    return Permutation(size, seed, 0, "conformance").at(positions), positions.astype(np.uint64)


def _gather(
    space: EpochSpace, indices: NDArray[np.int64], keys: NDArray[np.uint64], jagged: Mapping[str, str]
) -> Batch:
    before = indices.copy(), keys.copy()
    batch = space.gather(indices, keys)
    assert (before[0] == indices).all(), "gather wrote into the indices"
    assert (before[1] == keys).all(), "gather wrote into the keys"
    for name, array in batch.items():
        assert isinstance(array, np.ndarray), f"{name} is a {type(array).__name__}, not an array"
        rows = int(batch[jagged[name]].sum()) if name in jagged else indices.size
        assert array.ndim >= 1, f"{name} has no first dimension"
        assert array.shape[0] == rows, f"{name} has {array.shape[0]} rows for {rows}"
    return batch


def _check_memory(batch: Batch) -> None:
    names = list(batch)
    for place, name in enumerate(names):
        assert batch[name].flags.writeable, f"{name} cannot be written: it does not belong to the caller"
        for other in names[:place]:
            assert not np.may_share_memory(batch[name], batch[other]), f"{name} and {other} share memory"


def _check_alone(
    space: EpochSpace,
    indices: NDArray[np.int64],
    keys: NDArray[np.uint64],
    whole: Batch,
    jagged: Mapping[str, str],
) -> None:
    """A sample is the same alone as in a batch, but for padding."""
    for place in range(min(indices.size, 8)):
        alone = _gather(space, indices[place : place + 1], keys[place : place + 1], jagged)
        for name, array in whole.items():
            if name in jagged:
                ends = np.cumsum(whole[jagged[name]])
                own = array[ends[place] - whole[jagged[name]][place] : ends[place]]
                same = own.tobytes() == alone[name].tobytes()
            else:
                same = _same_but_for_padding(array[place], alone[name][0])
            assert same, f"{name} of sample {indices[place]} differs when alone"


def _same_but_for_padding(left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Compare what two arrays have in common, from the start or the end: a width may depend on the batch."""
    common = [min(pair) for pair in zip(left.shape, right.shape, strict=True)]
    starts = tuple(slice(0, size) for size in common)
    ends = [
        tuple(slice(size - own, size) for own, size in zip(common, array.shape, strict=True))
        for array in (left, right)
    ]
    return (
        left[starts].tobytes() == right[starts].tobytes()
        or left[ends[0]].tobytes() == right[ends[1]].tobytes()
    )


def _check_threads(
    space: EpochSpace,
    indices: NDArray[np.int64],
    keys: NDArray[np.uint64],
    whole: Batch,
    jagged: Mapping[str, str],
) -> None:
    with ThreadPoolExecutor(4) as pool:
        for batch in pool.map(lambda _: _gather(space, indices, keys, jagged), range(8)):
            assert_batches_equal(whole, batch)


def _check_loader(space: SampleSpace) -> None:
    """A loader serves it the same with and without threads, and with filling rows."""
    size = len(space.at(0, 0))
    batch_size = max(1, min(size, _MOST_SAMPLES) // 3)
    order = needed_order(space)
    for last in get_args(Last):
        if order is not None and last == "drop":
            continue  # its batches have no common size: each is whole
        options: dict[str, Any] = {"shuffle": order, "last": last, "rank": 0, "world_size": 1}
        streams = [Loader(space, batch_size=batch_size, threads=threads, **options) for threads in (0, 2)]
        for _, left, right in zip(range(4), *map(iter, streams), strict=False):
            assert_batches_equal(left, right)
