"""Vocabularies, statistics and classes from the train rows of all parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import list_borders, numbers_of, validity
from headrace.building.rowset import RowSet
from headrace.dataset.fitted import FITTED_TRANSFORMS
from headrace.dataset.layout import vocabulary_file
from headrace.encoding.declared import Place, feature_places, label_places
from headrace.encoding.ids import null_id
from headrace.encoding.rows import Rows
from headrace.engine.local import run_in_order
from headrace.errors import BuildError
from headrace.fit.counting import ValueCounts, count_elements
from headrace.fit.fitted import Fitted
from headrace.fit.rules import Rules
from headrace.fit.statistics import Statistics, fit_statistics
from headrace.fit.vocabulary import Vocabulary
from headrace.parse.readings import Ids, WeightedIds
from headrace.scratch import IN_MEMORY, Scratch
from headrace.spec import ClassLabel, Feature, Numeric, Sequence, Spec


def fit(
    rowset: RowSet,
    observed_until: Mapping[str, Mapping[str, int]],
    scratch: Scratch = IN_MEMORY,
    threads: int = 1,
) -> Fitted:
    """Learn everything that encoding needs from the train split; large arrays lie in ``scratch``."""
    spec = rowset.spec
    names = list(spec.vocabulary_specs)
    vocabularies = run_in_order(lambda name: _vocabulary(rowset, name, scratch), names, threads)
    return Fitted(
        vocabularies=dict(zip(names, vocabularies, strict=True)),
        statistics={
            name: _statistics(rowset, feature, place)
            for name, feature in spec.features.items()
            if isinstance(feature, Numeric) and feature.transform in FITTED_TRANSFORMS
            for place in feature_places(spec, feature)
        },
        classes={
            name: _classes(rowset, label)
            for name, label in spec.labels.items()
            if isinstance(label, ClassLabel)
        },
        observed_until=observed_until,
    )


def _vocabulary(rowset: RowSet, name: str, scratch: Scratch) -> Vocabulary:
    spec = rowset.spec
    declared = spec.vocabulary_specs[name]
    if declared.from_ is not None:
        return _taken_from(spec, name, declared.from_)
    reserved = spec.reserved_ids(name)
    rules = Rules(
        min_count=declared.min_count,
        max_size=declared.max_size,
        unseen=declared.unseen,
        unknown_buckets=declared.unknown_buckets,
        unknown_id=reserved.unknown,
        missing_id=reserved.missing,
    )
    counts = ValueCounts(scratch)
    empty = Vocabulary.from_counts(pa.array([], pa.large_string()), np.empty(0, np.int64), rules, {})
    for feature_name in spec.features_on(name):
        feature = spec.features[feature_name]
        place = feature_places(spec, feature)[0]
        for texts, found in _counted(rowset, feature, place, scratch):
            counts.add(texts, found, null_id(feature, empty))
    return counts.vocabulary(rules)


def _counted(
    rowset: RowSet, feature: Feature, place: Place, scratch: Scratch
) -> Iterator[tuple[pa.Array, NDArray[np.int64]]]:
    """Yield id texts and how often each stands in train: of each part, or of a joined table once."""
    total: NDArray[np.int64] | None = None
    texts = None
    for rows, chosen in rowset.train():
        texts = rows.dictionary(place)
        if total is None:
            total = scratch.zeros(len(texts) + 1, np.int64)
        _count(feature, rows, place, chosen, total)
        if place.table is None:
            yield texts, total
            total = None
    if total is not None:
        yield texts, total


def _taken_from(spec: Spec, name: str, store: str) -> Vocabulary:
    folder = Path(spec.locate(store))
    path = taken_vocabulary(spec, name, store)
    if not path.exists():
        raise BuildError(
            f"vocabularies.{name}: the store {folder} has no vocabulary of this name ({path} is missing). "
            "Name a store that was built with it."
        )
    vocabulary = Vocabulary.load(path)
    for feature in spec.features_on(name):
        if getattr(spec.features[feature], "missing", None) == "own" and vocabulary.missing is None:
            raise BuildError(
                f'features.{feature}: missing = "own", and the vocabulary {name!r} of {folder} has no id for '
                'missing values. Write missing = "unknown", or take a vocabulary that has one.'
            )
    return vocabulary


def taken_vocabulary(spec: Spec, name: str, store: str) -> Path:
    """Return where the vocabulary lies that is taken from another store."""
    return Path(spec.locate(store)) / vocabulary_file(name)


def _count(
    feature: Feature, rows: Rows, place: Place, chosen: NDArray[np.int64], counts: NDArray[np.int64]
) -> None:
    column = rows.column(place)
    if isinstance(place.reading, Ids):
        borders = np.arange(len(column) + 1, dtype=np.int64)
        count_elements(numbers_of(column), borders, chosen, counts, distinct=False)
        return
    borders, elements = list_borders(column)
    codes = elements.flatten()[0] if isinstance(place.reading, WeightedIds) else elements
    distinct = not isinstance(feature, Sequence)
    count_elements(numbers_of(codes), borders, chosen, counts, distinct=distinct)


def _statistics(rowset: RowSet, feature: Numeric, place: Place) -> Statistics:
    def blocks() -> Iterator[NDArray[np.float64]]:
        for rows, chosen in rowset.train():
            column = rows.column(place)
            valid = validity(column)
            yield numbers_of(column)[chosen[valid[chosen]] if len(valid) else chosen]

    return fit_statistics(blocks, feature.buckets)


def _classes(rowset: RowSet, label: ClassLabel) -> tuple[str, ...]:
    """Return the declared classes, or those in train in byte order."""
    if label.values is not None:
        return label.values
    place = label_places(rowset.spec, label)[0]
    found: set[str] = set()
    for rows, chosen in rowset.train():
        texts = rows.dictionary(place)
        borders = np.arange(len(rows) + 1, dtype=np.int64)
        counts = np.zeros(len(texts) + 1, np.int64)
        count_elements(numbers_of(rows.column(place)), borders, chosen, counts, distinct=False)
        found.update(texts.take(pa.array(np.flatnonzero(counts[:-1]))).to_pylist())
    return tuple(sorted(found, key=str.encode))
