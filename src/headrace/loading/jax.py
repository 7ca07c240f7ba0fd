"""JAX: arrays on a device."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from headrace.errors import LoaderError
from headrace.loading.output import Converter
from headrace.loading.space import Batch

_INT32 = np.iinfo(np.int32)


class JaxConverter(Converter):
    """JAX arrays; int64 becomes int32 where JAX is not in 64-bit mode, and never wraps.

    Args:
        device: A JAX device or sharding; None is JAX's default device.
    """

    moves = True

    def __init__(self, device: Any) -> None:
        self.device = device

    def convert(self, batch: Batch) -> dict[str, Any]:
        """Return arrays of dtypes that JAX keeps."""
        if jax.config.jax_enable_x64:
            return batch
        return {name: _narrow(name, array) for name, array in batch.items()}

    def move(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Put the arrays on the device."""
        moved: dict[str, Any] = jax.device_put(batch, self.device)
        return moved


def _narrow(name: str, array: Any) -> Any:
    if not isinstance(array, np.ndarray) or array.dtype != np.int64:
        return array
    if array.size and not (array.min() >= _INT32.min and array.max() <= _INT32.max):
        raise LoaderError(
            f"{name} holds a value beyond int32, which is what JAX keeps by default; "
            "set jax.config.update('jax_enable_x64', True), or drop it in transform=."
        )
    return array.astype(np.int32)
