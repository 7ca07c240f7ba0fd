"""Values of class labels that are no class: beyond the declared ``values``, or not in train."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.arrays import numbers_of
from headrace.building.rowset import RowSet
from headrace.encoding.declared import Place, label_places
from headrace.fit.fitted import Fitted
from headrace.kernels.lookup import NULL_CODE
from headrace.spec import ClassLabel


def rows_without_class(rowset: RowSet, fitted: Fitted) -> dict[str, dict[str, int]]:
    """Count the rows whose value of a class label is none of its classes, by label and split; zeros left out.

    Such a label is null, as a missing one is: nothing else would tell of a class that was forgotten.
    """
    found: dict[str, dict[str, int]] = {}
    for name, label in rowset.spec.labels.items():
        if isinstance(label, ClassLabel):
            place = label_places(rowset.spec, label)[0]
            classes = pa.array(fitted.classes[name], pa.large_string())
            counts = {split: _count(rowset, place, classes, split) for split in rowset.split_names}
            found[name] = {split: count for split, count in counts.items() if count}
    return {name: counts for name, counts in found.items() if counts}


def _count(rowset: RowSet, place: Place, classes: pa.Array, split: str) -> int:
    total = 0
    for number, rows in enumerate(rowset.parts):
        known = pc.is_in(rows.dictionary(place).cast(pa.large_string()), classes)
        outside = np.append(~known.to_numpy(zero_copy_only=False), False)
        codes = numbers_of(rows.column(place))[rowset.chosen(number, split)]
        total += int(outside[np.where(codes == NULL_CODE, len(known), codes)].sum())
    return total
