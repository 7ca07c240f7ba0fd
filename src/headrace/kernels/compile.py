"""How every kernel is compiled: without the GIL, cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile ``function`` with Numba on first use, and keep the machine code on disk."""
    return cast(Function, numba.njit(nogil=True, cache=True, error_model="numpy")(function))


def inline(function: Function) -> Function:
    """Compile a helper that kernels call, always inlined into its caller by LLVM."""
    return cast(Function, numba.njit(nogil=True, error_model="numpy", forceinline=True)(function))


def bare_kernel(function: Function) -> Function:
    """Compile like ``kernel``, without reference counts: for what allocates no array and returns none."""
    return cast(Function, numba.njit(nogil=True, cache=True, error_model="numpy", _nrt=False)(function))


def bare_inline(function: Function) -> Function:
    """Compile like ``inline``, without reference counts."""
    return cast(Function, numba.njit(nogil=True, error_model="numpy", forceinline=True, _nrt=False)(function))
