"""Makes the batches of consecutive steps: positions, indices, gather, transform, filling, output."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headrace.errors import LoaderError
from headrace.loading.checks import check_batch, check_dict
from headrace.loading.output import Converter, add_filling, grouped
from headrace.loading.pool import Pool
from headrace.loading.space import Batch, EpochSpace, Role, SampleSpace
from headrace.loading.timing import Clock
from headrace.order.plan import Part, Plan
from headrace.order.sampler import EpochOrder, PositionOrder

_BATCHES_AHEAD = 16

Transform: TypeAlias = Callable[[Batch, NDArray[np.uint64]], Batch]


class Made(NamedTuple):
    """A batch, and what the loader must know when it is delivered."""

    batch: dict[str, Any]
    stop: int
    """The epoch position after the last sample of the global batch."""
    samples: int
    """This rank's own samples in it."""


@dataclass(frozen=True)
class BatchMaker:
    """Makes any batch of one pass over an epoch; it has no state, and several threads may call it.

    What costs the same for one batch as for sixteen is done once for a run of steps.
    """

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

    @property
    def makes_runs(self) -> bool:
        """Whether several steps in one go cost less, and no code of the user's runs in it."""
        return hasattr(self.epoch_space, "gather_run") and self.transform is None

    def make(self, step: int) -> Made:
        """Return the batch of a step.

        Raises:
            LoaderError: Anything went wrong; the message has the positions, the cause is the error itself.
        """
        return self.make_run(step, 1)[0]

    def make_run(self, first: int, count: int) -> list[Made]:
        """Return the batches of ``count`` steps from ``first`` on.

        Raises:
            LoaderError: Anything went wrong in a single step; the message has the positions.
            Exception: Something went wrong in one of several steps: make them one by one to know where.
        """
        parts = self.plan.parts(first, count)
        try:
            return self._make(parts)
        except Exception as error:
            if count > 1:
                raise
            raise LoaderError(
                f"epoch {self.epoch}, step {first}, positions [{parts[0].first}, {parts[0].last}) of rank "
                f"{self.plan.rank}: {type(error).__name__}: {error}"
            ) from error

    def _make(self, parts: Sequence[Part]) -> list[Made]:
        positions = _positions(parts)
        keys = positions.view(np.uint64)
        bounds = _bounds(parts)
        self._read_ahead(parts)
        started = self.clock.start_gather()
        batches = self._gather(self._indices(parts, positions), keys, bounds)
        self.clock.stop_gather(started)
        if self.transform is not None:
            batches = self._transform(batches, keys, bounds)
        if self.plan.last == "pad":
            batches = self._fill(batches, parts)
        return [
            Made(batch, part.stop, part.last - part.first)
            for batch, part in zip(self._convert(batches), parts, strict=True)
        ]

    def _read_ahead(self, parts: Sequence[Part]) -> None:
        """Ask for what batches will need, if the order knows it: at the start, or where storage is slow."""
        read_ahead = getattr(self.order, "read_ahead", None)
        will_read = getattr(self.epoch_space, "will_read", None)
        if read_ahead is None or will_read is None:
            return
        for part in parts:
            first = part.start == self.plan.begin
            if first or self.clock.reads_storage:
                distance = _BATCHES_AHEAD * (part.stop - part.start)
                will_read(read_ahead(part.start + (0 if first else distance), part.stop + distance, first))

    def _indices(self, parts: Sequence[Part], positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sample at each position of all parts."""
        if isinstance(self.order, PositionOrder):
            return self.order.look_up(positions)
        return np.concatenate([self.order.indices(part.positions, part.start, part.stop) for part in parts])

    def _gather(
        self, indices: NDArray[np.int64], keys: NDArray[np.uint64], bounds: NDArray[np.int64]
    ) -> list[Batch]:
        gather_run = getattr(self.epoch_space, "gather_run", None)
        if gather_run is not None:
            batches: list[Batch] = gather_run(indices, keys, bounds, self.pool)
            return batches
        gather, jagged = self.epoch_space.gather, getattr(self.space, "jagged", {})
        return [  # copies, since a gather may give them back, and arrays of batches never share memory
            check_batch(gather(indices[a:b].copy(), keys[a:b].copy()), b - a, "gather() returned", jagged)
            for a, b in pairwise(bounds.tolist())
        ]

    def _transform(
        self, batches: list[Batch], keys: NDArray[np.uint64], bounds: NDArray[np.int64]
    ) -> list[Batch]:
        assert self.transform is not None
        started = time.perf_counter()
        transformed = [
            check_dict(self.transform(batch, keys[a:b]), "transform= returned")
            for batch, (a, b) in zip(batches, pairwise(bounds.tolist()), strict=True)
        ]
        self.clock.lap("transform", started)
        return transformed

    def _fill(self, batches: list[Batch], parts: Sequence[Part]) -> list[Batch]:
        """Add filling rows, and ``valid``."""
        jagged: Mapping[str, str] = getattr(self.space, "jagged", {})
        return [
            add_filling(batch, part.last - part.first, part.filling, self.space.fill, jagged)
            for batch, part in zip(batches, parts, strict=True)
        ]

    def _convert(self, batches: list[Batch]) -> list[dict[str, Any]]:
        started = time.perf_counter()
        converted = [self.converter.convert(batch) for batch in batches]
        started = self.clock.lap("convert", started)
        converted = [self.converter.stage(batch) for batch in converted]
        self.clock.lap("copy", started)
        if not self.group:
            return converted
        roles: Mapping[str, Role] = self.space.roles
        return [grouped(batch, roles) for batch in converted]


def _positions(parts: Sequence[Part]) -> NDArray[np.int64]:
    """Return the epoch positions of all parts, one part after the other."""
    first, last = parts[0].first, parts[-1].last
    if last - first == sum(part.last - part.first for part in parts):
        return np.arange(first, last, dtype=np.int64)
    return np.concatenate([part.positions for part in parts])


def _bounds(parts: Sequence[Part]) -> NDArray[np.int64]:
    """Return int64 [parts + 1]: where each part begins among the positions of all, and the end."""
    return np.array([0, *accumulate(part.last - part.first for part in parts)], np.int64)


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
