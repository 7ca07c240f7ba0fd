"""Typed columns of features become encoded columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headrace.arrays import ALL_VALID, list_borders, numbers_of, texts_of, validity
from headrace.encoding.columns import Encoded, EncodedColumn
from headrace.encoding.declared import Place, feature_places
from headrace.encoding.ids import (
    FIRST,
    MISSING,
    UNKNOWN,
    id_dtype,
    null_id,
    table_size,
    vocabulary_name,
)
from headrace.encoding.rows import Rows
from headrace.errors import VocabularyError
from headrace.fit import statistics
from headrace.fit.fitted import Fitted
from headrace.fit.statistics import Statistics
from headrace.fit.vocabulary import Vocabulary
from headrace.kernels import ragged as ragged_kernels
from headrace.kernels.hashing import hash_texts
from headrace.kernels.lookup import NULL_CODE
from headrace.parse.numbers import LARGEST_FLOAT32
from headrace.parse.times import local_times
from headrace.spec import (
    TIME_PARTS,
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

Chosen = NDArray[np.int64]
"""int64 [n], which of the rows, ascending."""


@dataclass(frozen=True)
class FeatureEncoder:
    """All that encoding one feature needs beside the rows; made once for many blocks of rows."""

    name: str
    feature: Feature
    places: tuple[Place, ...]
    """The typed columns that it is made from, its main one first."""
    dtype: type[np.unsignedinteger[Any]]
    """Of its stored ids."""
    vocabulary: Vocabulary | None
    null_id: int
    """The id of a missing value, where there is a vocabulary."""
    statistics: Statistics | None
    zone: str
    """Where the parts of its times are read off."""

    @classmethod
    def of(cls, spec: Spec, name: str, fitted: Fitted) -> FeatureEncoder:
        """Return the encoder of a declared feature."""
        feature = spec.features[name]
        vocabulary = fitted.vocabularies.get(vocabulary_name(spec, name))
        return cls(
            name,
            feature,
            feature_places(spec, feature),
            id_dtype(table_size(feature, vocabulary) or 0),
            vocabulary,
            0 if vocabulary is None else null_id(feature, vocabulary),
            fitted.statistics.get(name),
            getattr(feature, "timezone", None) or (spec.time.timezone if spec.time else None) or "UTC",
        )

    def columns(self, rows: Rows, chosen: Chosen) -> Encoded:
        """Return the feature's columns for the chosen rows.

        Raises:
            VocabularyError: A value is not in its vocabulary, and ``unseen="error"``.
        """
        return _encode(self.feature, self, rows, chosen)

    def ids(self, rows: Rows) -> NDArray[Any]:
        """Return the id of each code of the main column, that of a missing value last."""
        assert self.vocabulary is not None
        return rows.ids(self.places[0], self.vocabulary, self.dtype, self.null_id)

    def refuse_unseen(self, rows: Rows, codes: NDArray[Any]) -> None:
        """Raise ``VocabularyError`` where a code's value has no id."""
        assert self.vocabulary is not None
        if self.vocabulary.rules.unseen != "error":
            return
        dictionary = rows.dictionary(self.places[0])
        unseen = rows.of_codes(self.places[0], (self.vocabulary, "unseen"), self._unseen(dictionary))
        met = codes[unseen[codes]]
        if len(met):
            raise VocabularyError(
                f"features.{self.name}: {str(dictionary[int(met[0])])!r} is not in the vocabulary "
                "(not in the train split, rarer there than min_count, or beyond max_size), "
                'and unseen = "error". '
                'Add rows that hold it to train, or choose unseen = "unknown" or "hash".'
            )

    def _unseen(self, dictionary: pa.Array) -> Callable[[], NDArray[np.bool_]]:
        """Return what tells of each code whether its value has no id; a missing one always has one."""
        vocabulary = self.vocabulary
        assert vocabulary is not None
        return lambda: np.append(vocabulary.find(dictionary) < 0, False)

    def own_ids(self, numbers: NDArray[np.int64], present: NDArray[np.bool_]) -> Encoded:
        """Return ids of a feature without a vocabulary; a negative number is UNKNOWN."""
        ids = np.where(numbers < 0, UNKNOWN, numbers + FIRST)
        ids[~present] = MISSING
        return [EncodedColumn(self.name, ids.astype(self.dtype), present)]


@singledispatch
def _encode(feature: Feature, encoder: FeatureEncoder, rows: Rows, chosen: Chosen) -> Encoded:
    raise TypeError(type(feature))


def _codes(rows: Rows, place: Place, chosen: Chosen) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return ``(codes, present)`` of the chosen rows; the code of a missing value is the last one."""
    codes = numbers_of(rows.column(place))[chosen].astype(np.int64)
    present = codes != NULL_CODE
    codes[~present] = len(rows.dictionary(place))
    return codes, present


@_encode.register
def _(feature: Categorical, encoder: FeatureEncoder, rows: Rows, chosen: Chosen) -> Encoded:
    codes, present = _codes(rows, encoder.places[0], chosen)
    encoder.refuse_unseen(rows, codes[present])
    return [EncodedColumn(encoder.name, encoder.ids(rows)[codes], present)]


@_encode.register
def _(feature: Sequence, encoder: FeatureEncoder, rows: Rows, chosen: Chosen) -> Encoded:
    ids = encoder.ids(rows)
    column = rows.column(encoder.places[0])
    borders, codes = list_borders(column)
    flat = numbers_of(codes)
    lengths = np.empty(len(chosen), np.int64)
    ragged_kernels.kept_lengths(borders, chosen, feature.max_length, lengths)
    offsets = _offsets(lengths)
    out = np.empty(offsets[-1], ids.dtype)
    ragged_kernels.cut_sequences(flat, borders, chosen, ids, ids[-1], feature.keep == "last", offsets, out)
    _refuse_unseen_elements(encoder, rows, flat, borders, chosen)
    return [EncodedColumn(encoder.name, out, _valid(column, chosen), offsets)]


@_encode.register
def _(feature: Set, encoder: FeatureEncoder, rows: Rows, chosen: Chosen) -> Encoded:
    assert encoder.vocabulary is not None
    ids = encoder.ids(rows)
    column = rows.column(encoder.places[0])
    borders, codes = list_borders(column)
    flat = numbers_of(codes)
    offsets = np.empty(len(chosen) + 1, np.int64)
    out = np.empty(_room(borders, chosen), ids.dtype)
    first = encoder.vocabulary.rules.first_id
    ragged_kernels.cut_sets(
        flat,
        borders,
        chosen,
        ids,
        ids[-1],
        first,
        first + len(encoder.vocabulary.values),
        feature.max_length,
        offsets,
        out,
    )
    _refuse_unseen_elements(encoder, rows, flat, borders, chosen)
    return [EncodedColumn(encoder.name, out[: offsets[-1]], _valid(column, chosen), offsets)]


@_encode.register
def _(feature: WeightedSet, encoder: FeatureEncoder, rows: Rows, chosen: Chosen) -> Encoded:
    ids = encoder.ids(rows)
    column = rows.column(encoder.places[0])
    borders, pairs = list_borders(column)
    codes, weights = (numbers_of(child) for child in pairs.flatten())
    room = _room(borders, chosen)
    offsets = np.empty(len(chosen) + 1, np.int64)
    out, out_weights = np.empty(room, ids.dtype), np.empty(room, np.float32)
    ragged_kernels.cut_weighted_sets(
        codes, weights, borders, chosen, ids, ids[-1], feature.max_length, offsets, out, out_weights
    )
    _refuse_unseen_elements(encoder, rows, codes, borders, chosen)
    valid, size = _valid(column, chosen), offsets[-1]
    sums = out_weights[:size]
    np.clip(sums, -LARGEST_FLOAT32, LARGEST_FLOAT32, out=sums)
    return [
        EncodedColumn(encoder.name, out[:size], valid, offsets),
        EncodedColumn(f"{encoder.name}_weights", sums, valid, offsets),
    ]


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _room(borders: NDArray[np.int64], chosen: Chosen) -> int:
    return int((borders[chosen + 1] - borders[chosen]).sum())


def _refuse_unseen_elements(
    encoder: FeatureEncoder, rows: Rows, codes: NDArray[Any], borders: NDArray[np.int64], chosen: Chosen
) -> None:
    assert encoder.vocabulary is not None
    if encoder.vocabulary.rules.unseen == "error":
        encoder.refuse_unseen(rows, codes[_elements(borders, chosen)].astype(np.int64))


def _elements(borders: NDArray[np.int64], chosen: Chosen) -> NDArray[np.int64]:
    """Return the places of every element of the chosen rows."""
    lengths = borders[chosen + 1] - borders[chosen]
    starts = np.repeat(borders[chosen] - _offsets(lengths)[:-1], lengths)
    places: NDArray[np.int64] = starts + np.arange(len(starts))
    return places


def _valid(column: pa.Array, chosen: Chosen) -> NDArray[np.bool_]:
    """Return which of the chosen rows have a value, bool [n], or empty: all of them."""
    valid = validity(column)
    return valid[chosen] if len(valid) else ALL_VALID


def _present(column: pa.Array, chosen: Chosen) -> NDArray[np.bool_]:
    """Return which of the chosen rows have a value, bool [n]."""
    valid = _valid(column, chosen)
    return valid if len(valid) else np.ones(len(chosen), bool)


@_encode.register
def _(feature: Numeric, encoder: FeatureEncoder, rows: Rows, chosen: Chosen) -> Encoded:
    column = rows.column(encoder.places[0])
    values = numbers_of(column)[chosen]
    present = _present(column, chosen)
    if feature.transform == "bucketize":
        assert encoder.statistics is not None
        return encoder.own_ids(statistics.bucket_numbers(values, encoder.statistics), present)
    out = np.full(len(values), 0.0 if feature.missing is None else feature.missing, np.float32)
    out[present] = _transformed(feature, values[present], encoder)
    return [EncodedColumn(encoder.name, out, present)]


def _transformed(
    feature: Numeric, values: NDArray[np.float64], encoder: FeatureEncoder
) -> NDArray[np.float64]:
    if feature.transform == "log1p":
        return np.log1p(values)
    if feature.transform == "none":
        return values
    assert encoder.statistics is not None
    scaled = statistics.standardized if feature.transform == "standardize" else statistics.rescaled
    with np.errstate(over="ignore"):  # what train has not seen may be as far away as numbers go
        return np.clip(scaled(values, encoder.statistics), -LARGEST_FLOAT32, LARGEST_FLOAT32)


@_encode.register
def _(feature: Hashed, encoder: FeatureEncoder, rows: Rows, chosen: Chosen) -> Encoded:
    codes, present = _codes(rows, encoder.places[0], chosen)
    numbers = _hashes(rows, encoder.places[0]) % np.uint64(feature.buckets)
    return encoder.own_ids(numbers.astype(np.int64)[codes], present)


@_encode.register
def _(feature: Cross, encoder: FeatureEncoder, rows: Rows, chosen: Chosen) -> Encoded:
    """Hash the 8-byte little-endian XXH64 hashes of the columns' texts, one after the other."""
    parts = np.empty((len(chosen), len(feature.columns)), "<u8")
    present = np.ones(len(chosen), bool)
    for column, place in enumerate(encoder.places):
        codes, known = _codes(rows, place, chosen)
        parts[:, column] = _hashes(rows, place)[codes]
        present &= known
    borders = np.arange(len(parts) + 1, dtype=np.int64) * (8 * len(feature.columns))
    hashes = np.empty(len(parts), np.uint64)
    hash_texts(parts.reshape(-1).view(np.uint8), borders[:-1], borders[1:], np.uint64(0), hashes)
    return encoder.own_ids((hashes % np.uint64(feature.buckets)).astype(np.int64), present)


def _hashes(rows: Rows, place: Place) -> NDArray[np.uint64]:
    """Return the XXH64 of each id text of a column's dictionary, and 0 for a missing value."""

    def make() -> NDArray[np.uint64]:
        view = texts_of(rows.dictionary(place))
        hashes = np.zeros(len(view) + 1, np.uint64)
        hash_texts(view.data, view.begins, view.ends, np.uint64(0), hashes[:-1])
        return hashes

    return rows.of_codes(place, "XXH64", make)


_PARTS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "second": pc.second,
    "minute": pc.minute,
    "hour": pc.hour,
    "weekday": pc.day_of_week,
    "day": pc.day,
    "dayofyear": pc.day_of_year,
    "week": pc.iso_week,
    "month": pc.month,
    "quarter": pc.quarter,
    "year": pc.year,
}


@_encode.register
def _(feature: TimePart, encoder: FeatureEncoder, rows: Rows, chosen: Chosen) -> Encoded:
    column = rows.column(encoder.places[0])
    times = local_times(numbers_of(column)[chosen], encoder.zone)
    first, count = TIME_PARTS[feature.part]
    numbers = _PARTS[feature.part](times).to_numpy().astype(np.int64) - first
    numbers[(numbers < 0) | (numbers >= count)] = -1
    return encoder.own_ids(numbers, _present(column, chosen))


@_encode.register
def _(feature: Vector, encoder: FeatureEncoder, rows: Rows, chosen: Chosen) -> Encoded:
    column = rows.column(encoder.places[0])
    flat = numbers_of(column.values).reshape(-1, feature.dim)[column.offset : column.offset + len(column)]
    values = flat[chosen]
    valid = _valid(column, chosen)
    if len(valid):
        values[~valid] = 0.0
    return [EncodedColumn(encoder.name, values, valid)]
