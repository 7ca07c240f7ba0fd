"""Rows of a store with everything that is known of each: features, labels, weight, id and time."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.dataset.dataset import Dataset
from headrace.dataset.encoded import EncodedStore
from headrace.encoding.names import TIME
from headrace.errors import StoreError
from headrace.report.cells import Cell, decode
from headrace.report.tokens import check_id
from headrace.spec import ClassLabel

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class ShownLabel:
    """A label of one row."""

    value: float | None
    """None: not known, so that it is masked."""
    name: str | None
    """The class that the number stands for."""
    weight: float | None
    """None: no weight is declared."""


@dataclass(frozen=True)
class ShownRow:
    """One row of a split."""

    split: str
    row: int
    """Its place in the split: ``sample_id`` in a batch."""
    id: str | None
    """What ``[id]`` declares, or ``file:row``."""
    time: str | None
    """The row's own time in UTC, ISO 8601; None where ``[time]`` is not declared."""
    features: Mapping[str, Cell]
    labels: Mapping[str, ShownLabel]
    weight: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "split": self.split,
            "row": self.row,
            "id": self.id,
            "time": self.time,
            "features": {name: cell.to_dict() for name, cell in self.features.items()},
            "labels": {name: vars(label) for name, label in self.labels.items()},
            "weight": self.weight,
        }


def shown_rows(rows: Dataset, places: Iterable[int]) -> Iterator[ShownRow]:
    """Yield rows of a split of a store, decoded.

    Args:
        rows: A split of a store that was built from a spec.
        places: Rows of the split, each in ``[0, len(rows))``.

    Raises:
        StoreError: The rows were not encoded by a spec.
    """
    if rows.store is None:
        raise StoreError("these rows were not encoded by a spec, so that there is nothing to decode.")
    ends = np.cumsum([shard.num_rows for shard in rows.shards])
    for place in places:
        number = int(np.searchsorted(ends, place, side="right"))
        shard = rows.shards[number]
        yield _shown(rows, rows.store, place, shard, place - int(ends[number]) + shard.num_rows)


def _shown(rows: Dataset, store: EncodedStore, place: int, shard: pa.RecordBatch, row: int) -> ShownRow:
    there = shard.schema.names
    return ShownRow(
        split=store.split,
        row=place,
        id=rows.ids([place])[0],
        time=_time(shard.column(TIME)[row].as_py()) if TIME in there else None,
        features={name: decode(store.spec, name, store.fitted, shard, row) for name in store.spec.features},
        labels={name: _label(store, name, shard, row) for name in store.spec.labels if name in there},
        weight=shard.column("weight")[row].as_py() if "weight" in there else None,
    )


def _time(microseconds: int | None) -> str | None:
    if microseconds is None:
        return None
    try:
        return (_EPOCH + datetime.timedelta(microseconds=microseconds)).isoformat()
    except OverflowError:
        return f"{microseconds} microseconds after 1970-01-01 UTC"


def _label(store: EncodedStore, name: str, shard: pa.RecordBatch, row: int) -> ShownLabel:
    value = shard.column(name)[row].as_py()
    weights = f"{name}_weight"
    weight = shard.column(weights)[row].as_py() if weights in shard.schema.names else None
    if value is None or not isinstance(store.spec.labels[name], ClassLabel):
        return ShownLabel(value, None, weight)
    classes = store.fitted.classes[name]
    check_id(value, len(classes))
    return ShownLabel(value, classes[value], weight)
