"""Arrays that somebody gave, in whatever form, as arrays that kernels read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import TextError
from headrace.text.special import MOST_IDS

_FLOAT_BYTES = (4, 8)


def as_array(values: Any) -> NDArray[Any] | None:
    """Return what somebody gave as an array; None for what is none."""
    try:
        return np.asarray(values)
    except Exception:  # noqa: BLE001 - ragged lists, tensors on a device, objects with an __array__ of their own
        return None


def described(values: Any, array: NDArray[Any] | None) -> str:
    """Return what somebody gave in words, for messages."""
    if values is None:
        return "None"
    kind = type(values).__name__
    if array is None:
        return f"a {kind} that is no array"
    return f"a {kind} ({array.dtype} of shape {array.shape})"


def whole_numbers(values: Any, name: str, advice: str) -> NDArray[np.int64]:
    """Return integers that somebody gave as a contiguous int64 array.

    Raises:
        TextError: They are no integers.
    """
    array = as_array(values)
    if array is None or (array.size and array.dtype.kind not in "iu"):
        raise TextError(f"{name}: found {described(values, array)}, expected integers: {advice}.")
    if array.dtype == np.uint64 and array.size and int(array.max()) >= MOST_IDS:
        raise TextError(f"{name}: {array.max()} does not fit in int64; expected {advice}.")
    return np.ascontiguousarray(array, np.int64)


def plain_array(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return ``values`` flat, contiguous and of this machine's byte order.

    Booleans as uint8, floats of other than 32 and 64 bits as float32: what kernels know.

    Raises:
        TextError: Not one-dimensional, or neither numbers nor booleans.
    """
    array = as_array(values)
    if array is None or array.ndim != 1 or array.dtype.kind not in "iufb":
        raise TextError(
            f"{name}: found {described(values, array)}, expected one flat array of numbers, one a token."
        )
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    if array.dtype.kind == "f" and array.dtype.itemsize not in _FLOAT_BYTES:
        array = array.astype(np.float32)
    return np.ascontiguousarray(array, array.dtype.newbyteorder("="))
