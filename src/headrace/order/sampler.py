"""What ``shuffle=`` takes: a sampler turns the positions of an epoch into sample indices.

shuffle=False            Sequential()
shuffle="global"         Global()
shuffle="block"          Block()
shuffle=array            Listed(array)
shuffle=object           Called(object), where it has ``sample(position)``
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import xxhash
from numpy.typing import NDArray

from headrace.errors import OrderError, did_you_mean
from headrace.order.integers import array_of, int64_of, integers
from headrace.order.permutation import Permutation

Parameters: TypeAlias = dict[str, int | float | str | bool | None]


@dataclass(frozen=True)
class Budget:
    """What one global batch holds: so many samples, or at most so many tokens with padding."""

    samples: int | None
    tokens: int | None = None


class EpochOrder(Protocol):
    """The order of one epoch."""

    def __len__(self) -> int:
        """Return the number of positions in the epoch."""
        ...

    @property
    def cuts(self) -> NDArray[np.int64] | None:
        """Where global batches start, and the end: int64 [steps + 1]; None where all hold as many samples."""
        ...

    def indices(self, positions: NDArray[np.int64], start: int, stop: int) -> NDArray[np.int64]:
        """Return the sample at each position.

        Args:
            positions: int64 [B], consecutive, in ``[start, stop)``.
            start: First position of the global batch that they belong to.
            stop: Position after its last.
        """
        ...


@runtime_checkable
class Sampler(Protocol):
    """A way to order samples, without data, state or clock."""

    def describe(self) -> Parameters:
        """Return ``{"kind": …}`` and every parameter that changes the order: what a state is compared by."""
        ...

    def at(self, size: int, seed: int, epoch: int, budget: Budget) -> EpochOrder:
        """Return the order of one epoch over ``size`` samples."""
        ...


class PositionOrder:
    """Base of the orders in which an index depends on its position alone."""

    cuts: NDArray[np.int64] | None = None

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def indices(self, positions: NDArray[np.int64], start: int, stop: int) -> NDArray[np.int64]:
        """Return the sample at each position."""
        return self.look_up(positions)

    def look_up(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sample at each position, whatever batch it is in; here the position itself."""
        return positions


class _PermutedOrder(PositionOrder):
    def __init__(self, permutation: Permutation) -> None:
        super().__init__(len(permutation))
        self.permutation = permutation

    def look_up(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.permutation.at(positions)


class ListedOrder(PositionOrder):
    """An order that is written down."""

    def __init__(self, order: NDArray[np.int64], cuts: NDArray[np.int64] | None = None) -> None:
        super().__init__(order.size)
        self.order = order
        self.cuts = cuts

    def look_up(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sample that stands at each position."""
        return self.order[positions]


class _CalledOrder(PositionOrder):
    def __init__(self, owner: PositionSampler, length: int, samples: int) -> None:
        super().__init__(length)
        self.owner = owner
        self.samples = samples

    def look_up(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        drawn = [self.owner.sample(position) for position in positions.tolist()]
        return checked_indices(integers("sample(position)", drawn), self.samples, "sample(position)")


class Sequential:
    """The order in which the samples stand."""

    def describe(self) -> Parameters:
        """Return the kind alone."""
        return {"kind": "sequential"}

    def at(self, size: int, seed: int, epoch: int, budget: Budget) -> EpochOrder:
        """Return the identity."""
        return PositionOrder(size)


class Global:
    """Every order of all samples, drawn by seed and epoch, in constant memory."""

    def describe(self) -> Parameters:
        """Return the kind alone."""
        return {"kind": "global"}

    def at(self, size: int, seed: int, epoch: int, budget: Budget) -> EpochOrder:
        """Return a ``Permutation`` of all samples."""
        return _PermutedOrder(Permutation(size, seed, epoch))


class Listed:
    """The order of an array of indices: the same in every epoch; it may leave out or repeat.

    Args:
        indices: Integers [M], each in ``[0, len(space))``; an epoch has M samples.
    """

    def __init__(self, indices: NDArray[Any] | Sequence[int]) -> None:
        array = array_of("shuffle=", indices, "iu", "an order is integers, one a position")
        self.order = int64_of("shuffle=", array)

    def describe(self) -> Parameters:
        """Return the kind and a digest of the indices."""
        return {"kind": "listed", "indices": digest(self.order)}

    def at(self, size: int, seed: int, epoch: int, budget: Budget) -> EpochOrder:
        """Return the order as it is written."""
        return ListedOrder(checked_indices(self.order, size, "shuffle="))


class PositionSampler(Protocol):
    """Anything of the user's own with ``sample(position)``; where it has a length, an epoch has it too."""

    def sample(self, position: int) -> int:
        """Return the index of the sample at a position of the epoch."""
        ...


class Called:
    """The order of an object with ``sample(position)``, the same in every epoch.

    Its ``fingerprint``, where it has one, is what a state is compared by; else the name of its class.

    Args:
        owner: The object.

    Raises:
        OrderError: Its ``sample`` is no function, or its fingerprint is one, and no text.
    """

    def __init__(self, owner: PositionSampler) -> None:
        sample: object = owner.sample
        if not callable(sample) or callable(getattr(owner, "fingerprint", None)):
            raise OrderError(
                f"shuffle= is a {type(owner).__name__}, whose sample(position) must be a function, and whose "
                "fingerprint, where it has one, a text."
            )
        self.owner = owner

    def describe(self) -> Parameters:
        """Return the kind and the object's own fingerprint or class name."""
        name = getattr(self.owner, "fingerprint", type(self.owner).__qualname__)
        return {"kind": "called", "sampler": str(name)}

    def at(self, size: int, seed: int, epoch: int, budget: Budget) -> EpochOrder:
        """Return an order that asks the object position by position."""
        length = len(self.owner) if isinstance(self.owner, Sized) else size
        return _CalledOrder(self.owner, length, size)


def checked_indices(indices: NDArray[np.int64], size: int, name: str) -> NDArray[np.int64]:
    """Return ``indices``, all of which are in ``[0, size)``.

    Raises:
        OrderError: One is not; the message has its place and value.
    """
    wrong = np.flatnonzero((indices < 0) | (indices >= size))
    if wrong.size:
        place = int(wrong[0])
        raise OrderError(
            f"{name}: entry {place} is {indices[place]}; there are {size} samples, 0 to {size - 1}."
        )
    return indices


def digest(array: NDArray[Any]) -> str:
    """Return 16 hexadecimal digits that stand for the bytes of an array, its dtype and shape."""
    contiguous = np.ascontiguousarray(array)
    head = f"{contiguous.dtype.str}{contiguous.shape}".encode()
    return xxhash.xxh3_64_hexdigest(head + contiguous.data.tobytes())


def as_sampler(shuffle: Any) -> Sampler:
    """Return the sampler that a ``shuffle=`` argument stands for.

    Raises:
        OrderError: It is none of those that the module's docstring lists.
    """
    if isinstance(shuffle, type):
        raise OrderError(
            f"shuffle= is the class {shuffle.__name__}; give an instance, {shuffle.__name__}(…)."
        )
    if hasattr(shuffle, "__array__") and not isinstance(shuffle, str | np.bool_):
        return Listed(shuffle)
    if isinstance(shuffle, Sampler):
        return shuffle
    if isinstance(shuffle, bool | np.bool_) or shuffle is None:
        return Global() if shuffle else Sequential()
    if isinstance(shuffle, str):
        return _named_sampler(shuffle)
    if hasattr(shuffle, "sample"):
        return Called(shuffle)
    if isinstance(shuffle, list | tuple | range):
        return Listed(shuffle)
    raise OrderError(
        f"shuffle= is a {type(shuffle).__name__}; it is False, 'global', 'block', an index array, "
        "a sampler of headrace.order, or an object with sample(position)."
    )


def _named_sampler(name: str) -> Sampler:
    from headrace.order.block import Block

    named: dict[str, type[Sampler]] = {"global": Global, "block": Block}
    if name not in named:
        raise OrderError(f"shuffle='{name}': it is False, 'global' or 'block'.{did_you_mean(name, named)}")
    return named[name]()
