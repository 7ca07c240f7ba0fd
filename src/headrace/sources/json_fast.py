"""A whole run of JSON lines through Arrow's reader, under guessed types that it may refuse.

What Arrow reads here is exactly what ``json_exact`` reads; whatever Arrow refuses,
or holds in a type that could round it, is told by row so that it is read exactly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from numpy.typing import NDArray

from headrace.kernels.lines import Records, gather_lines
from headrace.sources.batch import Column
from headrace.sources.values import EXACT_FLOAT, elements_of, floats_as_text, with_elements

_ROW = re.compile(r"in row (\d+)")
_SMALLEST_BLOCK = 64


class Refused(Exception):  # noqa: N818 (tells the caller which row to read exactly)
    """Arrow did not read the lines; ``row`` is the one at fault, or -1 where it does not say."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


class FastJson:
    """Reads lines under one guess of types.

    Args:
        columns: The wanted columns, none of kind ``pairs``.
        hints: Arrow type of each by path.
    """

    def __init__(self, columns: Sequence[Column], hints: Mapping[str, pa.DataType]) -> None:
        self.columns = columns
        self._options = pa.json.ParseOptions(
            explicit_schema=_schema(columns, hints), unexpected_field_behavior="ignore"
        )

    def read(
        self, data: bytes, records: Records, rows: NDArray[np.int64]
    ) -> tuple[list[pa.Array], NDArray[np.bool_]]:
        """Read lines that were found to be one object each.

        Args:
            data: The bytes in which ``records`` were found.
            records: Where each line begins and ends.
            rows: int64 ``[K]``, the lines to read.

        Returns:
            An array for each column, and bool ``[K]``: rows whose numbers may be rounded.

        Raises:
            Refused: A line is not JSON, or a value is not of the guessed type.
        """
        table = self._read_table(_lines(data, records, rows))
        if table.num_rows != rows.size:
            raise Refused(-1)
        arrays = [_column(table, column.path) for column in self.columns]
        doubtful = np.zeros(rows.size, np.bool_)
        for array in arrays:
            doubtful |= _may_be_rounded(array)
        return [_settled(array, column) for array, column in zip(arrays, self.columns, strict=True)], doubtful

    def _read_table(self, lines: Any) -> pa.Table:
        buffer = pa.py_buffer(lines)
        options = pa.json.ReadOptions(use_threads=False, block_size=max(buffer.size + 1, _SMALLEST_BLOCK))
        try:
            return pa.json.read_json(
                pa.BufferReader(buffer), read_options=options, parse_options=self._options
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            found = _ROW.search(str(error))
            raise Refused(int(found[1]) if found else -1) from None


def _lines(data: bytes, records: Records, rows: NDArray[np.int64]) -> Any:
    first, last = int(rows[0]), int(rows[-1])
    if last - first + 1 == rows.size:
        return memoryview(data)[records.starts[first] : records.ends[last]]
    return gather_lines(data, records, rows, newline=True)[1]


def can_be_fast(columns: Sequence[Column]) -> bool:
    """Return whether the columns can be told to Arrow: no pairs, no name both a value and an object."""
    leaves, inner = {column.path for column in columns}, set()
    for column in columns:
        names = column.path.split(".")
        inner |= {".".join(names[:depth]) for depth in range(1, len(names))}
    return not leaves & inner and all(column.kind != "pairs" for column in columns)


def _schema(columns: Sequence[Column], hints: Mapping[str, pa.DataType]) -> pa.Schema:
    tree: dict[str, Any] = {}
    for column in columns:
        kind = hints[column.path]
        tree[column.path] = kind
        names = column.path.split(".")
        if len(names) > 1:
            level = tree
            for name in names[:-1]:
                level = level.setdefault(name, {})
            level[names[-1]] = kind
    return pa.schema(_fields(tree))


def _fields(tree: Mapping[str, Any]) -> list[pa.Field]:
    return [
        pa.field(name, pa.struct(_fields(kind)) if isinstance(kind, dict) else kind)
        for name, kind in tree.items()
    ]


def _column(table: pa.Table, path: str) -> pa.Array:
    literal = table.column(path).combine_chunks()
    literal = literal.chunk(0) if isinstance(literal, pa.ChunkedArray) else literal
    if "." not in path or literal.null_count == 0:
        return literal
    first, *rest = path.split(".")
    nested = pc.struct_field(table.column(first), rest).combine_chunks()
    nested = nested.chunk(0) if isinstance(nested, pa.ChunkedArray) else nested
    return nested if literal.null_count == len(literal) else pc.coalesce(literal, nested)


def _may_be_rounded(array: pa.Array) -> NDArray[np.bool_] | bool:
    """Return which rows hold a float that may stand for more than one literal integer."""
    if pa.types.is_list(array.type) and pa.types.is_floating(array.type.value_type):
        large = np.flatnonzero(_large(elements_of(array)))
        rows = np.zeros(len(array), np.bool_)
        if large.size:
            offsets = array.offsets.to_numpy()
            rows[np.searchsorted(offsets - offsets[0], large, side="right") - 1] = True
        return rows
    return _large(array) if pa.types.is_floating(array.type) else False


def _large(array: pa.Array) -> NDArray[np.bool_]:
    values = array.to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        large: NDArray[np.bool_] = ~(np.abs(values) < EXACT_FLOAT) & ~np.asarray(pc.is_null(array))
    return large


def _settled(array: pa.Array, column: Column) -> pa.Array:
    """Return floats without a minus zero, and as text where an id is wanted; truth values as text."""
    kind = array.type
    if pa.types.is_list(kind):
        elements = elements_of(array)
        settled = _settled(elements, column)
        return array if settled is elements else with_elements(array, settled)
    if pa.types.is_boolean(kind):
        return array.cast(pa.string())
    if not pa.types.is_floating(kind):
        return array
    return floats_as_text(array) if column.kind in ("text", "texts") else pc.add(array, 0.0)
