"""One record for each row: the numbers of a row next to each other in memory.

A random row of forty columns is forty cache lines, and three where its values are one record. A
record has each scalar, label and weight of the row, and where its lists begin; one record more
than there are rows says where the last lists end. The elements of lists, vectors and validity
bits stay where they are.

    columns      user  7 8 9        history  offsets 0 2 2 5
    records      (7, 0) (8, 2) (9, 2) (0, 5)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.loading.columns import Arrays, Column, Label, Ragged, Scalar


def record_dtype(columns: Sequence[Column]) -> np.dtype[Any]:
    """Return the structured dtype of a record: the widest fields first, with none for vectors.

    Args:
        columns: Of one shard at least.
    """
    fields = [
        (f"{place}.{attribute}", arrays[0].dtype)
        for place, column in enumerate(columns)
        for attribute, arrays in _fields(column)
    ]
    return np.dtype(sorted(fields, key=lambda field: -field[1].itemsize), align=True)


def pack(columns: Sequence[Column], dtype: np.dtype[Any], first: int, end: int) -> NDArray[Any]:
    """Return records ``first`` to ``end - 1`` of the columns' first shard.

    Args:
        columns: What ``dtype`` was made of.
        dtype: Of ``record_dtype``.
        first: A row.
        end: At most one more than there are rows.
    """
    records = np.zeros(end - first, dtype)
    for place, column in enumerate(columns):
        for attribute, arrays in _fields(column):
            values = arrays[0][first:end]
            records[f"{place}.{attribute}"][: len(values)] = values
    return records


def unpack(columns: Sequence[Column], records: Sequence[NDArray[Any]]) -> list[Column]:
    """Return the columns with what records have of them taken from there; nothing is copied.

    Args:
        columns: Of some shards.
        records: Structured [rows + 1] of each shard, as ``pack`` makes them.
    """
    return [_with_fields(column, place, records) for place, column in enumerate(columns)]


def _with_fields(column: Column, place: int, records: Sequence[NDArray[Any]]) -> Column:
    fields: dict[str, Any] = {
        attribute: _column(records, place, attribute) for attribute, _ in _fields(column)
    }
    return replace(column, **fields)


def _column(records: Sequence[NDArray[Any]], place: int, attribute: str) -> list[NDArray[Any]]:
    """Return a field of every shard's records: offsets with the last record, which is no row's."""
    fields = [shard[f"{place}.{attribute}"] for shard in records]
    return fields if attribute == "offsets" else [field[:-1] for field in fields]


def _fields(column: Column) -> Iterator[tuple[str, Arrays]]:
    """Yield which attributes of a column a record holds, and their arrays."""
    if isinstance(column, Ragged):
        yield "offsets", column.offsets
    if isinstance(column, Scalar | Label):
        yield "values", column.values
    if isinstance(column, Label) and column.weights is not None:
        yield "weights", column.weights
