"""What the machine code of a kernel depends on, as one number.

The bytecode of the kernel and of every function that it reaches, and the values of the globals
and defaults that they use. A comment or a moved line changes nothing; a constant in another
module does.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import xxhash

from headrace.kernels.native.later import Later

_PACKAGE = __name__.partition(".")[0]


class Compilable:
    """What is compiled from a Python function: a kernel, a helper or an intrinsic.

    Args:
        function: The Python function.
        kind: How it is compiled.
    """

    def __init__(self, function: Any, kind: str) -> None:
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.function: FunctionType = function
        self.kind = kind


def references(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of the globals and closure variables that a function refers to."""
    for name in sorted(set(_names(function.__code__))):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def reachable(function: FunctionType) -> list[FunctionType | Compilable]:
    """Return every kernel, helper, intrinsic and plain function of this package that a function reaches."""
    found: list[FunctionType | Compilable] = []
    waiting = [function]
    while waiting:
        for _, value in references(waiting.pop()):
            if any(value is one for one in found) or not _is_ours(value):
                continue
            found.append(value)
            waiting.append(_function(value))
    return found


def _function(value: FunctionType | Compilable) -> FunctionType:
    return value.function if isinstance(value, Compilable) else value


def _is_ours(value: Any) -> bool:
    if isinstance(value, FunctionType):
        return value.__module__.partition(".")[0] == _PACKAGE
    return isinstance(value, Compilable)


def fingerprint(kernel: Compilable) -> bytes:
    """Return 16 bytes that change when the machine code may."""
    digest = xxhash.xxh3_128()
    for one in (kernel, *reachable(kernel.function)):
        function = _function(one)
        digest.update(f"{getattr(one, 'kind', '')} {function.__module__}.{function.__qualname__}".encode())
        digest.update(repr((_code(function.__code__), function.__defaults__)).encode())
        for name, value in references(function):
            digest.update(f"{name}={_value(value)};".encode())
    return digest.digest()


def _code(code: CodeType) -> tuple[Any, ...]:
    """Return what a code object does, without where it was written."""
    constants = [_code(one) if isinstance(one, CodeType) else (type(one), one) for one in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, constants


def _value(value: Any) -> str:
    """Return what a kernel sees of a global.

    Raises:
        TypeError: It is nothing that a kernel should refer to.
    """
    if isinstance(value, ModuleType | type | BuiltinFunctionType):
        return value.__name__
    if isinstance(value, FunctionType | Compilable):
        function = _function(value)
        return f"{function.__module__}.{function.__qualname__}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{xxhash.xxh3_64_hexdigest(np.ascontiguousarray(value).tobytes())}"
    if isinstance(value, int | float | complex | str | bytes | tuple | np.generic | np.dtype | Later | None):
        return f"{type(value).__name__} {value!r}"
    raise TypeError(f"a kernel refers to a {type(value).__name__}; it may to numbers, arrays and functions.")
