"""Makes the batch of one step: positions, indices, gather, transform, filling, output."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headrace.errors import LoaderError
from headrace.loading.output import Converter, add_filling, grouped
from headrace.loading.pool import Pool
from headrace.loading.space import Batch, EpochSpace, Role, SampleSpace
from headrace.loading.timing import Clock
from headrace.order.plan import Part, Plan
from headrace.order.sampler import EpochOrder

_BATCHES_AHEAD = 16

Transform: TypeAlias = Callable[[Batch, NDArray[np.uint64]], Batch]
Gather: TypeAlias = Callable[[NDArray[np.int64], NDArray[np.uint64]], Batch]


@dataclass(frozen=True)
class Made:
    """A batch, and what the loader must know when it is delivered."""

    batch: dict[str, Any]
    stop: int
    """The epoch position after the last sample of the global batch."""
    samples: int
    """This rank's own samples in it."""


@dataclass(frozen=True)
class BatchMaker:
    """Makes any batch of one pass over an epoch; it has no state, and several threads may call it."""

    space: SampleSpace
    epoch_space: EpochSpace
    order: EpochOrder
    plan: Plan
    converter: Converter
    clock: Clock
    transform: Transform | None
    group: bool
    epoch: int
    pool: Pool

    def make(self, step: int) -> Made:
        """Return the batch of a step.

        Raises:
            LoaderError: Anything went wrong; the message has the positions, the cause is the error itself.
        """
        part = self.plan.part(step)
        try:
            return self._make(part)
        except Exception as error:
            raise LoaderError(
                f"epoch {self.epoch}, step {step}, positions [{part.first}, {part.last}) of rank "
                f"{self.plan.rank}: {type(error).__name__}: {error}"
            ) from error

    def _make(self, part: Part) -> Made:
        positions = part.positions
        keys = positions.view(np.uint64)
        self._read_ahead(part)
        with self.clock.gather():
            indices = self.order.indices(positions, part.start, part.stop)
            batch = self._gather(indices, keys)
        if self.transform is not None:
            started = time.perf_counter()
            batch = _checked(self.transform(batch, keys))
            self.clock.lap("transform", started)
        if self.plan.last == "pad":
            jagged: Mapping[str, str] = getattr(self.space, "jagged", {})
            batch = add_filling(batch, positions.size, part.filling, self.space.fill, jagged)
        return Made(self._convert(batch), part.stop, positions.size)

    def _read_ahead(self, part: Part) -> None:
        """Ask for what batches will need, if the order knows it: at the start, or where storage is slow."""
        read_ahead = getattr(self.order, "read_ahead", None)
        will_read = getattr(self.epoch_space, "will_read", None)
        first = part.start == self.plan.begin
        if read_ahead is None or will_read is None or not (first or self.clock.reads_storage):
            return
        distance = _BATCHES_AHEAD * (part.stop - part.start)
        will_read(read_ahead(part.start + (0 if first else distance), part.stop + distance, first))

    def _gather(self, indices: NDArray[np.int64], keys: NDArray[np.uint64]) -> Batch:
        gather_into = getattr(self.epoch_space, "gather_into", None)
        if gather_into is None:
            return self.epoch_space.gather(indices, keys)
        batch: Batch = gather_into(indices, keys, self.pool.allocate)
        return batch

    def _convert(self, batch: Batch) -> dict[str, Any]:
        started = time.perf_counter()
        converted = self.converter.convert(batch)
        started = self.clock.lap("convert", started)
        converted = self.converter.stage(converted)
        self.clock.lap("copy", started)
        if not self.group:
            return converted
        roles: Mapping[str, Role] = self.space.roles
        return grouped(converted, roles)


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass over an epoch: what makes its batches, and what the loader wants to be told."""

    maker: BatchMaker
    deliver: Callable[[Made], None]
    """Call it with each batch when it is handed over."""
    finish: Callable[[], None]
    """Call it once, when the consumer asked for more than there is."""
    is_current: Callable[[Pass], bool]
    """Whether the loader still is in this pass, and not in another or at a loaded state."""


def _checked(batch: Any) -> Batch:
    if not isinstance(batch, dict):
        raise LoaderError(f"transform= returned a {type(batch).__name__}; it must return a dict of arrays.")
    return batch
