"""The types of a call's arguments, as far as machine code depends on them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

NUMBERS = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
)
"""Dtypes of numbers and of arrays that kernels take."""

Layout: TypeAlias = Literal["C", "F", "A"]
_DTYPES = {np.dtype(name): np.dtype(name) for name in NUMBERS}
_LARGEST = (1 << 63) - 1


class NumberType(NamedTuple):
    """The type of one number."""

    dtype: str

    def __str__(self) -> str:
        return self.dtype


class ArrayType(NamedTuple):
    """The type of an array."""

    dtype: str
    ndim: int
    layout: Layout
    """``"C"``: contiguous, the last index fastest; ``"F"``: the first; ``"A"``: any strides."""
    writable: bool
    aligned: bool

    def __str__(self) -> str:
        flags = f"{self.layout}{'' if self.writable else 'r'}{'' if self.aligned else 'u'}"
        return f"{self.dtype}[{self.ndim}{flags}]"


ArgumentType: TypeAlias = NumberType | ArrayType
Signature: TypeAlias = tuple[ArgumentType, ...]


def plain(argument: Any) -> Any:
    """Return an argument as the machine code of kernels takes it; most already are.

    Arrays are ``numpy.ndarray`` itself, of a built-in dtype object, and numbers of its type
    (``longlong`` is another type than int64, of an equal dtype); integers beyond int64 are uint64.

    Raises:
        TypeError: The argument is neither an array nor a number, or of a dtype that kernels do not take.
    """
    if type(argument) is int:
        return argument if -_LARGEST - 1 <= argument <= _LARGEST else np.uint64(argument)
    if isinstance(argument, np.ndarray):
        dtype = _DTYPES.get(argument.dtype)
        if dtype is not None:
            return np.asarray(argument).view(dtype)
    elif type(argument) in _PYTHON:
        return argument
    elif isinstance(argument, np.generic) and argument.dtype in _DTYPES:
        return _DTYPES[argument.dtype].type(argument)
    raise TypeError(
        f"{_described(argument)}; kernels take numbers, and arrays in native byte order, "
        f"of {', '.join(NUMBERS)}."
    )


def _described(argument: Any) -> str:
    if isinstance(argument, np.ndarray):
        return f"an array of {argument.dtype}"
    return f"an argument of type {type(argument).__name__}"


def signature_of(arguments: tuple[Any, ...]) -> Signature:
    """Return the types of arguments that are ``plain``."""
    return tuple(_type_of(argument) for argument in arguments)


def _type_of(argument: Any) -> ArgumentType:
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        layout: Layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return ArrayType(argument.dtype.name, argument.ndim, layout, flags.writeable, flags.aligned)
    if type(argument) in _PYTHON:
        return NumberType(_PYTHON[type(argument)])
    return NumberType(argument.dtype.name)


_PYTHON: dict[type, str] = {int: "int64", bool: "bool", float: "float64"}
