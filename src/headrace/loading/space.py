"""The one sample-space protocol: whole minibatches from integer sample indices.

Dataset rows, language-model windows, skip-gram centres and mixtures all
implement it, so that every recipe gets the same shuffle, the same distribution
over ranks, the same resume and the same speed from one ``Loader``.

A space or its epochs may offer more, and the ``Loader`` takes it where it is there:

    epoch.gather_run(indices, keys, bounds, memory)   several batches in one pass, in memory of the
                         caller's: batch b is made of the samples ``[bounds[b], bounds[b + 1])``
    epoch.will_read(ranges)   int64 [ranges, 2]: samples that will be asked for soon, in read order
    space.data_fingerprint   str: the fingerprint of the data alone, without what the space makes of it
    space.parameters     Mapping[str, str]: what a state of another layout is refused by, by name
    space.jagged         Mapping[str, str]: arrays whose first dimension is a sum of lengths, and
                         the name of those lengths
    space.epoch_length   int: the number of samples, where it is the same in every epoch
    space.sample_lengths()   int64 [N]: the tokens of each sample, for ``max_tokens=``
    space.brings_order   True: the space orders its samples itself (a mixture)
    space.order()        the one sampler that can batch its samples, or None where any will do
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Batch: TypeAlias = dict[str, NDArray[Any]]
Role: TypeAlias = Literal["inputs", "targets", "meta"]


class Memory(Protocol):
    """Gives room for the arrays of batches, as a pool does that uses it again."""

    def allocate(
        self, shapes: Sequence[tuple[int, ...]], dtype: np.dtype[Any]
    ) -> tuple[list[NDArray[Any]], list[int]]:
        """Return uninitialised C-contiguous arrays to which nothing else refers, and their addresses.

        Args:
            shapes: The shape of each array.
            dtype: Their dtype.
        """
        ...


@runtime_checkable
class EpochSpace(Protocol):
    """The samples of one epoch: a fixed length, and a gather."""

    def __len__(self) -> int:
        """Return the number of samples in this epoch."""
        ...

    def gather(self, indices: NDArray[np.int64], keys: NDArray[np.uint64]) -> Batch:
        """Build one minibatch in one compiled pass, without the GIL.

        Must be safe to call from several threads at once.

        Args:
            indices: int64 [B], which samples, each in ``[0, len(self))``; B may be 0.
            keys: uint64 [B], the epoch position of each sample: draws about a sample
                use ``(seed, epoch, stream, key)``.

        Returns:
            Arrays whose first dimension is B, the same names and dtypes for every B.
            They belong to the caller, and never alias one another or the store.
        """
        ...


@runtime_checkable
class SampleSpace(Protocol):
    """Samples that a ``Loader`` can serve."""

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of the data and of every parameter that changes a sample."""
        ...

    @property
    def fill(self) -> Mapping[str, float]:
        """What stands in a filling row (``last="pad"``), by array name; 0 where a name is absent."""
        ...

    @property
    def roles(self) -> Mapping[str, Role]:
        """Under which key ``group=True`` puts each array; ``"inputs"`` where a name is absent."""
        ...

    def at(self, seed: int, epoch: int) -> EpochSpace:
        """Return the samples of one epoch; may cost one vectorised pass, and depends on nothing else."""
        ...
