"""Memory for arrays that kernels allocate: the few functions of Numba's runtime that they call.

Numba's code for ``np.empty`` calls ``NRT_MemInfo_alloc_aligned``, counts the references to what it
gets, and calls ``NRT_MemInfo_call_dtor`` when none is left. The layout of the block is Numba's
(``numba/core/runtime/nrt.cpp``):

    references, destructor, its argument, data, size, allocator       6 words, then the data

``headrace_free`` is the destructor of the capsule that owns the memory of an array that a
kernel returned.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

_INT, _WORD, _VOID = ir.IntType(32), ir.IntType(64), ir.VoidType()
_POINTER = ir.IntType(8).as_pointer()
_BYTES = 6 * 8
"""Of a block before its data."""
_ALIGNMENT = 16


def runtime_module() -> ir.Module:
    """Write the functions as an LLVM module."""
    module = ir.Module("headrace_runtime")
    malloc = _declare(module, "malloc", _POINTER, [_WORD])
    free = _declare(module, "free", _VOID, [_POINTER])
    _define_allocations(module, malloc)
    for name in ("NRT_Free", "NRT_MemInfo_call_dtor"):
        builder, (memory,) = _define(module, name, _VOID, [_POINTER])
        builder.call(free, [memory])
        builder.ret_void()
    _define_free(module, free)
    return module


def _declare(module: ir.Module, name: str, returns: Any, takes: list[Any]) -> ir.Function:
    return ir.Function(module, ir.FunctionType(returns, takes), name)


def _define(module: ir.Module, name: str, returns: Any, takes: list[Any]) -> tuple[ir.IRBuilder, Any]:
    function = _declare(module, name, returns, takes)
    return ir.IRBuilder(function.append_basic_block("entry")), function.args


def _define_allocations(module: ir.Module, malloc: ir.Function) -> None:
    builder, (size,) = _define(module, "NRT_Allocate", _POINTER, [_WORD])
    builder.ret(builder.call(malloc, [size]))
    builder, (size, alignment) = _define(module, "NRT_MemInfo_alloc_aligned", _POINTER, [_WORD, _INT])
    aligned = builder.function
    _write_allocation(builder, malloc, size, builder.zext(alignment, _WORD))
    builder, (size,) = _define(module, "NRT_MemInfo_alloc", _POINTER, [_WORD])
    builder.ret(builder.call(aligned, [size, _INT(_ALIGNMENT)]))


def _write_allocation(builder: ir.IRBuilder, malloc: ir.Function, size: Any, alignment: Any) -> None:
    """Allocate a block and return it; null where there is no memory for it."""
    total = builder.add(size, builder.add(alignment, _WORD(_BYTES)))
    with builder.if_then(builder.icmp_unsigned("<", total, size)):
        builder.ret(_POINTER(None))
    block = builder.call(malloc, [total])
    with builder.if_then(builder.icmp_unsigned("==", block, _POINTER(None))):
        builder.ret(_POINTER(None))
    words = builder.bitcast(block, _WORD.as_pointer())
    end = builder.add(builder.add(builder.ptrtoint(block, _WORD), _WORD(_BYTES)), alignment)
    data = builder.sub(end, builder.urem(end, alignment))
    for place, value in enumerate([_WORD(1), _WORD(0), _WORD(0), data, size, _WORD(0)]):
        builder.store(value, builder.gep(words, [_WORD(place)]))
    builder.ret(block)


def _define_free(module: ir.Module, free: ir.Function) -> None:
    """Give back one reference of a block, and the block with the last one."""
    pointer_of = _declare(module, "PyCapsule_GetPointer", _POINTER, [_POINTER, _POINTER])
    builder, (capsule,) = _define(module, "headrace_free", _VOID, [_POINTER])
    block = builder.call(pointer_of, [capsule, _POINTER(None)])
    references = builder.bitcast(block, _WORD.as_pointer())
    before = builder.atomic_rmw("sub", references, _WORD(1), ordering="acq_rel")
    with builder.if_then(builder.icmp_unsigned("==", before, _WORD(1))):
        builder.call(free, [block])
    builder.ret_void()
