"""PyTorch: tensors that share memory with the gathered arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from headrace.errors import LoaderError
from headrace.loading.output import Converter
from headrace.loading.space import Batch


class TorchConverter(Converter):
    """Zero-copy tensors on the CPU; pinned and copied without blocking where a device is asked for.

    Args:
        device: Where tensors shall be; None leaves them where they are.
        pin_memory: Copy to page-locked memory in the loader's threads. None: when there is an
            accelerator and ``device`` is one.

    Raises:
        LoaderError: ``pin_memory=True`` without an accelerator.
    """

    def __init__(self, device: Any, pin_memory: bool | None) -> None:
        self.device = None if device is None else torch.device(device)
        accelerated = torch.accelerator.is_available()
        if pin_memory and not accelerated:
            raise LoaderError(
                "pin_memory=True needs an accelerator, and torch finds none; leave it out, or False."
            )
        wanted = self.device is not None and self.device.type not in ("cpu", "meta")
        self.pin = accelerated and wanted if pin_memory is None else pin_memory

    def convert(self, batch: Batch) -> dict[str, Any]:
        """Return tensors over the same memory; what is no array stays as it is."""
        return {name: _tensor(value) for name, value in batch.items()}

    def stage(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Copy tensors to page-locked memory, where that is wanted."""
        return {name: _pinned(value) for name, value in batch.items()} if self.pin else batch

    def move(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Send tensors to the device, where one is wanted; does not wait for copies from pinned memory."""
        if self.device is None:
            return batch
        return {name: self._moved(value) for name, value in batch.items()}

    def _moved(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self.move(value)
        return value.to(self.device, non_blocking=True) if isinstance(value, torch.Tensor) else value


def _tensor(value: Any) -> Any:
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def _pinned(value: Any) -> Any:
    return value.pin_memory() if isinstance(value, torch.Tensor) else value
