"""Arrays at addresses: one kernel reads many shards, as fast as one.

A store's values lie in several files. Instead of joining them, a kernel takes a
table of addresses (uint64 [K], one for each shard) and reads through

    values = array_at(address, (size,), like)

where ``like`` is any array of the wanted dtype. Whoever calls such a kernel
keeps the memory alive and has checked the bounds.
"""

from __future__ import annotations

from typing import Any

from headrace.kernels.compile import intrinsic
from headrace.kernels.native.later import arrayobj, types


@intrinsic
def array_at(typing_context, address, shape, like):  # type: ignore[no-untyped-def]
    """Return the contiguous array of a shape and of ``like``'s dtype that starts at ``address`` (uint64)."""
    del typing_context
    array_type = types.Array(like.dtype, len(shape), "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = arrayobj.make_array(array_type)(context, builder)
        data = builder.inttoptr(arguments[0], array.data.type)
        lengths = [
            context.cast(builder, builder.extract_value(arguments[1], axis), of, types.intp)
            for axis, of in enumerate(signature.args[1])
        ]
        itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(like.dtype)))
        strides = [itemsize]
        for length in lengths[:0:-1]:
            strides.insert(0, builder.mul(strides[0], length))
        arrayobj.populate_array(
            array, data=data, shape=lengths, strides=strides, itemsize=itemsize, meminfo=None
        )
        return array._getvalue()

    return array_type(address, shape, like), generate
