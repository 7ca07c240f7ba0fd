"""Integers as users give them: Python's and NumPy's; a text, a fraction or a truth value is a mistake."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

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
