"""Chosen rows of a part as the record batch of a shard: features, labels, and what names a row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import numbers_of
from headrace.encoding.columns import Encoded, EncodedColumn
from headrace.encoding.declared import Place, number_place, time_place
from headrace.encoding.features import FeatureEncoder
from headrace.encoding.labels import encode_label
from headrace.encoding.names import FILE, ID, ROW, TIME
from headrace.encoding.rows import Rows
from headrace.fit.fitted import Fitted
from headrace.kernels.lookup import NULL_CODE
from headrace.parse.readings import Ids
from headrace.spec import Spec


class RowEncoder:
    """Encodes chosen rows of one split.

    Args:
        spec: The declaration.
        split: The split that the rows are in: it says what labels may know.
        fitted: What was learned from train.
        labels: Whether labels and weights are encoded too.
    """

    def __init__(self, spec: Spec, split: str, fitted: Fitted, *, labels: bool = True) -> None:
        self._spec = spec
        self._split = split
        self._fitted = fitted
        self._labels = labels
        self._features = [FeatureEncoder.of(spec, name, fitted) for name in spec.features]

    def columns(self, rows: Rows, chosen: NDArray[np.int64]) -> Encoded:
        """Return what a batch is made of: every feature's columns as declared, then labels, then the weight.

        Args:
            rows: Parsed rows.
            chosen: int64 [n], which of them, ascending.

        Raises:
            VocabularyError: A value is not in its vocabulary, and ``unseen="error"``.
        """
        columns = [column for feature in self._features for column in feature.columns(rows, chosen)]
        if self._labels:
            for name in self._spec.labels:
                columns += encode_label(self._spec, name, rows, chosen, self._split, self._fitted)
            if self._spec.weight is not None:
                weights = numbers_of(rows.column(number_place(self._spec, self._spec.weight.column)))
                columns.append(EncodedColumn("weight", weights[chosen].astype(np.float32)))
        return columns

    def shard(self, rows: Rows, chosen: NDArray[np.int64]) -> pa.RecordBatch:
        """Return what a shard holds: the same columns, then id and time.

        Raises:
            VocabularyError: As ``columns``.
        """
        named = [(column.name, column.arrow()) for column in self.columns(rows, chosen)]
        named += _names(self._spec, rows, chosen)
        if self._spec.time is not None:
            named.append((TIME, rows.column(time_place(self._spec.time)).take(pa.array(chosen))))
        return pa.RecordBatch.from_arrays([array for _, array in named], [name for name, _ in named])


def encode_rows(
    spec: Spec, rows: Rows, chosen: NDArray[np.int64], split: str, fitted: Fitted, *, labels: bool = True
) -> pa.RecordBatch:
    """Encode chosen rows of one split as a shard holds them; see ``RowEncoder``."""
    return RowEncoder(spec, split, fitted, labels=labels).shard(rows, chosen)


def _names(spec: Spec, rows: Rows, chosen: NDArray[np.int64]) -> list[tuple[str, pa.Array]]:
    if spec.id is None:
        files = rows.part.files[chosen].astype(np.uint32)
        return [(FILE, pa.array(files)), (ROW, pa.array(rows.part.rows[chosen].astype(np.uint64)))]
    table, path = spec.table_of(spec.id.column)
    place = Place(table, Ids(path))
    codes = numbers_of(rows.column(place))[chosen]
    indices = pa.array(codes.astype(np.int64), mask=codes == NULL_CODE)
    return [(ID, rows.dictionary(place).take(indices).cast(pa.large_string()))]
