"""Python function to machine code, with Numba; imported only where no machine code is kept."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numba
from llvmlite import binding
from numba.core import compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from headrace.kernels.native.entry import EntryWriter, numba_type_of
from headrace.kernels.native.link import ENTRY, symbols
from headrace.kernels.native.signature import Signature

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def dispatcher_of(function: FunctionType, *, inline: bool, counted: bool) -> Any:
    """Return what Numba compiles where a kernel calls ``function``."""
    return numba.njit(forceinline=inline, _nrt=counted, **_OPTIONS)(function)


def numba_callable(function: FunctionType) -> Any:
    """Return a function as Numba alone compiles and calls it."""
    return numba.njit(nogil=True, error_model="numpy")(function)


def intrinsic_of(function: FunctionType) -> Any:
    """Return a function as an intrinsic of Numba."""
    return intrinsic(function)


def type_of_intrinsic(made: Any) -> Any:
    """Return Numba's type of an intrinsic."""
    context = cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(made)


@global_compiler_lock  # type: ignore[untyped-decorator]
def translate(function: FunctionType, signature: Signature, *, counted: bool, brief: bool) -> bytes:
    """Compile a kernel for arguments of the given types.

    Args:
        function: The kernel.
        signature: Types of its arguments.
        counted: Count references to arrays.
        brief: A call over few elements keeps the GIL.

    Returns:
        Object code of this machine that defines ``ENTRY``.
    """
    flags = compiler.Flags()
    cpu_target.options.parse_as_flags(flags, {"nopython": True, "_nrt": counted, **_OPTIONS})
    flags.no_compile = True  # the entry is added first
    flags.enable_pyobject = False
    compiled = compiler.compile_extra(
        cpu_target.typing_context,
        cpu_target.target_context,
        function,
        tuple(numba_type_of(kind) for kind in signature),
        None,
        flags,
        {},
    )
    library = compiled.library
    module = library.create_ir_module(ENTRY)
    result = compiled.signature.return_type
    EntryWriter(module, compiled.target_context, compiled.fndesc, result, brief).write(signature)
    library.add_ir_module(module)
    for symbol, address in symbols().items():
        binding.add_symbol(symbol, address)
    library.finalize()
    _, _, (code, _) = library.serialize_using_object_code()
    return bytes(code)
