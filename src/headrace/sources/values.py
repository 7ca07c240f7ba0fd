"""The one text of a number, and columns of several pieces brought to one type.

An id's text never depends on how a library chose to hold it: an integer is its
decimal, an integral float its integer, another float the shortest text that
round-trips, as Python's ``repr`` gives it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

EXACT_FLOAT = float(1 << 53)
"""Below this every integer is a float64 of its own."""
_SAME_TEXT_FROM = 1e-4
_SAME_TEXT_UNTIL = 1e10


def float_text(value: float) -> str:
    """Return the text of a float: ``1001.0`` is ``"1001"``, ``1e-07`` stays, ``nan`` is ``"nan"``."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(value)


def number_text(literal: str) -> str:
    """Return the text of a JSON number literal: ``1e3`` and ``1000.0`` are ``"1000"``, ``-0`` is ``"0"``.

    Raises:
        OverflowError: It is beyond float64.
    """
    digits = literal.removeprefix("-")
    if digits.isdecimal():
        return "0" if literal == "-0" else literal
    value = float(literal)
    if math.isinf(value):
        raise OverflowError(literal)
    return float_text(value)


def floats_as_text(array: pa.Array) -> pa.Array:
    """Return the id text of a float array, nulls kept; float32 has its own shortest text.

    Arrow's own cast writes the same text where no exponent is needed; the others go one by one.
    """
    if not pa.types.is_float64(array.type):
        return pa.array([_narrow_text(value) for value in array], pa.string())
    size = pc.abs(array)
    plain = pc.and_(pc.less(size, _SAME_TEXT_UNTIL), pc.greater_equal(size, _SAME_TEXT_FROM))
    zero = pc.equal(array, 0.0)
    text = pc.if_else(zero, "0", array.cast(pa.string()))
    rest = np.flatnonzero(~pc.fill_null(pc.or_(plain, zero), True).to_numpy(zero_copy_only=False))
    return _replaced(text, rest, [float_text(array[int(i)].as_py()) for i in rest])


def _narrow_text(scalar: pa.Scalar) -> str | None:
    """Return the text of a float16 or float32: the shortest that gives it back in its own width."""
    if not scalar.is_valid:
        return None
    narrow = np.float16 if pa.types.is_float16(scalar.type) else np.float32
    number = float(scalar.as_py())
    return float_text(number) if not number % 1 else float_text(float(str(narrow(number))))


def _replaced(text: pa.Array, places: np.ndarray[Any, Any], values: list[str]) -> pa.Array:
    if not places.size:
        return text
    mask = np.zeros(len(text), np.bool_)
    mask[places] = True
    return pc.replace_with_mask(text, pa.array(mask), pa.array(values, pa.string()))


def as_text(array: pa.Array) -> pa.Array:
    """Return string, list<string> or list<struct<key, value>> with the text of every number."""
    kind = array.type
    if pa.types.is_string(kind):
        return array
    if pa.types.is_list(kind):
        return with_elements(array, as_text(elements_of(array)))
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(
            [as_text(array.field(0)), as_text(array.field(1))], names=["key", "value"]
        )
    return floats_as_text(array) if pa.types.is_floating(kind) else array.cast(pa.string())


def elements_of(array: pa.Array) -> pa.Array:
    """Return the elements of a list array one after another, those under nulls too."""
    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return array.values.slice(first, last - first)


def with_elements(array: pa.Array, elements: pa.Array) -> pa.Array:
    """Return a list array with others in the places of ``elements_of(array)``."""
    offsets = array.offsets.to_numpy()
    mask = pc.is_null(array) if array.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets - offsets[0], pa.int32()), elements, mask=mask)


def joined(pieces: Sequence[pa.Array]) -> pa.Array:
    """Return pieces of one column as one array; as text where their types differ."""
    if len(pieces) == 1:
        return pieces[0]
    if any(piece.type != pieces[0].type for piece in pieces):
        pieces = [as_text(piece) for piece in pieces]
    return pa.concat_arrays(pieces)


def lossless(values: list[Any], wanted: pa.DataType) -> pa.Array | None:
    """Return exact values as an array of a native type, or None where their text would change.

    Args:
        values: Texts, lists of texts, or lists of (key, text) pairs; None is null.
        wanted: string, int64, uint64, double, or a list of one.
    """
    exact = pa.array(values, _text_like(wanted))
    try:
        array = exact.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
        return None
    return array if as_text(array).equals(exact) else None


def _text_like(wanted: pa.DataType) -> pa.DataType:
    if pa.types.is_list(wanted):
        return pa.list_(_text_like(wanted.value_type))
    if pa.types.is_struct(wanted):
        return pa.struct([("key", pa.string()), ("value", pa.string())])
    return pa.string()
