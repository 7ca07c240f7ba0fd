"""Which raw columns a declaration needs, how each is read, and for what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from headrace.spec.features import (
    Categorical,
    Cross,
    Feature,
    Hashed,
    Numeric,
    Sequence,
    Set,
    TimePart,
    Vector,
    WeightedSet,
)
from headrace.spec.labels import Attribution, Binary, ClassLabel, Label
from headrace.spec.problems import Path, dotted
from headrace.spec.splits import ColumnSplit, GroupSplit, RandomSplit, TimeSplit

if TYPE_CHECKING:
    from headrace.spec.model import Spec

Reading: TypeAlias = Literal["id", "ids", "weighted_ids", "number", "numbers", "time", "times"]
"""How a raw value is read: one id text, a list of them, pairs of id and weight, a number, ..."""


class ColumnUse(NamedTuple):
    """One use of a raw column.

    Attributes:
        path: The key that needs it: ``("features", "history", "time")``.
        reads: How its values are read.
        optional: Whether new data may lack it: labels, weights and splits are not needed to encode.
    """

    path: Path
    reads: Reading
    optional: bool = False

    @property
    def where(self) -> str:
        """The key as TOML writes it: ``"features.history.time"``."""
        return dotted(self.path)


class TableColumn(NamedTuple):
    """A raw column: of the rows where ``table`` is None, else of that table."""

    table: str | None
    column: str


def column_uses(spec: Spec) -> dict[str, tuple[ColumnUse, ...]]:
    """Return each raw column that a spec needs with its uses.

    Columns of tables are paths that begin with the table's name. The columns that a
    random split draws by, when it has no key, are none.
    """
    uses: dict[str, list[ColumnUse]] = {}
    for column, use in _all_uses(spec):
        uses.setdefault(column, []).append(use)
    return {column: tuple(found) for column, found in uses.items()}


def _all_uses(spec: Spec) -> Iterator[tuple[str, ColumnUse]]:
    for name, feature in spec.features.items():
        yield from _feature_uses(("features", name), feature)
    for name, label in spec.labels.items():
        yield from _label_uses(("labels", name), label)
    for name, table in spec.tables.items():
        yield table.key, ColumnUse(("tables", name, "key"), "id")
        yield f"{name}.{table.key}", ColumnUse(("tables", name, "key"), "id")
    yield from _row_uses(spec)


def _row_uses(spec: Spec) -> Iterator[tuple[str, ColumnUse]]:
    if spec.time is not None:
        yield spec.time.column, ColumnUse(("time", "column"), "time")
    if spec.weight is not None:
        yield spec.weight.column, ColumnUse(("weight", "column"), "number", optional=True)
    if spec.id is not None:
        yield spec.id.column, ColumnUse(("id", "column"), "id")
    match spec.split:
        case TimeSplit(column=str(column)):
            yield column, ColumnUse(("split", "column"), "time", optional=True)
        case ColumnSplit(column=column):
            yield column, ColumnUse(("split", "column"), "id", optional=True)
        case RandomSplit(key=str(key)) | GroupSplit(key=key):
            yield key, ColumnUse(("split", "key"), "id", optional=True)


def _feature_uses(path: Path, feature: Feature) -> Iterator[tuple[str, ColumnUse]]:
    match feature:
        case Cross():
            for place, column in enumerate(feature.columns):
                yield column, ColumnUse((*path, "columns", place), "id")
        case Sequence(from_=str()):
            yield from _history_uses(path, feature)
        case Sequence(time=str(time)):
            yield feature.column, ColumnUse((*path, "column"), "ids")
            yield time, ColumnUse((*path, "time"), "times")
        case _:
            yield feature.column, ColumnUse((*path, "column"), _reading(feature))


def _reading(feature: Feature) -> Reading:
    match feature:
        case Sequence() | Set():
            return "ids"
        case WeightedSet():
            return "weighted_ids"
        case Numeric():
            return "number"
        case TimePart():
            return "time"
        case Vector():
            return "numbers"
        case Categorical() | Hashed() | Cross():
            return "id"


def _history_uses(path: Path, feature: Sequence) -> Iterator[tuple[str, ColumnUse]]:
    events = feature.from_
    if feature.key is not None:
        yield feature.key, ColumnUse((*path, "key"), "id")
    yield f"{events}.{feature.column}", ColumnUse((*path, "column"), "id")
    yield f"{events}.{feature.time}", ColumnUse((*path, "time"), "time")
    for place, column in enumerate(feature.with_):
        yield f"{events}.{column}", ColumnUse((*path, "with", place), "id")


def _label_uses(path: Path, label: Label) -> Iterator[tuple[str, ColumnUse]]:
    if isinstance(label, Attribution):
        yield label.click_time, ColumnUse((*path, "click_time"), "time", optional=True)
        yield label.convert_time, ColumnUse((*path, "convert_time"), "time", optional=True)
    else:
        yield label.column, ColumnUse((*path, "column"), _label_reading(label), optional=True)
    if label.weight is not None:
        yield label.weight, ColumnUse((*path, "weight"), "number", optional=True)


def _label_reading(label: Label) -> Reading:
    # A binary column without a threshold may hold true and false as well as 0 and 1.
    as_id = isinstance(label, ClassLabel) or (isinstance(label, Binary) and label.at_least is None)
    return "id" if as_id else "number"
