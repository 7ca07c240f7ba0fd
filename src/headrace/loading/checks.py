"""What a user's own code gives back, looked at before anything is made of it: batches, spaces, epochs.

To look at a good batch costs less than 0.2 µs an array; words are looked for once something is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any, cast

import numpy as np

from headrace.errors import LoaderError
from headrace.loading.space import Batch, EpochSpace
from headrace.order.sampler import Sampler

_ATTRIBUTES = ("fingerprint", "fill", "roles", "at")
_NOTHING_JAGGED: Mapping[str, str] = {}


def check_space(space: object, what: str) -> None:
    """Refuse what is no sample space before anything of it is used.

    Args:
        space: What was given.
        what: Where it was given, for the message.

    Raises:
        LoaderError: It lacks something that a space has, or is a class; where it has ``sample_space``,
            as a dataset has, the message says so.
    """
    if isinstance(space, type):
        raise LoaderError(f"{what} is the class {space.__name__}; give an instance, {space.__name__}(…).")
    missing = [name for name in _ATTRIBUTES if not (hasattr(type(space), name) or hasattr(space, name))]
    if not missing and callable(space.at):  # type: ignore[attr-defined]
        return
    kind = type(space).__name__
    if hasattr(space, "sample_space"):
        raise LoaderError(f"{what} is a {kind}, which is no sample space; give its sample_space().")
    lacking = f" without {', '.join(missing)}" if 0 < len(missing) < len(_ATTRIBUTES) else ""
    raise LoaderError(
        f"{what} is a {kind}{lacking}, which is no sample space; see headrace.loading.SampleSpace."
    )


def check_epoch(epoch_space: Any, space: object) -> EpochSpace:
    """Return what ``at(seed, epoch)`` gave, which has a length and a gather.

    Raises:
        LoaderError: It has not.
    """
    if isinstance(epoch_space, Sized) and callable(getattr(epoch_space, "gather", None)):
        return cast(EpochSpace, epoch_space)
    raise LoaderError(
        f"{type(space).__name__}.at() returned a {type(epoch_space).__name__}; it must return "
        "something with len() and gather(indices, keys)."
    )


def needed_order(space: object) -> Sampler | None:
    """Return the one order in which the samples of a space can be batched; None where any will do."""
    order = getattr(space, "order", None)
    return cast("Sampler | None", order()) if callable(order) else None


def check_batch(batch: Any, rows: int, what: str, jagged: Mapping[str, str] = _NOTHING_JAGGED) -> Batch:
    """Return a batch that is a dict of arrays with one row a sample.

    Args:
        batch: What was returned.
        rows: Samples that it must hold.
        what: The words for it, such as ``"gather() returned"``.
        jagged: Arrays whose first dimension is a sum of lengths, as a space's ``jagged`` names them.

    Raises:
        LoaderError: It is no such batch; the array that is not so is named.
    """
    checked = check_dict(batch, what)
    for name, array in checked.items():
        if type(array) is not np.ndarray or not array.ndim or len(array) != rows or type(name) is not str:
            _check_array(name, array, rows, what, jagged)
    return checked


def check_dict(batch: Any, what: str) -> Batch:
    """Return a batch that is a dict.

    Raises:
        LoaderError: It is something else.
    """
    if not isinstance(batch, dict):
        raise LoaderError(f"{what} a {type(batch).__name__}; it must return a dict of arrays.")
    checked: Batch = batch
    return checked


def _check_array(name: Any, array: Any, rows: int, what: str, jagged: Mapping[str, str]) -> None:
    """Say what is wrong with an array, if anything is."""
    if not isinstance(name, str):
        raise LoaderError(f"{what} an array named {name!r}; names are texts.")
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise LoaderError(
            f"{what} {name!r} as a {type(array).__module__}.{type(array).__name__}; "
            "it must be a NumPy array, which output='torch' or 'jax' makes a tensor of."
        )
    if array.ndim == 0 or (len(array) != rows and name not in jagged):
        raise LoaderError(
            f"{what} {name!r} of shape {list(array.shape)} for {rows} samples; "
            "the first dimension is one row a sample."
        )
