"""What stands in one column of one row of a store: the raw value beside what is stored."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import pyarrow as pa

from headrace.arrays import numbers_of
from headrace.errors import StoreError
from headrace.fit.fitted import Fitted
from headrace.fit.statistics import Statistics
from headrace.report.tokens import Token, own_token, vocabulary_token
from headrace.spec import (
    Categorical,
    Cross,
    Feature,
    Hashed,
    Numeric,
    Sequence,
    Set,
    Spec,
    TimePart,
    Vector,
    WeightedSet,
)


@dataclass(frozen=True)
class Cell:
    """A feature of one row."""

    kind: str
    """As declared: ``"categorical"``, ``"numeric"``, ..."""
    raw: Any
    """The raw value: text, a number, or a list; None, alone or in a list, where an id stands for no value."""
    encoded: Any
    """What is stored: an id, a number, or a list; without padding."""
    names: Any
    """As ``raw``: the name of each id that stands for no value, as ``"UNKNOWN"``; None for the others."""
    present: bool
    """Whether the raw value was there."""
    weights: list[float] | None = None
    """Of a weighted set."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values; weights where it has some."""
        values = {key: getattr(self, key) for key in ("kind", "raw", "encoded", "names", "present")}
        return values if self.weights is None else {**values, "weights": self.weights}


class Place(NamedTuple):
    """A feature, and the row of a shard that is read."""

    spec: Spec
    name: str
    fitted: Fitted
    batch: pa.RecordBatch
    row: int

    @property
    def scalar(self) -> pa.Scalar:
        """The stored value; null where the raw value was missing."""
        return self.batch.column(self.name)[self.row]

    @property
    def number(self) -> Any:
        """The stored number, also where it lies under a null bit."""
        return numbers_of(self.batch.column(self.name))[self.row].item()

    def token(self, token_id: int) -> Token:
        """Return what an id from the feature's vocabulary stands for."""
        return vocabulary_token(self.fitted.vocabularies[self.spec.vocabulary_of(self.name)[0]], token_id)


def decode(spec: Spec, name: str, fitted: Fitted, batch: pa.RecordBatch, row: int) -> Cell:
    """Return what stands in a feature of one row.

    Args:
        spec: The declaration of the store.
        name: The feature.
        fitted: What the store learned.
        batch: A shard.
        row: A row of the shard.
    """
    return _decode(spec.features[name], Place(spec, name, fitted, batch, row))


@singledispatch
def _decode(feature: Feature, place: Place) -> Cell:
    raise TypeError(type(feature))


@_decode.register
def _(feature: Categorical, place: Place) -> Cell:
    return _of_token(feature.kind, place, place.token(place.number))


@_decode.register(Hashed)
@_decode.register(Cross)
@_decode.register(TimePart)
def _(feature: Hashed | Cross | TimePart, place: Place) -> Cell:
    return _of_token(feature.kind, place, own_token(feature, place.name, place.fitted, place.number))


def _of_token(kind: str, place: Place, token: Token) -> Cell:
    return Cell(kind, token.raw, place.number, token.name, place.scalar.is_valid)


@_decode.register(Sequence)
@_decode.register(Set)
@_decode.register(WeightedSet)
def _(feature: Sequence | Set | WeightedSet, place: Place) -> Cell:
    ids: list[int] = place.scalar.as_py() or []
    tokens = [place.token(token_id) for token_id in ids]
    weights = None
    if isinstance(feature, WeightedSet):
        weights = place.batch.column(f"{place.name}_weights")[place.row].as_py() or []
        _check_lengths(place.name, ids, weights)
    raw, names = [token.raw for token in tokens], [token.name for token in tokens]
    return Cell(feature.kind, raw, ids, names, place.scalar.is_valid, weights)


def _check_lengths(name: str, ids: list[int], weights: list[float]) -> None:
    if len(ids) != len(weights):
        raise StoreError(
            f"{name}: {len(ids)} ids and {len(weights)} weights stand in one row: the shard is damaged. "
            "Run `headrace verify` on the store; restore the file, or build again."
        )


@_decode.register
def _(feature: Numeric, place: Place) -> Cell:
    if feature.transform == "bucketize":
        return _of_token(feature.kind, place, own_token(feature, place.name, place.fitted, place.number))
    present = place.scalar.is_valid
    statistics = place.fitted.statistics.get(place.name)
    raw = _BEFORE[feature.transform](place.number, statistics) if present else None
    return Cell(feature.kind, raw, place.number, None if present else "MISSING", present)


_LARGEST_LOG = 709.0
"""About the logarithm of the largest float64."""
_BEFORE: dict[str, Callable[[float, Any], float]] = {
    "none": lambda value, _: value,
    "log1p": lambda value, _: math.expm1(value) if value < _LARGEST_LOG else math.inf,
    "standardize": lambda value, fitted: value * fitted.deviation + fitted.mean,
    "minmax": lambda value, fitted: _from_unit(value, fitted),
}
"""The inverse of each transform; what is stored is float32, so that about 7 digits come back."""


def _from_unit(value: float, fitted: Statistics) -> float:
    return value * (fitted.maximum - fitted.minimum) + fitted.minimum


@_decode.register
def _(feature: Vector, place: Place) -> Cell:
    column = place.batch.column(place.name)
    flat = numbers_of(column.values)
    first = (column.offset + place.row) * feature.dim
    stored = flat[first : first + feature.dim].tolist()
    present = place.scalar.is_valid
    return Cell(feature.kind, stored if present else None, stored, None if present else "MISSING", present)
