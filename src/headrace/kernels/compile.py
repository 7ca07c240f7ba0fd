"""How every kernel is compiled: run without the GIL where that is worth it, machine code kept on disk.

    @kernel
    def total(values, scale): ...        compiled when it is first called, or loaded

    @brief_kernel
    def permute(positions, key): ...     the same, but keeps the GIL for few elements

    @inline
    def helper(x): ...                   compiled into the kernels that call it

Numba compiles, and is imported for that alone: machine code that an earlier process compiled is
loaded by ``headrace.kernels.native`` in about a millisecond.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from headrace.kernels.native import files, link
from headrace.kernels.native.fingerprint import Compilable, fingerprint
from headrace.kernels.native.signature import Signature, plain, signature_of

Function = TypeVar("Function", bound=Callable[..., Any])
_lock = threading.RLock()

if hasattr(os, "register_at_fork"):
    # A fork waits for a kernel that is being compiled: its child would have this lock, and those of Numba
    # and LLVM, held by a thread that it does not have. So it is the forking thread that holds it.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class Kernel(Compilable):
    """A function that is machine code when it is called.

    A call goes to the code of the last call's types, which looks at its arguments itself; where
    they are of other types, the code for those is found, loaded or compiled.

    Args:
        function: What is compiled: it takes numbers and arrays, returns numbers, arrays and
            tuples of them, and raises nothing.
        inline: LLVM shall always inline it into the kernels that call it.
        counted: References to arrays are counted; without, it must not allocate any.
        brief: It takes time in proportion to its arguments' elements, and keeps the GIL where they are few.
    """

    def __init__(
        self, function: Any, *, inline: bool = False, counted: bool = True, brief: bool = False
    ) -> None:
        super().__init__(function, f"kernel, inline={inline}, counted={counted}, brief={brief}")
        self._inline, self._counted, self._brief = inline, counted, brief
        self._codes: dict[Signature, Callable[..., Any]] = {}
        self._last: Callable[..., Any] = _not_compiled

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code for arguments of these types.

        Raises:
            TypeError: An argument is neither a number nor an array, or there are too few or too many.
            MemoryError: There is no room for an array that the kernel makes.
        """
        result = self._last(*arguments)
        return self._find(arguments) if result is NotImplemented else result

    def _find(self, arguments: tuple[Any, ...]) -> Any:
        """Call with arguments of other types than the last time."""
        arguments = tuple(plain(argument) for argument in arguments)
        signature = signature_of(arguments)
        code = self._codes.get(signature)
        if code is None:
            with _lock:
                code = self._codes.get(signature) or self._load(signature)
                self._codes[signature] = code
        self._last = code
        return code(*arguments)

    def _load(self, signature: Signature) -> Callable[..., Any]:
        """Return the code for some types; what Numba alone makes of the function where that fails."""
        try:
            return link.callable_of(self._code(signature), self.function.__name__)
        except RuntimeError:  # it calls what is not known here, or LLVM does not know this machine
            from headrace.kernels.native.translate import numba_callable

            return cast(Callable[..., Any], numba_callable(self.function))

    def _code(self, signature: Signature) -> bytes:
        """Return the object code for some types: from disk, or compiled and kept there."""
        types = files.digest(", ".join(map(str, signature)))
        name = f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}-{types}"
        code = files.read_code(name, self._fingerprint)
        if code is None:
            from headrace.kernels.native.translate import translate

            code = translate(self.function, signature, counted=self._counted, brief=self._brief)
            files.keep_code(name, self._fingerprint, code)
        return code

    @functools.cached_property
    def _fingerprint(self) -> bytes:
        return fingerprint(self)

    @functools.cached_property
    def _dispatcher(self) -> Any:
        from headrace.kernels.native.translate import dispatcher_of

        return dispatcher_of(self.function, inline=self._inline, counted=self._counted)

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes the kernel for where another one calls it."""
        return self._dispatcher._numba_type_


def _not_compiled(*arguments: Any) -> Any:
    del arguments
    return NotImplemented


class Intrinsic(Compilable):
    """A function that writes LLVM instructions where a kernel calls it; see ``numba.extending.intrinsic``."""

    @functools.cached_property
    def _made(self) -> Any:
        from headrace.kernels.native.translate import intrinsic_of

        return intrinsic_of(self.function)

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes the intrinsic for where a kernel calls it."""
        from headrace.kernels.native.translate import type_of_intrinsic

        return type_of_intrinsic(self._made)


def kernel(function: Function) -> Function:
    """Compile ``function`` on first use, and keep the machine code on disk."""
    return cast(Function, Kernel(function))


def brief_kernel(function: Function) -> Function:
    """Compile like ``kernel``; a call over up to 4,096 elements keeps the GIL.

    To let go of it for some microseconds costs more: a thread that takes it meanwhile makes a whole
    batch before it gives it back.
    """
    return cast(Function, Kernel(function, brief=True))


def inline(function: Function) -> Function:
    """Compile a helper that kernels call, always inlined into its caller by LLVM."""
    return cast(Function, Kernel(function, inline=True))


def bare_kernel(function: Function) -> Function:
    """Compile like ``kernel``, without reference counts: for what allocates no array and returns none."""
    return cast(Function, Kernel(function, counted=False))


def bare_inline(function: Function) -> Function:
    """Compile like ``inline``, without reference counts."""
    return cast(Function, Kernel(function, inline=True, counted=False))


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make an intrinsic of ``function(typing_context, *types)``, without importing Numba for it."""
    return Intrinsic(function, "intrinsic")
