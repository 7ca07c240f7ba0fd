"""Machine code into this process, and a Python callable over it; with LLVM alone, without Numba."""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import binding

from headrace.kernels.native import files
from headrace.kernels.native.runtime import runtime_module
from headrace.kernels.native.signature import NUMBERS

ENTRY = "headrace_entry"
"""Symbol of the function that CPython calls."""
_FASTCALL = 0x80
HEAD_BYTES = 16
"""References and type, which every object begins with."""
_ARRAY_NEW, _ARRAY_SET_BASE = 93, 282
"""Places in NumPy's table of C functions, the same in every release: ``numpy/__multiarray_api.h``."""
_LIBRARY = "runtime"
_RUNTIME = bytes(files.FINGERPRINT_BYTES)
_numbers = itertools.count()


class _Method(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def callable_of(code: bytes, name: str) -> Callable[..., Any]:
    """Load the object code of a kernel; one thread at a time.

    Args:
        code: An object file that defines ``ENTRY``.
        name: Of the kernel, for people.

    Returns:
        A function that returns ``NotImplemented`` where its arguments are not of the types that it
        was compiled for, and then has done nothing.

    Raises:
        RuntimeError: The code needs something that is not there, or this interpreter lays out its
            objects in another way than the code expects.
    """
    _require_known_layout()
    jit, _ = _runtime()
    builder = binding.JITLibraryBuilder().add_object_img(code)
    for symbol, address in symbols().items():
        builder.import_symbol(symbol, address)
    builder.add_jit_library(_LIBRARY).add_current_process().export_symbol(ENTRY)
    return _function(name, _linked(builder, jit, f"kernel{next(_numbers)}")[ENTRY])


def _require_known_layout() -> None:
    """Refuse interpreters without a GIL, of 32 bits, for debugging, or other than CPython."""
    if sys.implementation.name != "cpython" or object.__basicsize__ != HEAD_BYTES:
        raise RuntimeError(f"{sys.implementation.name} with objects of {object.__basicsize__} bytes")


def _linked(builder: Any, jit: Any, name: str) -> Any:
    """Link a library that stays for good; return the addresses of its exported symbols."""
    tracker = builder.link(jit, name)
    tracker.detach()
    return tracker


def _function(name: str, address: int) -> Callable[..., Any]:
    method = _Method(name.encode(), address, _FASTCALL, None)
    _kept.append(method)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    function: Callable[..., Any] = make(ctypes.addressof(method), None, None)
    return function


_kept: list[_Method] = []
"""Live as long as the functions that were made of them: as long as the process."""


@functools.cache
def _runtime() -> tuple[Any, int]:
    """Return the process's linker with the runtime in it, and where ``headrace_free`` is."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    jit = binding.create_lljit_compiler(_target_machine(), suppress_errors=True)
    builder = binding.JITLibraryBuilder().add_object_img(_runtime_code()).add_current_process()
    builder.export_symbol("headrace_free")
    return jit, _linked(builder, jit, _LIBRARY)["headrace_free"]


def _target_machine() -> Any:
    """Return LLVM's description of this machine."""
    target = binding.Target.from_default_triple()
    return target.create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )


def _runtime_code() -> bytes:
    """Return the object code of the runtime; its source is part of what code on disk is known by."""
    code = files.read_code(_LIBRARY, _RUNTIME)
    if code is None:
        module = binding.parse_assembly(str(runtime_module()))
        module.verify()
        code = _target_machine().emit_object(module)
        files.keep_code(_LIBRARY, _RUNTIME, code)
    return code


@functools.cache
def symbols() -> dict[str, int]:
    """Return the addresses of the Python objects and the functions that entries refer to by name."""
    objects: dict[str, Any] = {
        "headrace_array_type": np.ndarray,
        "headrace_int_type": int,
        "headrace_float_type": float,
        "headrace_bool_type": bool,
        "headrace_none": None,
        "headrace_true": True,
        "headrace_not_implemented": NotImplemented,
        "headrace_memory_error": MemoryError,
    }
    for name in NUMBERS:
        objects[f"headrace_dtype_{name}"] = np.dtype(name)
        objects[f"headrace_type_{name}"] = np.dtype(name).type
    addresses = {name: id(value) for name, value in objects.items()}
    return {**addresses, **_numpy_functions(), "headrace_free": _runtime()[1]}


def _numpy_functions() -> dict[str, int]:
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return {
        "headrace_array_new": table[_ARRAY_NEW] or 0,
        "headrace_array_set_base": table[_ARRAY_SET_BASE] or 0,
    }
