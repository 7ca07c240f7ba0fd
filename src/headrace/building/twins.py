"""Numbers that stand in two ways in one column, as ``1001`` and ``1001.0``: two ids for what may be one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.arrays import texts_of
from headrace.building.rowset import RowSet
from headrace.encoding.declared import feature_places
from headrace.kernels.fields import mark_whole_floats


def number_twins(rowset: RowSet) -> dict[str, int]:
    """Count the values that stand as a whole number and with ``.0`` behind it, by vocabulary; zeros left out.

    Ids are text as it was written, so that both have an id of their own: what a tool makes of a
    column of integers when it holds a missing value.
    """
    counts = {name: _twins(rowset, name) for name in rowset.spec.vocabulary_specs}
    return {name: count for name, count in counts.items() if count}


def _twins(rowset: RowSet, vocabulary: str) -> int:
    floats = {text for texts in _dictionaries(rowset, vocabulary) for text in _whole_floats(texts)}
    wanted = pa.array({text.partition(".")[0] for text in floats}, pa.large_string())
    whole = {
        text
        for texts in (_dictionaries(rowset, vocabulary) if floats else ())
        for text in texts.filter(pc.is_in(texts, wanted)).to_pylist()
    }
    return sum(text.partition(".")[0] in whole for text in floats)


def _whole_floats(texts: pa.Array) -> list[str]:
    """Return the texts that are integers with ``.0`` behind them."""
    view, found = texts_of(texts), np.empty(len(texts), np.bool_)
    mark_whole_floats(view.data, view.begins, view.ends, found)
    floats: list[str] = texts.take(pa.array(np.flatnonzero(found))).to_pylist()
    return floats


def _dictionaries(rowset: RowSet, vocabulary: str) -> Iterator[pa.Array]:
    """Yield the different raw values of every part, or of a joined table, of each feature on a vocabulary."""
    for name in rowset.spec.features_on(vocabulary):
        place = feature_places(rowset.spec, rowset.spec.features[name])[0]
        for rows in rowset.parts if place.table is None else rowset.parts[:1]:
            yield rows.dictionary(place).cast(pa.large_string())
