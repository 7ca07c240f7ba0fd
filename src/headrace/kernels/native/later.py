"""Modules of Numba that intrinsics are written with, imported when one is compiled."""

from __future__ import annotations

import importlib
from typing import Any


class Later:
    """A module that is imported when something of it is used.

    Args:
        name: Of the module.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)

    def __repr__(self) -> str:
        return self._name


arrayobj: Any = Later("numba.np.arrayobj")
cgutils: Any = Later("numba.core.cgutils")
ir: Any = Later("llvmlite.ir")
types: Any = Later("numba.core.types")
