"""Typed pointers from addresses: one kernel reads many shards, as fast as one.

A store's values lie in several files. Instead of joining them, a kernel takes a
table of addresses (uint64 [K], one for each shard) and reads through

    values = numba.carray(pointer_to(address, like), (size,))

where ``like`` is any array of the wanted dtype. Whoever calls such a kernel
keeps the memory alive and has checked the bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_READ = 0
_KEEP = 3
_DATA = 1


@intrinsic
def pointer_to(typing_context, address, like):  # type: ignore[no-untyped-def]
    """Return ``address`` (uint64) as a pointer to elements of ``like``'s dtype."""
    del typing_context
    pointer = types.CPointer(like.dtype)  # type: ignore[attr-defined]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return pointer(address, like), generate


@intrinsic
def prefetch(typing_context, address):  # type: ignore[no-untyped-def]
    """Ask for the cache line at ``address`` (uint64) without waiting for it; any address is allowed."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte_pointer = ir.IntType(8).as_pointer()
        flag = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        pointer = builder.inttoptr(arguments[0], byte_pointer)
        builder.call(function, [pointer, flag(_READ), flag(_KEEP), flag(_DATA)])
        return context.get_dummy_value()

    return types.void(address), generate
