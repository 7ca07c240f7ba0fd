"""One raw column, read as declared: flat arrays, and a fault for each row that is not as declared.

    Ids           uint32 codes
    IdLists       list<uint32 codes>, null where the list is missing
    WeightedIds   list<struct<code: uint32, weight: double>>
    Numbers       double, null where missing; Flags likewise
    Vectors       fixed_size_list<float>[dim]
    Times         int64 microseconds
    TimeLists     list<int64>

A code is a place in the dictionary of the column, ``Codes.values()``; ``NULL_CODE``
is a missing element.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import Texts, primitive, ragged, texts_of, validity, vectors
from headrace.kernels import fields
from headrace.parse import readings
from headrace.parse.codes import Codes
from headrace.parse.faults import Faults, shown
from headrace.parse.lists import as_strings, cut_list, cut_pairs, cut_texts, rows_of
from headrace.parse.numbers import in_float32, judge, read_flags, read_numbers
from headrace.parse.times import read_times

Typed = tuple[pa.Array, Faults]


@singledispatch
def read_column(reading: readings.Reading, array: pa.Array, codes: Codes) -> Typed:
    """Read one raw column as ``reading`` declares.

    Args:
        reading: One of ``headrace.parse.readings``.
        array: The raw column, as ``sources`` deliver it.
        codes: Gives the codes of id texts; not used by other readings.

    Returns:
        ``(array, faults)``; what stands at the row of a fault is unspecified.
    """
    raise TypeError(type(reading))


@read_column.register
def _(reading: readings.Ids, array: pa.Array, codes: Codes) -> Typed:
    return primitive(codes.intern(array)), Faults()


@read_column.register
def _(reading: readings.IdLists, array: pa.Array, codes: Codes) -> Typed:
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        offsets, given = codes.lists(texts_of(array), reading.separator)
        return ragged(offsets, primitive(given), validity(array)), Faults()
    offsets, values, valid = cut_list(array, reading.separator)
    return ragged(offsets, primitive(codes.intern(values)), valid), Faults()


@read_column.register
def _(reading: readings.WeightedIds, array: pa.Array, codes: Codes) -> Typed:
    offsets, values, weights, valid, faults = _pairs(reading, array)
    given = codes.texts(values) if isinstance(values, Texts) else codes.intern(values)
    pairs = pa.StructArray.from_arrays([primitive(given), primitive(weights)], ["code", "weight"])
    return ragged(offsets, pairs, valid), faults


def _pairs(
    reading: readings.WeightedIds, array: pa.Array
) -> tuple[NDArray[np.int64], pa.Array | Texts, NDArray[np.float64], NDArray[np.bool_], Faults]:
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        offsets, elements = cut_texts(texts_of(array), reading.separator)
        values, weight_texts, _ = cut_pairs(elements, reading.pair_separator)
        numbers, kinds, _ = judge(weight_texts)
        wrong = np.flatnonzero((kinds == fields.NO_NUMBER) | ~in_float32(numbers))
        faults = _pair_faults(reading, as_strings(elements), offsets, wrong)
        return offsets, values, numbers, validity(array), faults
    offsets, structs, valid = cut_list(array, reading.separator)
    if pa.types.is_null(structs.type) or len(structs) == 0:
        return offsets, pa.array([], pa.large_string()), np.empty(0), valid, Faults()
    keys, raw = structs.flatten()
    numbers, present, _ = read_numbers(raw, reading.path, "float", "bad")
    faults = _pair_faults(reading, raw, offsets, np.flatnonzero(~present | ~in_float32(numbers)))
    return offsets, keys, numbers, valid, faults


def _pair_faults(
    reading: readings.WeightedIds, elements: pa.Array, offsets: NDArray[np.int64], wrong: NDArray[np.int64]
) -> Faults:
    """Return one fault for each row with a pair that has no finite weight."""
    faults = Faults()
    rows, first = np.unique(rows_of(wrong, offsets), return_index=True)
    for row, place in zip(rows, wrong[first], strict=True):
        found = shown(elements[place].as_py())
        expected = f"a value and a finite weight, as in a{reading.pair_separator}0.5"
        faults.rows.append(int(row))
        faults.reasons.append(f"{reading.path} holds {found}, expected {expected}")
    return faults


@read_column.register
def _(reading: readings.Numbers, array: pa.Array, codes: Codes) -> Typed:
    values, present, faults = read_numbers(array, reading.path, reading.dtype, reading.nan)
    return primitive(values, present), faults


@read_column.register
def _(reading: readings.Flags, array: pa.Array, codes: Codes) -> Typed:
    values, present, faults = read_flags(array, reading.path)
    return primitive(values, present), faults


@read_column.register
def _(reading: readings.Vectors, array: pa.Array, codes: Codes) -> Typed:
    offsets, elements, valid = cut_list(array, reading.separator)
    numbers, present, _ = read_numbers(elements, reading.path, "float", "bad")
    faults = Faults()
    lengths = np.diff(offsets)
    given = valid if len(valid) else np.ones(len(array), bool)
    wrong = given & (lengths != reading.dim)
    faults.add(
        np.flatnonzero(wrong),
        lambda row: f"{reading.path} has {lengths[row]} numbers, expected {reading.dim}",
    )
    broken = rows_of(np.flatnonzero(~present | ~in_float32(numbers)), offsets)
    broken = np.setdiff1d(broken, np.flatnonzero(wrong))
    faults.add(broken, lambda row: f"{reading.path} holds what is no finite float32")
    whole = given & ~wrong
    whole[broken] = False
    values = np.zeros((len(array), reading.dim), np.float32)
    values[whole] = numbers[np.repeat(whole, lengths)].reshape(-1, reading.dim)
    return vectors(values, given), faults


@read_column.register
def _(reading: readings.Times, array: pa.Array, codes: Codes) -> Typed:
    values, present, faults = read_times(array, reading.path, reading.unit, reading.format, reading.timezone)
    return primitive(values, present), faults


@read_column.register
def _(reading: readings.TimeLists, array: pa.Array, codes: Codes) -> Typed:
    offsets, elements, valid = cut_list(array, reading.separator)
    values, present, _ = read_times(elements, reading.path, reading.unit, reading.format, reading.timezone)
    faults = Faults()
    wrong = np.unique(rows_of(np.flatnonzero(~present), offsets))
    faults.add(wrong, lambda row: f"{reading.path} holds what is no time, expected one in {reading.unit}")
    return ragged(offsets, primitive(values), valid), faults
