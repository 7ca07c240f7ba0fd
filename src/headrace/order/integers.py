"""Integers as users give them: Python's and NumPy's; a text, a fraction or a truth value is a mistake."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import HeadraceError, OrderError

_LARGEST = np.iinfo(np.int64).max


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


def array_of(name: str, values: Any, kinds: str, expected: str) -> NDArray[Any]:
    """Return one-dimensional values as an array: of a list, an array of NumPy, torch, pandas or Arrow.

    Args:
        name: Of what was given, for the message.
        values: What was given.
        kinds: The kinds of dtype that are allowed, as ``numpy.dtype.kind`` gives them; nothing is also empty.
        expected: The words for what is allowed.

    Raises:
        OrderError: They are of another kind or shape.
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):
        raise OrderError(f"{name}: found a {type(values).__name__} of unlike elements; {expected}.") from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in kinds):
        raise OrderError(f"{name}: found {array.dtype} {list(array.shape)}; {expected}.")
    return array


def int64_of(name: str, array: NDArray[Any]) -> NDArray[np.int64]:
    """Return integers as int64 of their own memory; nothing wraps.

    Args:
        name: Of what was given, for the message.
        array: Integers.

    Raises:
        OrderError: One is 2**63 or more.
    """
    if array.dtype.kind == "u" and array.size and int(array.max()) > _LARGEST:
        place = int(array.argmax())
        raise OrderError(f"{name}: entry {place} is {array[place]}; it must be below 2**63.")
    return array.astype(np.int64)


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
    try:
        array = values if isinstance(values, np.ndarray) else np.asarray(list(values))
    except ValueError:
        raise TypeError(f"{name}s are lists of unlike lengths; they must be integers, [n].") from None
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        advice = "; for a mask give np.flatnonzero(mask)" if array.dtype == bool else ""
        raise TypeError(f"{name}s are {array.dtype} {list(array.shape)}; they must be integers, [n]{advice}.")
    return np.ascontiguousarray(array, np.int64)
