"""The checks that a spec's declarations ask of their columns."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.encoding.declared import (
    Place,
    feature_places,
    label_places,
    number_place,
    split_place,
    time_place,
)
from headrace.parse.checks import Above, Check, InFloat32, Ordered, Present
from headrace.parse.readings import IdLists, Ids, Numbers, TimeLists, Times
from headrace.spec import Continuous, Numeric, Sequence, Spec

Located = tuple[str | None, Check]
"""A table's name, or None for the rows themselves, and a check of its rows."""


def row_checks(spec: Spec, *, labels: bool, split: bool) -> Iterator[Located]:
    """Yield every check; ``labels`` and ``split`` as in ``declared.row_places``."""
    for feature in spec.features.values():
        match feature:
            case Numeric(transform="log1p"):
                (place,) = feature_places(spec, feature)
                yield from _above(place, -1.0, including=False, purpose="log1p needs more than -1")
            case Numeric(transform="none" | "standardize" | "minmax"):
                (place,) = feature_places(spec, feature)
                yield from _in_float32(place)
            case Sequence(time=str()):
                yield _ordered(spec, feature)
    if labels:
        yield from _label_checks(spec)
    by = split_place(spec)
    if split and by is not None and spec.split is not None and spec.split.by != "column":
        yield from _present(by)


def _ordered(spec: Spec, feature: Sequence) -> Located:
    elements, times = feature_places(spec, feature)
    row_time = None
    if spec.time is not None and times.table is None:
        row_time = time_place(spec.time).reading
    if not isinstance(elements.reading, IdLists) or not isinstance(times.reading, TimeLists):
        raise TypeError(elements)
    return times.table, Ordered(
        elements.reading, times.reading, row_time if isinstance(row_time, Times) else None
    )


def _label_checks(spec: Spec) -> Iterator[Located]:
    if spec.weight is not None:
        yield from _weight_checks(number_place(spec, spec.weight.column))
    for label in spec.labels.values():
        if isinstance(label, Continuous):
            yield from _in_float32(label_places(spec, label)[0])
        if label.weight is not None:
            yield from _weight_checks(label_places(spec, label)[-1])


def _weight_checks(place: Place) -> Iterator[Located]:
    yield from _present(place)
    yield from _above(place, 0.0, including=True, purpose="a weight must be at least 0")
    yield from _in_float32(place)


def _present(place: Place) -> Iterator[Located]:
    if isinstance(place.reading, Ids | Numbers | Times):
        yield place.table, Present(place.reading)


def _above(place: Place, limit: float, *, including: bool, purpose: str) -> Iterator[Located]:
    if isinstance(place.reading, Numbers):
        yield place.table, Above(place.reading, limit, including, purpose)


def _in_float32(place: Place) -> Iterator[Located]:
    if isinstance(place.reading, Numbers):
        yield place.table, InFloat32(place.reading)
