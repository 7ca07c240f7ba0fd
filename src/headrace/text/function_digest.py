"""A digest of what a user's function does: a run goes on, and a store grows, with the same one only."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xxhash

from headrace.errors import TextError
from headrace.text import tokenizer_hugging_face, tokenizer_sentencepiece, tokenizer_tiktoken
from headrace.text.settings import fingerprint_of

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
_ROOMS = (tokenizer_hugging_face, tokenizer_tiktoken, tokenizer_sentencepiece)


def digest_of(function: Any) -> str:
    """Return a hexadecimal digest, the same in every process, and another when the function is another.

    What counts: code without places and comments, constants, defaults, closure values, the state of an
    object that is called, and the values, functions and classes of its own module that are read. Tokenizers
    of the known libraries count by their content, other objects of other modules by their type alone.

    Args:
        function: What is called.

    Raises:
        TextError: What it reads is nested too deep to be followed.
    """
    digest = xxhash.xxh3_128()
    try:
        for part in _parts(function, _home(function), {}):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
    except RecursionError:
        raise TextError(
            f"{getattr(function, '__qualname__', type(function).__qualname__)}: what it reads is nested too "
            "deep to be compared. Give it a method __fingerprint__() that returns a text."
        ) from None
    return digest.hexdigest()


def _home(function: Any) -> str:
    """Return the module of what is called in the end."""
    while isinstance(function, functools.partial | types.MethodType):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    return _module(function)


def _parts(value: Any, home: str, seen: dict[int, Any]) -> Iterator[bytes]:
    """Yield the bytes that stand for a value.

    Args:
        value: Anything.
        home: The module whose functions, classes and objects are followed.
        seen: What was followed already, by its ``id``; kept here, so that no other gets the same.
    """
    yield type(value).__qualname__.encode()
    if isinstance(value, _PLAIN):
        yield repr(value).encode("utf-8", "surrogatepass")
    elif isinstance(value, np.generic | np.ndarray):
        yield from _parts_of_array(np.asarray(value), home, seen)
    elif isinstance(value, set | frozenset):
        yield from sorted(b"".join(_parts(one, home, dict(seen))) for one in value)
    elif id(value) in seen:
        yield b"again"
    else:
        if not isinstance(value, tuple | types.CodeType):  # may be one object or several equal ones
            seen[id(value)] = value
        for one in _inside(value, home):
            yield from _parts(one, home, seen)


def _parts_of_array(array: Any, home: str, seen: dict[int, Any]) -> Iterator[bytes]:
    yield f"{array.dtype.str} {array.shape}".encode()
    if array.dtype.hasobject:
        yield from _parts(array.tolist(), home, seen)
    else:
        yield np.ascontiguousarray(array).tobytes()


def _inside(value: Any, home: str) -> list[Any]:
    """Return what a value consists of."""
    if isinstance(value, tuple | list):
        return [len(value), *value]
    if isinstance(value, Mapping):
        return [len(value), *(one for pair in value.items() for one in pair)]
    if isinstance(value, types.CodeType):
        return [value.co_code, value.co_names, value.co_consts, value.co_argcount, value.co_flags]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, types.BuiltinMethodType | types.MethodWrapperType):
        return [value.__name__, value.__self__]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, types.FunctionType) and _module(value) == home:
        return _inside_function(value)
    if isinstance(value, type) and _module(value) == home:
        return _inside_class(value)
    return _inside_object(value, home)


def _inside_function(function: types.FunctionType) -> list[Any]:
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    return [function.__code__, function.__defaults__, function.__kwdefaults__, cells, _globals(function)]


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """Return the global values that a function and those inside it read."""
    names = sorted(set(_names(function.__code__)) & set(function.__globals__))
    return {name: function.__globals__[name] for name in names}


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _inside_class(kind: type) -> list[Any]:
    """Return a class's name, bases, methods and values."""
    own = {name: getattr(one, "__func__", one) for name, one in vars(kind).items()}
    methods = {name: one for name, one in own.items() if isinstance(one, types.FunctionType)}
    values = {name: one for name, one in own.items() if name[:2] != "__" and not _is_descriptor(one)}
    return [kind.__qualname__, kind.__bases__, methods, values]


def _is_descriptor(value: Any) -> bool:
    return hasattr(type(value), "__get__")


def _inside_object(value: Any, home: str) -> list[Any]:
    kind = type(value)
    name = f"{_module(value)}.{getattr(value, '__qualname__', kind.__qualname__)}"
    if isinstance(value, type | types.ModuleType):
        return [name, getattr(value, "__name__", None)]
    if (told := fingerprint_of(value)) is not None:
        return [name, told]
    if (known := _known_tokenizer(value)) is not None:
        return [name, known]
    return [name] if kind.__module__ != home else [name, kind, getattr(value, "__dict__", None)]


def _known_tokenizer(value: Any) -> str | None:
    """Return the digest of a tokenizer of a known library; None for anything else."""
    try:
        found = next((one for room in _ROOMS if (one := room.from_object(value)) is not None), None)
        return None if found is None else found.digest
    except Exception:  # noqa: BLE001 - an object that only looks like one
        return None


def _module(value: Any) -> str:
    return str(getattr(value, "__module__", None) or type(value).__module__)
