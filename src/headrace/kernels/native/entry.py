"""The part of a kernel's machine code that CPython calls: arguments in, result out.

    PyObject *headrace_entry(PyObject *self, PyObject **arguments, Py_ssize_t count)

It looks whether every argument is of the type that the kernel was compiled for and returns
``NotImplemented`` where one is not; lets go of the GIL, but for a brief call; calls the kernel; takes
the GIL; and makes Python objects of the result. Arrays are read where NumPy keeps what describes them
(``PyArrayObject`` of ``numpy/ndarraytypes.h``), numbers of NumPy behind the two words of every Python
object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.np.arrayobj import make_array, populate_array

from headrace.kernels.native.link import ENTRY, HEAD_BYTES
from headrace.kernels.native.signature import ArrayType, NumberType, Signature

_BYTE, _INT, _WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_POINTER = _BYTE.as_pointer()
_OBJECT = ir.LiteralStructType([_WORD, _POINTER])
_ARRAY = ir.LiteralStructType([_WORD, _POINTER, _POINTER, _INT, _POINTER, _POINTER, _POINTER, _POINTER, _INT])
"""References, type, data, ndim, shape, strides, base, dtype, flags."""
_TYPE, _DATA, _NDIM, _SHAPE, _STRIDES, _DTYPE, _FLAGS = 1, 2, 3, 4, 5, 7, 8
MOST_ELEMENTS_OF_BRIEF = 4096
"""In the arrays that a brief kernel is given: with more it lets go of the GIL."""
_C, _F, _ALIGNED, _WRITABLE = 0x1, 0x2, 0x100, 0x400


class EntryWriter:
    """Writes the entry of one kernel into an LLVM module.

    Args:
        module: Where the entry goes.
        context: Numba's target context.
        descriptor: Numba's descriptor of the compiled kernel.
        result: Numba's type of what the kernel returns.
        brief: A call whose arrays have few elements keeps the GIL.
    """

    def __init__(self, module: Any, context: Any, descriptor: Any, result: Any, brief: bool) -> None:
        self.module, self.context, self.descriptor, self.result = module, context, descriptor, result
        self.brief = brief
        function_type = ir.FunctionType(_POINTER, [_POINTER, _POINTER.as_pointer(), _WORD])
        self.function = ir.Function(module, function_type, ENTRY)
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.mismatch = self.function.append_basic_block("mismatch")

    def write(self, signature: Signature) -> None:
        """Write the whole function for arguments of the given types."""
        _, arguments, count = self.function.args
        self._require(self._equal(count, _WORD(len(signature))))
        values = [
            self._argument(self.builder.load(self.builder.gep(arguments, [_WORD(place)])), kind)
            for place, kind in enumerate(signature)
        ]
        self.builder.ret(self._call(values))
        self.builder.position_at_end(self.mismatch)
        self.builder.ret(self._new_reference("headrace_not_implemented"))

    # Arguments

    def _argument(self, given: Any, kind: ArrayType | NumberType) -> Any:
        return self._array(given, kind) if isinstance(kind, ArrayType) else self._number(given, kind)

    def _array(self, given: Any, kind: ArrayType) -> Any:
        """Check an array and return it as Numba's structure."""
        builder = self.builder
        self._require(self._equal(self._type_of(given), self._object("headrace_array_type")))
        self._require(self._equal(self._field(given, _DTYPE), self._object(f"headrace_dtype_{kind.dtype}")))
        self._require(self._equal(self._field(given, _NDIM), _INT(kind.ndim)))
        mask, wanted = _flags(kind)
        self._require(self._equal(builder.and_(self._field(given, _FLAGS), _INT(mask)), _INT(wanted)))
        numba_type = numba_type_of(kind)
        array = make_array(numba_type)(self.context, builder)
        itemsize = self.context.get_constant(types.intp, np.dtype(kind.dtype).itemsize)
        populate_array(
            array,
            data=builder.bitcast(self._field(given, _DATA), array.data.type),
            shape=self._words(self._field(given, _SHAPE), kind.ndim),
            strides=self._words(self._field(given, _STRIDES), kind.ndim),
            itemsize=itemsize,
            meminfo=None,
        )
        return array._getvalue()

    def _words(self, pointer: Any, count: int) -> list[Any]:
        words = self.builder.bitcast(pointer, _WORD.as_pointer())
        return [self.builder.load(self.builder.gep(words, [_WORD(place)])) for place in range(count)]

    def _number(self, given: Any, kind: NumberType) -> Any:
        """Check a number of NumPy or Python and return its value."""
        numba_type = numba_type_of(kind)
        stored = self.context.get_data_type(numba_type).as_pointer()
        behind = self.builder.bitcast(self.builder.gep(given, [_WORD(HEAD_BYTES)]), stored)
        found = self._type_of(given)
        of_numpy = self._equal(found, self._object(f"headrace_type_{kind.dtype}"))
        if kind.dtype not in _OF_PYTHON:
            self._require(of_numpy)
            return self.context.unpack_value(self.builder, numba_type, behind)
        return self._of_either(given, kind, of_numpy, behind)

    def _of_either(self, given: Any, kind: NumberType, of_numpy: Any, behind: Any) -> Any:
        builder, python_name = self.builder, _OF_PYTHON[kind.dtype]
        slot = cgutils.alloca_once(builder, behind.type.pointee)
        with builder.if_else(of_numpy) as (then, otherwise):
            with then:
                builder.store(builder.load(behind), slot)
            with otherwise:
                self._require(self._equal(self._type_of(given), self._object(f"headrace_{python_name}_type")))
                read = {"int": self._python_int, "float": self._python_float, "bool": self._python_bool}
                builder.store(read[python_name](given, behind.type.pointee), slot)
        return self.context.unpack_value(builder, numba_type_of(kind), slot)

    def _python_int(self, given: Any, stored: Any) -> Any:
        del stored  # int64: what is beyond it was made a uint64 before
        overflow = cgutils.alloca_once(self.builder, _INT)
        value = self._python("PyLong_AsLongLongAndOverflow", _WORD, [given, overflow])
        self._require(self._equal(self.builder.load(overflow), _INT(0)))
        return value

    def _python_float(self, given: Any, stored: Any) -> Any:
        del stored
        return self._python("PyFloat_AsDouble", ir.DoubleType(), [given])

    def _python_bool(self, given: Any, stored: Any) -> Any:
        return self.builder.zext(self._equal(given, self._object("headrace_true")), stored)

    # The call

    def _call(self, values: list[Any]) -> Any:
        """Call the kernel, without the GIL unless it is brief; return a new reference to its result."""
        builder, call = self.builder, self.context.call_conv
        callee = self.context.declare_function(self.module, self.descriptor)
        lets_go = self._is_long(values) if self.brief else ir.IntType(1)(1)
        state = cgutils.alloca_once(builder, _POINTER)
        with builder.if_then(lets_go):
            builder.store(self._python("PyEval_SaveThread", _POINTER, []), state)
        status, result = call.call_function(builder, callee, self.result, self.descriptor.argtypes, values)
        with builder.if_then(lets_go):
            self._python("PyEval_RestoreThread", ir.VoidType(), [builder.load(state)])
        with builder.if_then(status.is_error, likely=False):
            text = self.context.insert_const_string(
                self.module, f"{self.descriptor.qualname}: an array that it needs could not be allocated"
            )
            error = self._object("headrace_memory_error")
            self._python("PyErr_SetString", ir.VoidType(), [error, text])
            builder.ret(_POINTER(None))
        return self._result(self.result, result)

    def _is_long(self, values: list[Any]) -> Any:
        """Build whether the arrays among the arguments have many elements in all."""
        builder, total = self.builder, _WORD(0)
        for value, kind in zip(values, self.descriptor.argtypes, strict=True):
            if isinstance(kind, types.Array):
                items = make_array(kind)(self.context, builder, value).nitems
                total = builder.add(total, items)
        return builder.icmp_signed(">", total, _WORD(MOST_ELEMENTS_OF_BRIEF))

    # The result

    def _result(self, kind: Any, value: Any) -> Any:
        """Return a new reference to a Python object."""
        if kind == types.none:
            return self._new_reference("headrace_none")
        makers: list[tuple[Any, Callable[[Any, Any], Any]]] = [
            (types.Boolean, self._bool_object),
            (types.Integer, self._int_object),
            (types.Float, self._float_object),
            (types.BaseTuple, self._tuple_object),  # type: ignore[attr-defined]
            (types.Array, self._array_object),
        ]
        for numba_type, make in makers:
            if isinstance(kind, numba_type):
                return make(kind, value)
        raise TypeError(f"{self.descriptor.qualname} returns {kind}; kernels return numbers and arrays.")

    def _bool_object(self, kind: Any, value: Any) -> Any:
        return self._python("PyBool_FromLong", _POINTER, [self.builder.zext(value, _WORD)])

    def _int_object(self, kind: Any, value: Any) -> Any:
        wide = self.context.cast(self.builder, value, kind, types.int64 if kind.signed else types.uint64)
        make = "PyLong_FromLongLong" if kind.signed else "PyLong_FromUnsignedLongLong"
        return self._python(make, _POINTER, [wide])

    def _float_object(self, kind: Any, value: Any) -> Any:
        wide = self.context.cast(self.builder, value, kind, types.float64)
        return self._python("PyFloat_FromDouble", _POINTER, [wide])

    def _tuple_object(self, kind: Any, value: Any) -> Any:
        members = cgutils.unpack_tuple(self.builder, value, len(kind))
        made = self._python("PyTuple_New", _POINTER, [_WORD(len(kind))])
        for place, (of, member) in enumerate(zip(kind.types, members, strict=True)):
            self._python("PyTuple_SetItem", _INT, [made, _WORD(place), self._result(of, member)])
        return made

    def _array_object(self, kind: Any, value: Any) -> Any:
        """Make an array over memory that the kernel allocated; a capsule frees it with the array."""
        builder, array = self.builder, make_array(kind)(self.context, self.builder, value=value)
        dtype = np.dtype(str(kind.dtype))
        made = self._python(
            "headrace_array_new",
            _POINTER,
            [
                self._object("headrace_array_type"),
                _INT(kind.ndim),
                self._spilled(array.shape, kind.ndim),
                _INT(dtype.num),
                self._spilled(array.strides, kind.ndim),
                builder.bitcast(array.data, _POINTER),
                _INT(0),
                _INT(_ALIGNED | _WRITABLE),
                _POINTER(None),
            ],
        )
        owner = [array.meminfo, _POINTER(None), self._object("headrace_free")]
        capsule = self._python("PyCapsule_New", _POINTER, owner)
        self._python("headrace_array_set_base", _INT, [made, capsule])
        return made

    def _spilled(self, values: Any, count: int) -> Any:
        """Return a pointer to the words of a shape or of strides."""
        words = cgutils.alloca_once(self.builder, _WORD, size=_WORD(max(count, 1)))
        for place, value in enumerate(cgutils.unpack_tuple(self.builder, values, count)):
            self.builder.store(value, self.builder.gep(words, [_WORD(place)]))
        return words

    # Python objects

    def _type_of(self, given: Any) -> Any:
        return self._member(given, _OBJECT, _TYPE)

    def _field(self, given: Any, place: int) -> Any:
        return self._member(given, _ARRAY, place)

    def _member(self, given: Any, struct: Any, place: int) -> Any:
        pointer = self.builder.bitcast(given, struct.as_pointer())
        return self.builder.load(self.builder.gep(pointer, [_INT(0), _INT(place)]))

    def _object(self, name: str) -> Any:
        """Return the Python object that the linker knows by a name."""
        known = self.module.globals.get(name)
        return known if known is not None else ir.GlobalVariable(self.module, _BYTE, name)

    def _new_reference(self, name: str) -> Any:
        self._python("Py_IncRef", ir.VoidType(), [self._object(name)])
        return self._object(name)

    def _python(self, name: str, returns: Any, arguments: list[Any]) -> Any:
        """Call a function of CPython or NumPy."""
        function_type = ir.FunctionType(returns, [one.type for one in arguments])
        return self.builder.call(cgutils.get_or_insert_function(self.module, function_type, name), arguments)

    def _equal(self, left: Any, right: Any) -> Any:
        return self.builder.icmp_unsigned("==", left, right)

    def _require(self, condition: Any) -> None:
        """Go on where a condition holds; else return ``NotImplemented``."""
        following = self.builder.append_basic_block()
        self.builder.cbranch(condition, following, self.mismatch)
        self.builder.position_at_end(following)


_OF_PYTHON = {"int64": "int", "float64": "float", "bool": "bool"}
"""Types of NumPy that a number of Python is taken for."""


def _flags(kind: ArrayType) -> tuple[int, int]:
    """Return which bits of an array's flags matter, and what they must be."""
    layout_mask, layout = {"C": (_C, _C), "F": (_C | _F, _F), "A": (_C | _F, 0)}[kind.layout]
    wanted = layout | (_WRITABLE if kind.writable else 0) | (_ALIGNED if kind.aligned else 0)
    return layout_mask | _WRITABLE | _ALIGNED, wanted


def numba_type_of(kind: ArrayType | NumberType) -> Any:
    """Return Numba's type for an argument."""
    from numba import from_dtype

    of = from_dtype(np.dtype(kind.dtype))
    if isinstance(kind, NumberType):
        return of
    return types.Array(of, kind.ndim, kind.layout, readonly=not kind.writable, aligned=kind.aligned)
