"""Chosen rows of a part as the record batch of a shard: features, labels, and what names a row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import numbers_of, primitive
from headrace.encoding.declared import Place, number_place, time_place
from headrace.encoding.features import encode_feature
from headrace.encoding.labels import encode_label
from headrace.encoding.rows import Rows
from headrace.fit.fitted import Fitted
from headrace.kernels.lookup import NULL_CODE
from headrace.parse.readings import Ids
from headrace.spec import Spec

ID = "__id__"
"""string: the value of the column that ``[id]`` declares."""
FILE = "__file__"
"""uint32: the number of the source file, where no ``[id]`` is declared."""
ROW = "__row__"
"""uint64: the 0-based data row in that file."""
TIME = "__time__"
"""int64: the row's own time in microseconds, where ``[time]`` is declared."""


def encode_rows(
    spec: Spec, rows: Rows, chosen: NDArray[np.int64], split: str, fitted: Fitted, *, labels: bool = True
) -> pa.RecordBatch:
    """Encode chosen rows of one split.

    Args:
        spec: The declaration.
        rows: Parsed rows.
        chosen: int64 [n], which of them, ascending.
        split: The split that they are in: it says what labels may know.
        fitted: What was learned from train.
        labels: Whether labels and weights are encoded too.

    Returns:
        [n] rows: every feature's columns as declared, then labels, weight, id and time.
    """
    columns = [
        column for name in spec.features for column in encode_feature(spec, name, rows, chosen, fitted)
    ]
    if labels:
        for name in spec.labels:
            columns += encode_label(spec, name, rows, chosen, split, fitted)
        if spec.weight is not None:
            weights = numbers_of(rows.column(number_place(spec, spec.weight.column)))
            columns.append(("weight", primitive(weights[chosen].astype(np.float32))))
    columns += _names(spec, rows, chosen)
    if spec.time is not None:
        columns.append((TIME, rows.column(time_place(spec.time)).take(pa.array(chosen))))
    return pa.RecordBatch.from_arrays([array for _, array in columns], [name for name, _ in columns])


def _names(spec: Spec, rows: Rows, chosen: NDArray[np.int64]) -> list[tuple[str, pa.Array]]:
    if spec.id is None:
        files = rows.part.files[chosen].astype(np.uint32)
        return [(FILE, pa.array(files)), (ROW, pa.array(rows.part.rows[chosen].astype(np.uint64)))]
    table, path = spec.table_of(spec.id.column)
    place = Place(table, Ids(path))
    codes = numbers_of(rows.column(place))[chosen]
    indices = pa.array(codes.astype(np.int64), mask=codes == NULL_CODE)
    return [(ID, rows.dictionary(place).take(indices).cast(pa.large_string()))]
