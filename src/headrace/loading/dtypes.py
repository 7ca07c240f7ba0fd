"""Dtypes as users name them: ``"uint16"``, ``np.uint16``, ``np.dtype("uint16")``, ``"u2"``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def dtype_name(given: object, allowed: Sequence[str]) -> str | None:
    """Return the allowed dtype that is given in any of NumPy's ways; None where it is another, or none.

    >>> dtype_name(np.int32, ("int64", "int32")), dtype_name(">i4", ("int64", "int32"))
    ('int32', None)

    Args:
        given: What the user gave.
        allowed: Names of dtypes.
    """
    if given is None:  # to NumPy None is float64, to us no answer
        return None
    try:
        dtype = np.dtype(given)  # type: ignore[call-overload]
    except Exception:  # noqa: BLE001 - for text NumPy raises SyntaxError too, and for objects whatever they raise
        return None
    return next((name for name in allowed if dtype == np.dtype(name)), None)
