"""Several sample spaces by weight: exact proportions, each part in its own order and epochs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import xxhash
from numpy.typing import NDArray

from headrace.errors import LoaderError
from headrace.kernels.mixture import BLOCK, deal
from headrace.kernels.rng import stream_key
from headrace.loading.checks import check_batch, check_epoch, check_space, needed_order
from headrace.loading.space import Batch, EpochSpace, Role, SampleSpace
from headrace.order.permutation import Permutation

Stop: TypeAlias = Literal["first", "all", "never"]

_ENDLESS = 1 << 62
_CACHED_EPOCHS = 8


class Mixture:
    """Samples of several spaces, mixed by weight: a ``SampleSpace`` that brings its own order.

    Every block of 1,000 positions holds each part in exact proportion (weights to the nearest
    thousandth), in an order drawn for the block. A part goes through its own samples in its own
    order, shuffled anew for each of its own epochs, and begins the next when one is over; the
    next epoch of the mixture goes on where each part was. So every sample of a part comes equally
    often in the long run, whatever its weight. An endless mixture (``stop="never"``) has no next
    epoch to go on in: each of its epochs is another order from the start.

        mixture = Mixture({"web": web, "books": books}, weights={"web": 0.7, "books": 0.3}, stop="all")
        Loader(mixture, global_batch_size=512)

    Batches have the arrays of the parts, which must be alike, and ``part`` int64 [B]: which one it is
    (of a mixture of mixtures: the outer one's).

    Args:
        spaces: The parts, by name.
        weights: Their shares, by the same names; they need not sum to 1.
        stop: When an epoch of the mixture ends: ``"first"``, before a part would begin its second
            epoch; ``"all"``, when every part has been gone through once; ``"never"``.
        shuffle: Whether the parts are shuffled; False takes each in the order in which it stands.

    Raises:
        LoaderError: Names or weights do not fit, or a weight comes to less than a thousandth.
    """

    brings_order = True

    def __init__(
        self,
        spaces: Mapping[str, SampleSpace],
        weights: Mapping[str, float],
        stop: Stop = "first",
        shuffle: bool = True,
    ) -> None:
        if stop not in ("first", "all", "never"):
            raise LoaderError(f"stop='{stop}'; it is 'first', 'all' or 'never'.")
        _check_names(spaces, weights)
        self.spaces = dict(spaces)
        self.stop = stop
        self.shuffle = shuffle
        self.counts = _counts(list(self.spaces), [_number(name, weights[name]) for name in self.spaces])

    @property
    def fingerprint(self) -> str:
        """Digest of the parts, their counts, and how they are ordered."""
        parts = [f"{name}={space.fingerprint}" for name, space in self.spaces.items()]
        return xxhash.xxh3_128_hexdigest(repr((parts, self.parameters)).encode())

    @property
    def parameters(self) -> Mapping[str, str]:
        """Weights in thousandths, stop and shuffle."""
        counts = ", ".join(
            f"{name} {count}" for name, count in zip(self.spaces, self.counts.tolist(), strict=True)
        )
        return {"weights": counts, "stop": self.stop, "shuffle": str(self.shuffle)}

    @property
    def fill(self) -> Mapping[str, float]:
        """The filling of the parts, and -1 for the part."""
        merged: dict[str, float] = {}
        for space in self.spaces.values():
            merged.update(space.fill)
        return {**merged, "part": -1}

    @property
    def roles(self) -> Mapping[str, Role]:
        """The roles in the parts; the part is meta."""
        merged: dict[str, Role] = {}
        for space in self.spaces.values():
            merged.update(space.roles)
        return {**merged, "part": "meta"}

    def at(self, seed: int, epoch: int) -> MixtureEpoch:
        """Return the mixture of one epoch, in memory that does not depend on its length.

        Where the length of a part differs from epoch to epoch, its earlier epochs are made to be measured.
        """
        if epoch < 0:
            raise LoaderError(f"epoch {epoch} of a mixture; its epochs are counted from 0.")
        return MixtureEpoch(self, seed, epoch)


class MixtureEpoch:
    """One epoch of a mixture."""

    def __init__(self, mixture: Mixture, seed: int, epoch: int) -> None:
        self._mixture = mixture
        alike = 0 if mixture.stop != "never" else epoch
        self._key = stream_key(seed, alike, "mixture")
        self._parts = [
            _Part(name, space, int(stream_key(seed, alike, f"mixture part {name}")), mixture.shuffle)
            for name, space in mixture.spaces.items()
        ]
        self._length = self._find_length()
        self._first_draws = self._draws_before(epoch - alike)

    def __len__(self) -> int:
        return self._length

    def gather(self, indices: NDArray[np.int64], keys: NDArray[np.uint64]) -> Batch:
        """Build one minibatch; the parts' own keys are their positions in their own epochs."""
        part, draw = deal(indices, self._mixture.counts, self._key)
        pieces = [
            (places, batch)
            for number in range(len(self._parts))
            for places, batch in self._pieces(number, part, draw)
        ]
        if not pieces:
            pieces = [(np.empty(0, np.int64), self._parts[0].empty())]
        return {**_merge(pieces, indices.size), "part": part}

    def _pieces(
        self, number: int, part: NDArray[np.int64], draw: NDArray[np.int64]
    ) -> list[tuple[NDArray[np.int64], Batch]]:
        places = np.flatnonzero(part == number)
        owner = self._parts[number]
        epochs, positions = owner.locate(draw[places] + self._first_draws[number])
        pieces = []
        for epoch in np.unique(epochs).tolist():
            chosen = epochs == epoch
            pieces.append((places[chosen], owner.gather(epoch, positions[chosen])))
        return pieces

    def _find_length(self) -> int:
        """Return the length of an epoch: where the first part, or the last one, has been gone through."""
        if self._mixture.stop == "never":
            return _ENDLESS
        if self._mixture.stop == "first":
            return min(self._position_of(number, len(part.at(0))) for number, part in enumerate(self._parts))
        ends = [self._position_of(number, len(part.at(0)) - 1) for number, part in enumerate(self._parts)]
        return max(ends) + 1

    def _position_of(self, number: int, draw: int) -> int:
        """Return the position at which a part is drawn for the ``draw``-th time."""
        block, rank = divmod(draw, int(self._mixture.counts[number]))
        if block >= _ENDLESS // BLOCK:
            return _ENDLESS
        positions = np.arange(block * BLOCK, (block + 1) * BLOCK, dtype=np.int64)
        part, _ = deal(positions, self._mixture.counts, self._key)
        return int(positions[np.flatnonzero(part == number)[rank]])

    def _draws_before(self, epoch: int) -> NDArray[np.int64]:
        """Return how often the epochs before one have drawn each part: int64 [parts]."""
        if epoch == 0:
            return np.zeros(len(self._parts), np.int64)
        if epoch * self._length >= _ENDLESS:
            raise LoaderError(
                f"epoch {epoch} of a mixture of {self._length} samples an epoch; "
                "there are fewer than 2**62 samples in all."
            )
        return self._draws_of_epoch() * epoch

    def _draws_of_epoch(self) -> NDArray[np.int64]:
        """Return how often an epoch draws each part: int64 [parts]."""
        whole = self._length // BLOCK
        positions = np.arange(whole * BLOCK, self._length, dtype=np.int64)
        part, _ = deal(positions, self._mixture.counts, self._key)
        rest = np.bincount(part, minlength=len(self._parts)).astype(np.int64)
        return self._mixture.counts * whole + rest


class _Part:
    """One space of a mixture, as an endless row of its own epochs."""

    def __init__(self, name: str, space: SampleSpace, seed: int, shuffle: bool) -> None:
        self.name = name
        self.space = space
        self.seed = seed
        self._shuffled = shuffle and not getattr(space, "brings_order", False)
        self._length: int | None = getattr(space, "epoch_length", None)
        self._ends: list[int] = []
        self._epochs: dict[int, tuple[EpochSpace, Permutation | None]] = {}
        if len(self.at(0)) == 0:
            raise LoaderError(f"part '{name}' of the mixture has no samples; leave it out.")

    def at(self, epoch: int) -> EpochSpace:
        """Return one of the part's own epochs."""
        return self._open(epoch)[0]

    def empty(self) -> Batch:
        """Return a batch of no samples."""
        return self._checked(self.at(0).gather(np.empty(0, np.int64), np.empty(0, np.uint64)), 0)

    def gather(self, epoch: int, positions: NDArray[np.int64]) -> Batch:
        """Gather the samples at some positions of one of the part's own epochs."""
        space, permutation = self._open(epoch)
        indices = positions if permutation is None else permutation.at(positions)
        return self._checked(space.gather(indices, positions.astype(np.uint64)), positions.size)

    def _checked(self, batch: object, size: int) -> Batch:
        """Return a batch of the part, whose arrays can be put beside those of the others."""
        what = f"gather() of part '{self.name}' of the mixture returned"
        checked: Batch = check_batch(batch, size, what, getattr(self.space, "jagged", {}))
        if "part" in checked and not isinstance(self.space, Mixture):
            raise LoaderError(f"{what} an array 'part', which is what a mixture says the part by; rename it.")
        return checked

    def locate(self, draws: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the part's own epoch of each draw, and the position in it."""
        if self._length is not None:
            return np.divmod(draws, self._length)
        ends = np.asarray(self._measured(int(draws.max()) if draws.size else 0), dtype=np.int64)
        epochs = np.searchsorted(ends, draws, side="right")
        starts = np.concatenate([[0], ends])
        return epochs, draws - starts[epochs]

    def _measured(self, draw: int) -> list[int]:
        """Return where the part's epochs end, up to that of a draw."""
        ends = list(self._ends)
        while bisect_right(ends, draw) == len(ends):
            length = len(self.space.at(self.seed, len(ends)))
            if length == 0:
                raise LoaderError(f"epoch {len(ends)} of part '{self.name}' has no samples.")
            ends.append((ends[-1] if ends else 0) + length)
        self._ends = ends
        return ends

    def _open(self, epoch: int) -> tuple[EpochSpace, Permutation | None]:
        found = self._epochs.get(epoch)
        if found is None:
            space = check_epoch(self.space.at(self.seed, epoch), self.space)
            order = Permutation(len(space), self.seed, epoch) if self._shuffled else None
            found = space, order
            self._epochs = {**dict(list(self._epochs.items())[1 - _CACHED_EPOCHS :]), epoch: found}
        return found


def _merge(pieces: list[tuple[NDArray[np.int64], Batch]], size: int) -> Batch:
    """Put the batches of the parts together, each sample at its place."""
    first = pieces[0][1]
    merged: Batch = {name: np.empty((size, *array.shape[1:]), array.dtype) for name, array in first.items()}
    for places, batch in pieces:
        if list(batch) != list(first):
            raise LoaderError(
                f"the parts of a mixture give different arrays: {list(first)} and {list(batch)}."
            )
        for name, array in batch.items():
            _check_like(name, merged[name], array, places.size)
            merged[name][places] = array
    return merged


def _check_like(name: str, merged: NDArray[Any], array: NDArray[Any], rows: int) -> None:
    if array.dtype != merged.dtype or array.shape != (rows, *merged.shape[1:]):
        raise LoaderError(
            f"{name} is {array.dtype} {list(array.shape[1:])} in one part of the mixture and {merged.dtype} "
            f"{list(merged.shape[1:])} in another; they must be alike, padded to one width (pad_to='max', "
            "or width='max')."
        )


def _check_names(spaces: Any, weights: Any) -> None:
    if not spaces:
        raise LoaderError("a mixture needs at least one space.")
    if not isinstance(spaces, Mapping) or not isinstance(weights, Mapping):
        found = f"{type(spaces).__name__} and {type(weights).__name__}"
        raise LoaderError(f"a mixture takes a dict of spaces and a dict of weights by name, not {found}.")
    for name, space in spaces.items():
        check_space(space, f"part '{name}' of the mixture")
        needed = needed_order(space)
        if needed is not None:
            raise LoaderError(
                f"part '{name}' of the mixture needs an order of its own, {needed.describe()['kind']}, "
                "which a mixture does not keep."
            )
    if set(spaces) != set(weights):
        odd = sorted(set(spaces) ^ set(weights))
        raise LoaderError(f"spaces and weights must have the same names; only one has {', '.join(odd)}.")


def _number(name: str, weight: Any) -> float:
    try:
        return float(weight)
    except (TypeError, ValueError):
        raise LoaderError(f"weight of '{name}' is {weight!r}; it must be a number.") from None


def _shares_of_large(weights: list[float]) -> NDArray[np.float64]:
    """Return the shares of weights whose sum is beyond the largest number."""
    scaled = np.asarray(weights) / max(weights)
    shares: NDArray[np.float64] = scaled / scaled.sum()
    return shares


def _counts(names: list[str], weights: list[float]) -> NDArray[np.int64]:
    """Return how many of a block's 1,000 positions each part has: largest remainders, ties to the first."""
    for name, weight in zip(names, weights, strict=True):
        if not 0 < weight < float("inf"):
            raise LoaderError(f"weight of '{name}' is {weight}; it must be above 0. Leave the part out.")
    total = sum(weights)
    shares = np.asarray(weights) / total if total < float("inf") else _shares_of_large(weights)
    exact = shares * BLOCK
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: BLOCK - int(counts.sum())]] += 1
    for name, count in zip(names, counts.tolist(), strict=True):
        if count == 0:
            raise LoaderError(f"weight of '{name}' is below a thousandth of all; raise it, or leave it out.")
    return counts
