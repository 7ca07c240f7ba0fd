"""Loads, stores and prefetches at an address: what a kernel over memory-mapped shards is made of.

    load(address, place, like)             element ``place`` of an array that starts at ``address``
    store(address, place, value, like)     the same, written; the value is cast
    copy_eight(start, to, source, target)  eight elements, cast, in vector registers
    prefetch(address)                      ask for a cache line; any address is harmless

``like`` is an array whose dtype is meant. As intrinsics these cost no compilation of their
own, and LLVM sees plain pointer arithmetic, from which it makes vector code. Who calls them
keeps the memory alive and has checked the bounds.
"""

from __future__ import annotations

from typing import Any

from headrace.kernels.compile import intrinsic
from headrace.kernels.native.later import ir, types

_READ, _SECOND_CACHE, _DATA = 0, 2, 1
_EIGHT = 8


def _pointer(context: Any, builder: Any, address: Any, place: Any, place_type: Any, dtype: Any) -> Any:
    """Build the pointer to element ``place`` behind an address."""
    base = builder.inttoptr(address, context.get_data_type(dtype).as_pointer())
    return builder.gep(base, [context.cast(builder, place, place_type, types.int64)])


@intrinsic
def load(typing_context, address, place, like):  # type: ignore[no-untyped-def]
    """Return element ``place`` of the array of ``like``'s dtype at ``address`` (uint64)."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, arguments[0], arguments[1], signature.args[1], like.dtype)
        return context.unpack_value(builder, like.dtype, pointer)

    return like.dtype(types.uint64, place, like), generate


@intrinsic
def store(typing_context, address, place, value, like):  # type: ignore[no-untyped-def]
    """Write ``value`` as element ``place`` of the array of ``like``'s dtype at ``address`` (uint64)."""
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, arguments[0], arguments[1], signature.args[1], like.dtype)
        cast = context.cast(builder, arguments[2], signature.args[2], like.dtype)
        context.pack_value(builder, like.dtype, cast, pointer)
        return context.get_dummy_value()

    return types.void(types.uint64, place, value, like), generate


@intrinsic
def prefetch(typing_context, address):  # type: ignore[no-untyped-def]
    """Ask for the cache line at ``address`` (uint64), into the second cache: the first can wait for few.

    Lists come a fifth faster so than where they are asked for into the first.
    """
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        hint = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [pointer, hint, hint, hint])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], function_type)
        hints = [ir.Constant(hint, value) for value in (_READ, _SECOND_CACHE, _DATA)]
        builder.call(function, [builder.inttoptr(arguments[0], pointer), *hints])
        return context.get_dummy_value()

    return types.void(types.uint64), generate


@intrinsic
def copy_eight(typing_context, start, to, source, target):  # type: ignore[no-untyped-def]
    """Copy eight elements from ``start`` to ``to``, of ``source``'s dtype to ``target``'s.

    LLVM makes no vector code of a loop over eight; that of a longer one ends in a loop over the rest,
    whose length no processor can guess. Both are floats of one dtype, or unsigned ids and integers.

    Returns:
        The union of what the target might not hold, as int64; 0 where it holds every value of the source.
    """
    del typing_context

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        of, into = context.get_data_type(source.dtype), context.get_data_type(target.dtype)
        taken, given = ir.VectorType(of, _EIGHT), ir.VectorType(into, _EIGHT)
        values = builder.load(builder.inttoptr(arguments[0], taken.as_pointer()), align=1)
        into_place = builder.inttoptr(arguments[1], given.as_pointer())
        if of == into and source.dtype == target.dtype:
            builder.store(values, into_place, align=1)
            return context.get_constant(types.int64, 0)
        narrows = of.width > into.width
        cast = builder.trunc if narrows else builder.zext
        builder.store(values if of == into else cast(values, given), into_place, align=1)
        if of.width < into.width:
            return context.get_constant(types.int64, 0)
        name = f"llvm.vector.reduce.or.v{_EIGHT}i{of.width}"
        union = builder.module.declare_intrinsic(name, [], ir.FunctionType(of, [taken]))
        return context.cast(builder, builder.call(union, [values]), source.dtype, types.int64)

    return types.int64(types.uint64, types.uint64, source, target), generate
