"""JAX: arrays on a device."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from headrace.errors import LoaderError
from headrace.loading.output import Converter
from headrace.loading.space import Batch

_NARROWED = {np.dtype(np.int64): np.dtype(np.int32), np.dtype(np.uint64): np.dtype(np.uint32)}


class JaxConverter(Converter):
    """JAX arrays; 64-bit integers become 32-bit ones where JAX is not in 64-bit mode, and never wrap.

    Args:
        device: A JAX device or sharding; None is JAX's default device.
    """

    moves = True

    def __init__(self, device: Any) -> None:
        self.device = device

    def convert(self, batch: Batch) -> dict[str, Any]:
        """Return arrays of dtypes that JAX keeps."""
        for name, array in batch.items():
            _check_dtype(name, array)
        if jax.config.jax_enable_x64:
            return batch
        return {name: _narrow(name, array) for name, array in batch.items()}

    def move(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Put the arrays on the device."""
        moved: dict[str, Any] = jax.device_put(batch, self.device)
        return moved


def _check_dtype(name: str, array: Any) -> None:
    """Refuse arrays that JAX has no dtype for."""
    if not isinstance(array, np.ndarray):
        return
    number = array.dtype == np.bool_ or jax.dtypes.issubdtype(array.dtype, np.number)
    if not (number and array.dtype.isnative):
        raise LoaderError(
            f"{name} is {array.dtype}, which JAX has no arrays of; it takes numbers in this machine's byte "
            "order. Texts and objects stay with output='numpy'."
        )


def _narrow(name: str, array: Any) -> Any:
    if not isinstance(array, np.ndarray) or array.dtype not in _NARROWED:
        return array
    narrow = _NARROWED[array.dtype]
    limits = np.iinfo(narrow)
    if array.size and not (array.min() >= limits.min and array.max() <= limits.max):
        raise LoaderError(
            f"{name} holds a value beyond {narrow}, which is what JAX keeps by default; "
            "set jax.config.update('jax_enable_x64', True), or drop it in transform=."
        )
    return array.astype(narrow)
