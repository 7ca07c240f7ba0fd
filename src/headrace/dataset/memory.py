"""Rows and columns in memory as an Arrow table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.errors import SourceError


def table_of(columns: Mapping[str, Any]) -> pa.Table:
    """Return columns as a table.

    Args:
        columns: Lists, NumPy or Arrow arrays or tensors by name, all of one length. Of several dimensions,
            or in lists, arrays are lists of their rows.

    Raises:
        SourceError: Lengths differ, a name is no text, or Arrow has no type for the values of one.
    """
    if not isinstance(columns, Mapping):
        raise SourceError(f"expected columns by name, found {type(columns).__name__}.")
    arrays = {name: _array(name, values) for name, values in columns.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise SourceError(f"columns have different lengths: {found}; all must have one.")
    return pa.table(arrays)


def columns_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the columns of rows, in the order in which their names first come; None where a row lacks one.

    Raises:
        SourceError: They are no mappings.
    """
    whole: object = rows
    if not isinstance(whole, Iterable) or isinstance(whole, str | Mapping):
        raise SourceError(f"expected a list of dicts, found {type(rows).__name__}.")
    given = list(rows)
    for number, row in enumerate(given):
        if not isinstance(row, Mapping):
            raise SourceError(f"expected a list of dicts; row {number} is a {type(row).__name__}.")
    names = dict.fromkeys(name for row in given for name in row)
    return {name: [row.get(name) for row in given] for name in names}


def _array(name: str, values: Any) -> pa.Array | pa.ChunkedArray:
    if not isinstance(name, str):
        raise SourceError(f"a column has the name {name!r}; names are texts.")
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        return pa.array(_flat(values))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise SourceError(f"column '{name}': {error}. Give values of one type, one for each row.") from None


def _flat(values: Any) -> Any:
    """Return tensors, and arrays of several dimensions, as lists of what Arrow takes: flat arrays."""
    if _is_tensor(type(values)):
        values = values.detach().cpu().numpy()
    if isinstance(values, np.ndarray):
        return [_flat(row) for row in values] if values.ndim > 1 else values
    if isinstance(values, list | tuple) and any(map(_is_array, set(map(type, values)))):
        return [_flat(value) for value in values]
    return values


def _is_tensor(kind: type) -> bool:
    return hasattr(kind, "detach") and hasattr(kind, "numpy")


def _is_array(kind: type) -> bool:
    return issubclass(kind, np.ndarray) or _is_tensor(kind)
