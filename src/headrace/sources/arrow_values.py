"""Any Arrow array as one of the few types that a batch holds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headrace.errors import SourceError
from headrace.sources.batch import Column
from headrace.sources.values import as_text, elements_of, floats_as_text, with_elements

_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}
_INT64_MAX = (1 << 63) - 1
_SEVERAL = 2
_MILLISECONDS_A_DAY = 86_400_000


class Converter:
    """Turns the arrays of one column of one file into what a batch holds; notes rows that cannot be.

    Args:
        column: What is wanted.
        where: The file, for messages.
    """

    def __init__(self, column: Column, where: str) -> None:
        self.column = column
        self.where = where
        self.number = column.kind in ("number", "numbers")

    def convert(self, array: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        """Return the converted array, and row -> reason for rows whose value cannot be held.

        Raises:
            SourceError: The column's type does not fit its kind.
        """
        array = plain(array)
        kind = array.type
        if self.column.kind in ("text", "number"):
            return self._scalars(array)
        if self.column.kind == "pairs" and pa.types.is_struct(kind):
            return self._fields_as_pairs(array)
        if _is_text(kind) or pa.types.is_null(kind):
            return self._scalars(array, as_written=True)
        if not pa.types.is_list(array.type):
            raise self._misfit(kind, "a list")
        return self._lists(array)

    def _lists(self, array: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        values = elements_of(array)
        converted, bad = self._pairs(values) if self.column.kind == "pairs" else self._scalars(plain(values))
        offsets = array.offsets.to_numpy()
        rows = {
            int(np.searchsorted(offsets - offsets[0], i, side="right")) - 1: why for i, why in bad.items()
        }
        return with_elements(array, converted), rows

    def _pairs(self, values: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        if not pa.types.is_struct(values.type) or values.type.num_fields != 2:
            raise self._misfit(values.type, "a map, or a list of structs of key and value")
        keys, bad = Converter(Column(self.column.path, "text"), self.where).convert(values.field(0))
        weights, more = Converter(Column(self.column.path, "number"), self.where).convert(values.field(1))
        keys = keys if pa.types.is_string(keys.type) else keys.cast(pa.string())
        return pa.StructArray.from_arrays([keys, weights], names=["key", "value"]), bad | more

    def _scalars(self, array: pa.Array, as_written: bool = False) -> tuple[pa.Array, dict[int, str]]:
        kind = array.type
        number = self.number and not as_written
        if pa.types.is_null(kind):
            return pa.nulls(len(array), pa.string()), {}
        if pa.types.is_unsigned_integer(kind):
            return array.cast(pa.uint64() if kind.bit_width == 64 else pa.int64()), {}
        if pa.types.is_integer(kind):
            return array.cast(pa.int64()), {}
        if pa.types.is_floating(kind):
            return (pc.add(array.cast(pa.float64()), 0.0) if number else floats_as_text(array)), {}
        if _is_text(kind):
            return _checked_text(array)
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return _as_microseconds(array) if number else _iso(array)
        if pa.types.is_duration(kind):
            return array.cast(pa.int64()), {}
        if pa.types.is_boolean(kind) or pa.types.is_decimal(kind) or pa.types.is_time(kind):
            return array.cast(pa.string()), {}
        raise self._misfit(kind, "one value a row")

    def _fields_as_pairs(self, array: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        """Return a struct's fields that are not null as (field name, value): JSON objects of other tools."""
        as_number = Converter(Column(self.column.path, "number"), self.where)
        converted = [as_number.convert(field) for field in array.flatten()]
        bad = {row: why for _, reasons in converted for row, why in reasons.items()}
        columns = _of_one_type([values for values, _ in converted])
        names = [field.name for field in array.type]
        rows = [
            [(name, value) for name, value in zip(names, row, strict=True) if value is not None]
            if there
            else None
            for there, *row in zip(
                array.is_valid().to_pylist(), *(one.to_pylist() for one in columns), strict=True
            )
        ]
        kind = columns[0].type if columns else pa.float64()
        return pa.array(rows, pa.list_(pa.struct([("key", pa.string()), ("value", kind)]))), bad

    def _misfit(self, found: pa.DataType, expected: str) -> SourceError:
        return SourceError(
            f"{self.where}: column '{self.column.path}' has the Arrow type {found}, "
            f"expected {expected}, as kind '{self.column.kind}' needs. "
            "Declare the feature with the kind that the data has, or convert the column first."
        )


def plain(array: pa.Array) -> pa.Array:
    """Return the array without dictionaries, run ends, extensions, views and 64-bit list offsets."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return plain(array.storage)
    if pa.types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(array))
    if pa.types.is_map(kind):
        return plain(array.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))))
    if _is_list_view(kind):
        return plain(_without_views(array))
    if pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return plain(array.cast(pa.list_(kind.value_type)))
    return array


def _without_views(array: pa.Array) -> pa.Array:
    """Return a list view as lists; Arrow 26's own cast gives it fewer offsets than it has lists."""
    lengths = pc.fill_null(array.value_lengths(), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return pa.LargeListArray.from_arrays(pa.array(offsets), array.flatten(), mask=array.is_null())


def _is_list_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    )


def _checked_text(array: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    if pa.types.is_fixed_size_binary(array.type) or pa.types.is_binary_view(array.type):
        array = array.cast(pa.binary())
    try:
        text = array.cast(pa.string())
        text.validate(full=True)
    except pa.ArrowInvalid:
        return _salvaged_text(array.cast(pa.binary()))
    return text, {}


def _salvaged_text(array: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    texts: list[str | None] = []
    bad: dict[int, str] = {}
    for row, value in enumerate(array.to_pylist()):
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            texts.append(None)
            bad[row] = "not valid UTF-8"
    return pa.array(texts, pa.string()), bad


def _as_microseconds(array: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    """Return timestamps in microseconds, finer parts cut off towards the past."""
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("s" if pa.types.is_date32(array.type) else "ms"))
    zone = "UTC" if array.type.tz else None
    ticks = array.cast(pa.int64())
    if array.type.unit == "ns":
        micros = _floor_divided(ticks)
        return micros.cast(pa.timestamp("us", zone)), {}
    factor = _MICROSECONDS[array.type.unit]
    values = ticks.fill_null(0).to_numpy()
    beyond = np.abs(values.astype(np.float64)) > _INT64_MAX // factor
    bad = {int(row): "a time beyond what microseconds in 64 bits can hold" for row in np.flatnonzero(beyond)}
    micros = pa.array(np.where(beyond, 0, values) * factor, pa.int64(), mask=_null_mask(ticks))
    return micros.cast(pa.timestamp("us", zone)), bad


def _floor_divided(ticks: pa.Array) -> pa.Array:
    return pa.array(ticks.fill_null(0).to_numpy() // 1000, pa.int64(), mask=_null_mask(ticks))


def _null_mask(array: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(pc.is_null(array))


def _iso(array: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    """Return ISO 8601 text: ``2025-06-01`` or ``2025-06-01T08:00:00.123``, with ``Z`` for instants."""
    if pa.types.is_date(array.type):
        text = _without_time_of_day(array).cast(pa.string())
    else:
        text = array.cast(pa.timestamp(array.type.unit)).cast(pa.string())
    beyond = np.flatnonzero(pc.starts_with(text, "<").fill_null(False).to_numpy(zero_copy_only=False))
    text = pc.replace_substring(text, " ", "T")
    if pa.types.is_timestamp(array.type) and array.type.tz:
        text = pc.binary_join_element_wise(text, "Z", "")
    return text, {int(row): "a time beyond what its text can hold" for row in beyond}


def _without_time_of_day(array: pa.Array) -> pa.Array:
    """Return dates of days; milliseconds are cut off towards the past, and too far ones are the farthest."""
    if pa.types.is_date32(array.type):
        return array
    days = array.cast(pa.int64()).fill_null(0).to_numpy() // _MILLISECONDS_A_DAY
    inside = np.clip(days, -(1 << 31), (1 << 31) - 1).astype(np.int32)
    return pa.array(inside, pa.int32(), mask=_null_mask(array)).cast(pa.date32())


def _of_one_type(arrays: list[pa.Array]) -> list[pa.Array]:
    """Return arrays of numbers as they are where they have one type, else as text."""
    return (
        arrays if len({array.type for array in arrays}) < _SEVERAL else [as_text(array) for array in arrays]
    )
