"""Raw values as numbers, exact, with a fault for each row that is none."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headrace.arrays import ALL_VALID, Texts, numbers_of, texts_of, validity
from headrace.errors import SourceError
from headrace.kernels import fields
from headrace.parse.faults import Faults, shown
from headrace.parse.lists import as_strings

LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
_FIRST_BEYOND_FLOAT32 = (2 - 2.0**-24) * 2.0**127
"""The smallest number that rounds to infinity: half a step beyond the largest."""
Dtype = Literal["int", "float"]
Nan = Literal["bad", "missing"]


def read_numbers(
    array: pa.Array, name: str, dtype: Dtype, nan: Nan
) -> tuple[NDArray[np.float64], NDArray[np.bool_], Faults]:
    """Read a scalar column as numbers.

    Args:
        array: string, integers or double, as ``sources`` deliver a "number" or "text" column.
        name: The column, for the reasons.
        dtype: With ``"int"`` a number with a fraction is a fault.
        nan: Whether NaN and infinity are faults or missing.

    Returns:
        ``(values float64 [n], valid bool [n], faults)``; invalid rows hold 0.
    """
    values, present, faults = _values(array, name, dtype)
    finite = np.isfinite(values)
    if not finite.all():
        strange = np.flatnonzero(~finite & present)
        if nan == "bad":
            faults.add(
                strange, lambda row: f"{name} is {shown(array[row].as_py())}, expected a finite number"
            )
        present &= finite
        values[~finite] = 0.0
    if dtype == "int":
        broken = np.flatnonzero(present & (values != np.floor(values)))
        faults.add(broken, lambda row: f"{name} is {shown(array[row].as_py())}, expected an integer")
        present[broken] = False
        values[broken] = 0.0
    return values, present, faults


def _values(
    array: pa.Array, name: str, dtype: Dtype
) -> tuple[NDArray[np.float64], NDArray[np.bool_], Faults]:
    present = np.ones(len(array), bool)
    valid = validity(array)
    if len(valid):
        present &= valid
    if pa.types.is_null(array.type):
        return np.zeros(len(array)), np.zeros(len(array), bool), Faults()
    if pa.types.is_temporal(array.type):
        raise SourceError(
            f"{name} holds {array.type} values, expected numbers. "
            'Declare the column with kind = "time" or "categorical", or name another one.'
        )
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        values = numbers_of(array).astype(np.float64)
        values += 0.0  # -0.0 is 0.0, whichever format it stood in
        values[~present] = 0.0
        return values, present, Faults()
    return _from_texts(array, present, name, dtype)


def _from_texts(
    array: pa.Array, present: NDArray[np.bool_], name: str, dtype: Dtype
) -> tuple[NDArray[np.float64], NDArray[np.bool_], Faults]:
    texts = texts_of(array)
    values, kinds, _ = judge(texts)
    faults = Faults()
    wrong = np.flatnonzero(kinds == fields.NO_NUMBER)
    if len(wrong):
        expected = "an integer" if dtype == "int" else "a number"
        faults.add(wrong, lambda row: f"{name} is {shown(array[row].as_py())}, expected {expected}")
        present[wrong] = False
    return values, present, faults


class Judged(NamedTuple):
    """Texts as numbers; see ``headrace.kernels.fields``."""

    values: NDArray[np.float64]
    """float64 [n]; NaN and infinity as such, 0 for what is no number or null; -0.0 is 0.0."""
    kinds: NDArray[np.uint8]
    """uint8 [n]; a null is an INTEGER."""
    integers: NDArray[np.int64]
    """int64 [n], the exact value of an INTEGER; 0 for other kinds."""


def judge(texts: Texts) -> Judged:
    """Read texts as numbers, and say of which kind each is."""
    kinds, integers = np.empty(len(texts), np.uint8), np.empty(len(texts), np.int64)
    fields.number_kinds(texts.data, texts.begins, texts.ends, texts.valid, kinds, integers)
    values = integers.astype(np.float64)
    decimal = np.flatnonzero(kinds == fields.NUMBER)
    if len(decimal):
        values[decimal] = _parsed(texts, decimal)
    for row in np.flatnonzero((kinds == fields.UNUSUAL) | (kinds == fields.NOT_FINITE)):
        values[row] = float(bytes(texts.data[texts.begins[row] : texts.ends[row]]))
    values += 0.0
    return Judged(values, kinds, integers)


def _parsed(texts: Texts, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Let Arrow parse texts that are known to be plain decimal numbers."""
    chosen = as_strings(Texts(texts.data, texts.begins[rows], texts.ends[rows], ALL_VALID))
    parsed: NDArray[np.float64] = pc.cast(chosen, pa.float64()).to_numpy()
    return parsed


def in_float32(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which numbers are finite as a float32, bool [n]; ``3.4028235e38`` rounds to the largest."""
    inside: NDArray[np.bool_] = np.abs(values) < _FIRST_BEYOND_FLOAT32
    return inside


def read_flags(array: pa.Array, name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_], Faults]:
    """Read 0 and 1, or true and false, as numbers; anything else is a fault."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8()).cast(pa.int64())
    values, present, faults = read_numbers(array, name, "float", "bad")
    if len(faults) and (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        array = pc.replace_with_mask(array, _equals(array, "true"), pa.scalar("1", array.type))
        array = pc.replace_with_mask(array, _equals(array, "false"), pa.scalar("0", array.type))
        values, present, faults = read_numbers(array, name, "float", "bad")
    wrong = np.flatnonzero(present & (values != 0) & (values != 1))
    faults.add(wrong, lambda row: f"{name} is {shown(array[row].as_py())}, expected 0 or 1")
    present[wrong] = False
    values[wrong] = 0.0
    return values, present, faults


def _equals(array: pa.Array, word: str) -> pa.Array:
    return pc.fill_null(pc.equal(pc.ascii_lower(array), word), False)
