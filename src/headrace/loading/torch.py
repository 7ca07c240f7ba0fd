"""PyTorch: tensors over the gathered arrays, and samples for a ``DataLoader`` of the user's own."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from headrace.errors import LoaderError
from headrace.loading.checks import check_batch, check_epoch, check_space
from headrace.loading.output import Converter
from headrace.loading.space import Batch, SampleSpace
from headrace.order.integers import integer

Sample = dict[str, torch.Tensor]
_from_numpy = torch.from_numpy


class TorchConverter(Converter):
    """Zero-copy tensors on the CPU; pinned and copied without blocking where a device is asked for.

    Args:
        device: Where tensors shall be; None leaves them where they are.
        pin_memory: Copy to page-locked memory in the loader's threads. None: when there is an
            accelerator and ``device`` is one.

    Raises:
        LoaderError: ``pin_memory=True`` without an accelerator, or torch knows no such device.
    """

    def __init__(self, device: Any, pin_memory: bool | None) -> None:
        self.device = _device(device)
        self.moves = device is not None
        wanted = self.device is not None and self.device.type not in ("cpu", "meta")
        self.pin = wanted if pin_memory is None else pin_memory
        if self.pin and not torch.accelerator.is_available():
            if pin_memory:
                raise LoaderError("pin_memory=True needs an accelerator, and torch finds none; leave it out.")
            self.pin = False

    def convert(self, batch: Batch) -> dict[str, Any]:
        """Return tensors over the same memory; what is no array stays as it is."""
        try:
            return {name: _from_numpy(value) for name, value in batch.items()}
        except (TypeError, ValueError):
            return {name: _tensor(name, value) for name, value in batch.items()}

    def stage(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Copy tensors to page-locked memory, where that is wanted."""
        return {name: _pinned(value) for name, value in batch.items()} if self.pin else batch

    def move(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Send tensors to the device; does not wait for copies from pinned memory."""
        if not self.moves:
            return batch
        return {name: self._moved(value) for name, value in batch.items()}

    def _moved(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self.move(value)
        return value.to(self.device, non_blocking=True) if isinstance(value, torch.Tensor) else value


def _device(given: Any) -> torch.device | None:
    """Return the device that ``device=`` names; it is not opened, since worker processes come here too."""
    if given is None:
        return None
    try:
        device = torch.device(given)
    except (RuntimeError, TypeError) as error:
        raise LoaderError(
            f"device={given!r} is none that torch knows: {str(error).splitlines()[0]}"
        ) from None
    if device.type in _ACCELERATORS and not torch.accelerator.is_available():
        raise LoaderError(
            f"device={given!r}: torch finds no accelerator; leave it out, or install its driver."
        )
    return device


_ACCELERATORS = ("cuda", "mps", "xpu")


def _tensor(name: str, value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    try:
        return torch.from_numpy(value)
    except (TypeError, ValueError):
        raise LoaderError(
            f"{name} is {value.dtype} {list(value.shape)} with strides {list(value.strides)}, of which torch "
            "makes no tensor: it takes numbers in this machine's byte order, without negative strides "
            "(np.ascontiguousarray copies them); texts and objects stay with output='numpy'."
        ) from None


def _pinned(value: Any) -> Any:
    return value.pin_memory() if isinstance(value, torch.Tensor) else value


class TorchDataset(Dataset[Sample]):  # type: ignore[misc]
    """A sample space as a map-style dataset, for a sampler and ``collate_fn`` of the user's own.

    A ``DataLoader`` hands over the indices of a whole batch (``__getitems__``), which is gathered in one
    pass and then split into samples. Draws, where the space makes any, are keyed by the index.

        DataLoader(TorchDataset(space), batch_size=32, shuffle=True, collate_fn=my_collate)

    Args:
        space: What can gather.
        seed: For what is drawn.
        epoch: For what is drawn; see ``set_epoch``.

    Raises:
        LoaderError: ``space`` is no sample space.
    """

    def __init__(self, space: SampleSpace, seed: int = 0, epoch: int = 0) -> None:
        check_space(space, "what a TorchDataset is made of")
        self.space = space
        self.seed = integer("seed", seed, LoaderError)
        self.set_epoch(epoch)

    def set_epoch(self, epoch: int) -> None:
        """Take the samples of another epoch."""
        self.epoch = integer("epoch", epoch, LoaderError)
        self._epoch_space = check_epoch(self.space.at(self.seed, self.epoch), self.space)

    def __len__(self) -> int:
        return len(self._epoch_space)

    def __getitem__(self, index: int) -> Sample:
        """Return one sample: a dict of tensors without the batch dimension.

        Raises:
            IndexError: ``index`` is not in ``[-len(self), len(self))``.
        """
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Return a list of samples, gathered together."""
        size = len(self)
        wanted = [operator.index(index) for index in indices]
        if wanted and not (min(wanted) >= -size and max(wanted) < size):
            raise IndexError(f"an index of {wanted[:8]} is not in [{-size}, {size}), the samples here.")
        array = np.array(wanted, np.int64)
        array[array < 0] += size
        gathered = self._epoch_space.gather(array, array.astype(np.uint64))
        batch = check_batch(gathered, array.size, "gather() returned", self._jagged)
        tensors = {name: _tensor(name, value) for name, value in batch.items()}
        return _samples(tensors, len(indices), self._jagged)

    @property
    def _jagged(self) -> Mapping[str, str]:
        return getattr(self.space, "jagged", {})


def _samples(batch: Sample, size: int, jagged: Mapping[str, str]) -> list[Sample]:
    """Split a batch into samples."""
    parts = {
        name: tensor.split(batch[jagged[name]].tolist()) if name in jagged else tensor.unbind(0)
        for name, tensor in batch.items()
    }
    return [{name: part[place] for name, part in parts.items()} for place in range(size)]
