"""From a gathered batch to what the consumer asked for: filling rows, groups, tensors."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headrace.errors import LoaderError
from headrace.loading.checks import check_batch
from headrace.loading.space import Batch, Role

OutputKind: TypeAlias = Literal["numpy", "torch", "jax"]


def add_filling(
    batch: Batch, rows: int, filling: int, fill: Mapping[str, float], jagged: Mapping[str, str]
) -> Batch:
    """Return a batch with ``filling`` rows behind its own, and ``valid`` bool [B].

    Args:
        batch: Arrays whose first dimension is ``rows``, but for those that ``jagged`` names.
        rows: Samples in the batch.
        filling: Rows to add; 0 adds ``valid`` alone.
        fill: What stands in a filling row, by name; 0 where a name is absent.
        jagged: Arrays that have no row for a filling sample: its length is 0.

    Raises:
        LoaderError: An array has not one row a sample, or is named ``valid``, or cannot hold its filling.
    """
    check_batch(batch, rows, "a batch that last='pad' would fill up has", jagged)
    if "valid" in batch:
        raise LoaderError("last='pad' gives 'valid', and the batch has an array of that name; rename it.")
    valid = np.arange(rows + filling) < rows
    if not filling:
        return {**batch, "valid": valid}
    padded = {
        name: _padded(name, array, filling, fill.get(name, 0))
        for name, array in batch.items()
        if name not in jagged
    }
    return {**batch, **padded, "valid": valid}


def _padded(name: str, array: NDArray[Any], filling: int, value: float) -> NDArray[Any]:
    out = np.empty((len(array) + filling, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    try:
        out[len(array) :] = value
    except (OverflowError, TypeError, ValueError):
        raise LoaderError(
            f"{name} is {array.dtype}, which cannot hold {value!r}, its filling for last='pad'; "
            "mend what the space has in fill."
        ) from None
    return out


def grouped(batch: Mapping[str, Any], roles: Mapping[str, Role]) -> dict[str, dict[str, Any]]:
    """Return ``{"inputs": …, "targets": …, "meta": …}``; ``valid`` is meta, unknown names are inputs."""
    groups: dict[str, dict[str, Any]] = {"inputs": {}, "targets": {}, "meta": {}}
    for name, array in batch.items():
        groups[roles.get(name, "meta" if name == "valid" else "inputs")][name] = array
    return groups


def bytes_of(batch: Mapping[str, Any]) -> int:
    """Return the bytes of a batch, of all groups where it has groups."""
    return sum(
        bytes_of(value) if isinstance(value, dict) else getattr(value, "nbytes", 0)
        for value in batch.values()
    )


class Converter:
    """Turns NumPy batches into the output: part of it in the loader's threads, the rest at the consumer."""

    moves = False
    """Whether ``move`` does anything."""

    def convert(self, batch: Batch) -> dict[str, Any]:
        """Return the batch as the output's arrays; called in the loader's threads."""
        return batch

    def stage(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Copy to memory from which a device reads fast; called in the loader's threads."""
        return batch

    def move(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Send the batch to its device; called in the consumer's thread."""
        return batch


def converter(output: Any, device: Any, pin_memory: bool | None) -> Converter:
    """Return the converter of an output.

    Raises:
        LoaderError: There is no such output, its package is missing, or it has no such option.
    """
    makers: dict[str, Callable[[Any, bool | None], Converter]] = {
        "numpy": _numpy_converter,
        "torch": _torch_converter,
        "jax": _jax_converter,
    }
    if not isinstance(output, str) or output not in makers:
        raise LoaderError(f"output='{output}'; it is 'numpy', 'torch' or 'jax'.")
    return makers[output](device, pin_memory)


def _numpy_converter(device: Any, pin_memory: bool | None) -> Converter:
    if device is not None or pin_memory:
        raise LoaderError(
            "device= and pin_memory= are for output='torch' or 'jax'; NumPy arrays stay where they are."
        )
    return Converter()


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Import without looking for garbage, of which modules are none: a tenth of the time of torch."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _torch_converter(device: Any, pin_memory: bool | None) -> Converter:
    try:
        with _collector_at_rest():
            from headrace.loading.torch import TorchConverter
    except ModuleNotFoundError as error:
        raise LoaderError(f"output='torch' needs {error.name}: pip install 'headrace[torch]'.") from error
    return TorchConverter(device, pin_memory)


def _jax_converter(device: Any, pin_memory: bool | None) -> Converter:
    if pin_memory:
        raise LoaderError("pin_memory= is for output='torch'; JAX copies on its own.")
    try:
        with _collector_at_rest():
            from headrace.loading.jax import JaxConverter
    except ModuleNotFoundError as error:
        raise LoaderError(f"output='jax' needs {error.name}: pip install 'headrace[jax]'.") from error
    return JaxConverter(device)
