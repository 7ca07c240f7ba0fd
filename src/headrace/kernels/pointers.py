"""Typed pointers from addresses: one kernel reads many shards, as fast as one.

A store's values lie in several files. Instead of joining them, a kernel takes a
table of addresses (uint64 [K], one for each shard) and reads through

    values = numba.carray(pointer_to(address, like), (size,))

where ``like`` is any array of the wanted dtype. Whoever calls such a kernel
keeps the memory alive and has checked the bounds.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic


@intrinsic
def pointer_to(typing_context, address, like):  # type: ignore[no-untyped-def]
    """Return ``address`` (uint64) as a pointer to elements of ``like``'s dtype."""
    del typing_context
    pointer = types.CPointer(like.dtype)  # type: ignore[attr-defined]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return pointer(address, like), generate
