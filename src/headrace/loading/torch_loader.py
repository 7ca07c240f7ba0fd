"""A real ``torch.utils.data.DataLoader`` over a loader: for Lightning, Accelerate and plain torch.

It is never sharded twice: its dataset is iterable, so that Lightning puts no sampler in its
place, and it says that Accelerate has nothing left to prepare. Each rank's loader knows its
part already.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, IterableDataset, Sampler, get_worker_info

from headrace.errors import LoaderError
from headrace.loading.maker import Made, Pass
from headrace.loading.progress import Progress
from headrace.loading.state import State
from headrace.loading.torch import TorchConverter
from headrace.order.integers import integer

if TYPE_CHECKING:
    from headrace.loading.loader import Loader

_NOT_BEGUN = -1


class _Steps(IterableDataset[dict[str, Any]]):  # type: ignore[misc]
    """The batches of a loader; in a worker process every ``num_workers``-th of them, made there."""

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self.loader = loader
        self.start = torch.full((2,), _NOT_BEGUN, dtype=torch.int64).share_memory_()
        """Epoch and position at which the pass began; workers that live on read it anew."""

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker = get_worker_info()
        if worker is None:
            yield from self.loader
            return
        epoch, begin = self.start.tolist()
        if begin == _NOT_BEGUN:
            raise LoaderError(
                "worker processes of another DataLoader do not know where its pass began; use "
                "loader.as_torch_dataloader(num_workers=…) itself, which has state_dict() too."
            )
        self.loader.converter = TorchConverter(
            device=None, pin_memory=False
        )  # the main process pins and moves
        maker = self.loader.make_pass(epoch, begin)
        for step in range(worker.id, len(maker.plan), worker.num_workers):
            yield maker.make(step).batch

    def state_dict(self) -> State:
        """Return the loader's state, as a ``StatefulDataLoader`` asks an iterable dataset for it."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken."""
        self.loader.load_state_dict(state)


class _EpochSampler(Sampler[None]):  # type: ignore[misc]
    """What a ``DataLoader`` over an iterable has for a sampler; it passes ``set_epoch`` on to the loader."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next, as trainers do with a ``DistributedSampler``."""
        self.loader.set_epoch(epoch)


class TorchDataLoader(DataLoader[dict[str, Any]]):  # type: ignore[misc]
    """Whole batches of a ``Loader``, with the state of torchdata's ``StatefulDataLoader``.

    Args:
        loader: A loader with ``output="torch"``.
        num_workers: Processes that make batches; 0 uses the loader's own threads, which is faster,
            since nothing has to travel between processes.
        persistent_workers: Keep the processes from epoch to epoch.
        multiprocessing_context: ``"fork"``, ``"spawn"`` or ``"forkserver"``.
        prefetch_factor: Batches ahead of each worker.
    """

    end_of_dataloader = False
    """True from the last batch on: what Accelerate asks for when it accumulates gradients."""
    remainder = 0
    """Samples that Accelerate should cut off after gathering: none, nothing is repeated here."""

    def __init__(
        self,
        loader: Loader,
        num_workers: int = 0,
        persistent_workers: bool = False,
        multiprocessing_context: Any = None,
        prefetch_factor: int | None = None,
    ) -> None:
        num_workers = integer("num_workers", num_workers, LoaderError)
        if num_workers < 0:
            raise LoaderError(f"num_workers={num_workers}; it must not be negative.")
        self.loader = loader
        self._is_accelerate_prepared = True
        converter = loader.converter
        pin = num_workers > 0 and isinstance(converter, TorchConverter) and converter.pin
        super().__init__(
            _Steps(loader),
            batch_size=None,
            num_workers=num_workers,
            persistent_workers=persistent_workers,
            multiprocessing_context=multiprocessing_context,
            prefetch_factor=prefetch_factor,
            pin_memory=pin,
        )
        object.__setattr__(self, "sampler", _EpochSampler(loader))

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Any:
        batches = self._from_workers() if self.num_workers else self._from_threads()
        return _told_to_accelerate(self, batches)

    def _from_threads(self) -> Iterator[dict[str, Any]]:
        iterator = iter(self.loader)
        try:
            for batch in iterator:
                self.end_of_dataloader = not len(iterator)
                yield batch
        finally:
            iterator.close()

    def _from_workers(self) -> Iterator[dict[str, Any]]:
        run = self.loader.start_pass()
        plan = run.maker.plan
        self.dataset.start[:] = torch.tensor([self.loader.epoch, plan.begin])
        progress = self.loader.progress_line(run)
        try:
            yield from self._delivered(run, super().__iter__(), progress)
        finally:
            if progress is not None:
                progress.close()
        run.finish()

    def _delivered(
        self, run: Pass, batches: Iterator[dict[str, Any]], progress: Progress | None
    ) -> Iterator[dict[str, Any]]:
        """Yield the batches of workers, and tell the loader of each."""
        plan, clock = run.maker.plan, run.maker.clock
        for step, batch in enumerate(clock.watch(batches)):
            if not run.is_current(run):
                raise LoaderError(
                    "another pass, another epoch or a loaded state has taken the place of this one; "
                    "go on with a new iter()."
                )
            part = plan.part(step)
            made = Made({}, part.stop, part.last - part.first)
            run.deliver(made)
            clock.batches += 1
            clock.samples += made.samples
            if progress is not None:
                progress.advance(made.samples)
            self.end_of_dataloader = step == len(plan) - 1
            yield run.maker.converter.move(batch)

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next."""
        self.loader.set_epoch(epoch)

    def state_dict(self) -> State:
        """Return the loader's state: what was delivered, not what workers have made ahead."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken."""
        self.loader.load_state_dict(state)


def _told_to_accelerate(
    owner: TorchDataLoader, batches: Iterator[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the batches; where Accelerate is in use on its device, and known to its gradient state."""
    owner.end_of_dataloader = False
    accelerate = sys.modules.get("accelerate")
    state = getattr(accelerate, "state", None)
    if accelerate is None or state is None or not state.AcceleratorState._shared_state:
        yield from batches
        return
    gradients = state.GradientState()
    device = state.AcceleratorState().device
    gradients._add_dataloader(owner)
    try:
        for batch in batches:
            yield accelerate.utils.send_to_device(batch, device, non_blocking=True)
    finally:
        gradients._remove_dataloader(owner)
