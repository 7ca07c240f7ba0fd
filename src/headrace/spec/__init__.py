"""What the user declares: frozen declarations that do no work, read from TOML, a dict or Python."""

from __future__ import annotations

from headrace.spec.columns import ColumnUse, TableColumn
from headrace.spec.features import (
    TIME_PARTS,
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
from headrace.spec.labels import Attribution, Binary, ClassLabel, Continuous, Label
from headrace.spec.model import Spec
from headrace.spec.source import Id, Source, SourceOptions, Table, Time, Weight
from headrace.spec.splits import Bounds, ColumnSplit, FileSplit, GroupSplit, RandomSplit, Split, TimeSplit
from headrace.spec.vocabularies import Reserved, ReservedIds, VocabularySpec

__all__ = [
    "TIME_PARTS",
    "Attribution",
    "Binary",
    "Bounds",
    "Categorical",
    "ClassLabel",
    "ColumnSplit",
    "ColumnUse",
    "Continuous",
    "Cross",
    "Feature",
    "FileSplit",
    "GroupSplit",
    "Hashed",
    "Id",
    "Label",
    "Numeric",
    "RandomSplit",
    "Reserved",
    "ReservedIds",
    "Sequence",
    "Set",
    "Source",
    "SourceOptions",
    "Spec",
    "Split",
    "Table",
    "TableColumn",
    "Time",
    "TimePart",
    "TimeSplit",
    "Vector",
    "VocabularySpec",
    "Weight",
    "WeightedSet",
]
