"""Which readings of which raw columns each declaration needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headrace.errors import SpecError
from headrace.parse import readings
from headrace.parse.readings import Reading, key_of
from headrace.sources import Column
from headrace.sources.batch import Kind
from headrace.spec import (
    Attribution,
    Binary,
    Categorical,
    ClassLabel,
    ColumnSplit,
    Cross,
    Feature,
    GroupSplit,
    Hashed,
    Label,
    Numeric,
    RandomSplit,
    Sequence,
    Set,
    Spec,
    Time,
    TimePart,
    Vector,
    WeightedSet,
)


class Place(NamedTuple):
    """Where a typed column comes from: the rows themselves (``table`` None) or a joined table."""

    table: str | None
    reading: Reading

    @property
    def key(self) -> str:
        """A text that is equal for equal places."""
        return key_of(self.reading) if self.table is None else f"{self.table}\0{key_of(self.reading)}"


def feature_places(spec: Spec, feature: Feature) -> tuple[Place, ...]:
    """Return the typed columns that a feature is made from, its main one first."""
    match feature:
        case Cross():
            return tuple(_ids(spec, column) for column in feature.columns)
        case Categorical() | Hashed():
            return (_ids(spec, feature.column),)
        case Sequence():
            return _sequence_places(spec, feature)
        case Set():
            return (_list(spec, feature.column, feature.separator),)
        case WeightedSet():
            table, path = spec.table_of(feature.column)
            return (Place(table, readings.WeightedIds(path, feature.separator, feature.pair_separator)),)
        case Numeric():
            table, path = spec.table_of(feature.column)
            return (Place(table, readings.Numbers(path, feature.dtype, feature.nan)),)
        case TimePart():
            return (_time_part_place(spec, feature),)
        case Vector():
            table, path = spec.table_of(feature.column)
            return (Place(table, readings.Vectors(path, feature.dim, feature.separator)),)


def _ids(spec: Spec, column: str) -> Place:
    table, path = spec.table_of(column)
    return Place(table, readings.Ids(path))


def _list(spec: Spec, column: str, separator: str) -> Place:
    table, path = spec.table_of(column)
    return Place(table, readings.IdLists(path, separator))


def _sequence_places(spec: Spec, feature: Sequence) -> tuple[Place, ...]:
    elements = _list(spec, feature.column, feature.separator)
    if feature.time is None:
        return (elements,)
    table, path = spec.table_of(feature.time)
    time = spec.time or Time(column=feature.time)
    reading = readings.TimeLists(path, feature.separator, time.unit, time.format, time.timezone)
    return (elements, Place(table, reading))


def _time_part_place(spec: Spec, feature: TimePart) -> Place:
    table, path = spec.table_of(feature.column)
    own = spec.time if spec.time is not None and spec.time.column == feature.column else None
    unit = feature.unit or (spec.time.unit if spec.time else "s")
    form = feature.format or (own.format if own else None)
    zone = feature.timezone or (spec.time.timezone if spec.time else None)
    return Place(table, readings.Times(path, unit, form, zone))


def time_place(time: Time) -> Place:
    """Return the typed column of a declared time."""
    return Place(None, readings.Times(time.column, time.unit, time.format, time.timezone))


def label_places(spec: Spec, label: Label) -> tuple[Place, ...]:
    """Return the typed columns that a label is made from; its weight is the last one."""
    weight = () if label.weight is None else (number_place(spec, label.weight),)
    match label:
        case Attribution():
            time = spec.time or Time(column=label.click_time)
            columns = (label.click_time, label.convert_time)
            return (*(time_place(time.model_copy(update={"column": column})) for column in columns), *weight)
        case Binary(at_least=None):
            table, path = spec.table_of(label.column)
            return (Place(table, readings.Flags(path)), *weight)
        case ClassLabel():
            return (_ids(spec, label.column), *weight)
        case _:
            return (number_place(spec, label.column), *weight)


def number_place(spec: Spec, column: str) -> Place:
    """Return the typed column of plain numbers."""
    table, path = spec.table_of(column)
    return Place(table, readings.Numbers(path, "float", "bad"))


def split_place(spec: Spec) -> Place | None:
    """Return the typed column that the split goes by, or None."""
    match spec.split:
        case ColumnSplit(column=column) | GroupSplit(key=column) | RandomSplit(key=str(column)):
            return _ids(spec, column)
    return time_place(spec.split_time) if spec.split_time is not None else None


def row_places(spec: Spec, *, labels: bool, split: bool) -> Iterator[tuple[str, Place]]:
    """Yield every place that rows need with the declaration that needs it.

    Args:
        spec: The declaration.
        labels: Whether labels and weights are needed too; new data may lack them.
        split: Whether the column that the split goes by is needed too.
    """
    for name, feature in spec.features.items():
        for place in feature_places(spec, feature):
            yield f"features.{name}", place
    for name, table in spec.tables.items():
        yield f"tables.{name}.key", Place(None, readings.Ids(table.key))
    if spec.time is not None:
        yield "time", time_place(spec.time)
    if spec.id is not None:
        yield "id", _ids(spec, spec.id.column)
    if labels:
        yield from _label_places(spec)
    by = split_place(spec)
    if split and by is not None:
        yield "split", by


def _label_places(spec: Spec) -> Iterator[tuple[str, Place]]:
    for name, label in spec.labels.items():
        for place in label_places(spec, label):
            yield f"labels.{name}", place
    if spec.weight is not None:
        yield "weight", number_place(spec, spec.weight.column)


_KINDS: dict[type, Kind] = {
    readings.Ids: "text",
    readings.IdLists: "texts",
    readings.WeightedIds: "pairs",
    readings.Numbers: "number",
    readings.Flags: "number",
    readings.Vectors: "numbers",
    readings.Times: "number",
    readings.TimeLists: "numbers",
}
_GENERAL: dict[Kind, Kind] = {"number": "text", "numbers": "texts"}


def source_columns(needed: list[tuple[str, Reading]]) -> list[Column]:
    """Return what a reader must deliver, each path once.

    Args:
        needed: Readings, each with the declaration that needs it.

    Raises:
        SpecError: One column is asked to be one value and a list.
    """
    chosen: dict[str, tuple[str, Kind, Reading]] = {}
    for where, reading in needed:
        kind = _KINDS[type(reading)]
        before = chosen.get(reading.path)
        chosen[reading.path] = (
            where,
            kind if before is None else _common(before, where, kind, reading.path),
            reading,
        )
    return [
        Column(
            path,
            kind,
            separator=getattr(reading, "separator", ","),
            pair_separator=getattr(reading, "pair_separator", ":"),
        )
        for path, (_, kind, reading) in chosen.items()
    ]


def _common(before: tuple[str, Kind, Reading], where: str, kind: Kind, path: str) -> Kind:
    """Return the kind that serves two readings of one column: text serves numbers too."""
    if before[1] == kind:
        return kind
    general = {_GENERAL.get(before[1], before[1]), _GENERAL.get(kind, kind)}
    if len(general) == 1:
        return general.pop()
    raise SpecError(
        f"{before[0]} and {where} read the column '{path}' in two ways that exclude each other: "
        f"one takes {_words(before[1])}, the other {_words(kind)}."
    )


def _words(kind: Kind) -> str:
    return {"texts": "a list", "numbers": "a list", "pairs": "pairs with weights"}.get(kind, "one value")
