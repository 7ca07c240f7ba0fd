"""Integers as users give them: Python's and NumPy's; a text, a fraction or a truth value is a mistake."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import HeadraceError, OrderError


def integer(name: str, value: Any, error: type[HeadraceError] = OrderError) -> int:
    """Return an argument as a Python int, which goes through JSON and never overflows.

    Args:
        name: Of the argument, for the message.
        value: What was given for it.
        error: What is raised.

    Raises:
        HeadraceError: It is no integer; of the class ``error``.
    """
    if not isinstance(value, bool | np.bool_):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise error(f"{name}={value!r}; it must be an integer.")


def integers(name: str, values: Any) -> NDArray[np.int64]:
    """Return several integers as int64 [n].

    Args:
        name: Of one of them, for the message.
        values: An array of integers, or anything that gives them one by one.

    Raises:
        TypeError: They are fractions, texts or truth values (which would be taken for 0 and 1).
    """
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise TypeError(f"{name}s are given as {values!r}; expected a list or an array of integers.")
    array = values if isinstance(values, np.ndarray) else np.asarray(list(values))
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        advice = "; for a mask give np.flatnonzero(mask)" if array.dtype == bool else ""
        raise TypeError(f"{name}s are {array.dtype} {list(array.shape)}; they must be integers, [n]{advice}.")
    return np.ascontiguousarray(array, np.int64)
