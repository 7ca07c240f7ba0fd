"""Typed columns of features become the columns of a shard."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headrace.arrays import list_borders, numbers_of, primitive, ragged, texts_of, validity
from headrace.encoding.declared import Place, feature_places
from headrace.encoding.rows import Rows
from headrace.errors import VocabularyError
from headrace.fit import statistics
from headrace.fit.fitted import Fitted
from headrace.fit.vocabulary import Vocabulary
from headrace.kernels import ragged as ragged_kernels
from headrace.kernels.hashing import hash_texts
from headrace.kernels.lookup import NULL_CODE
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

UNKNOWN = 1
MISSING = 2
FIRST = 3
"""Hashed, crossed, bucketized and time features have ids PAD 0, UNKNOWN 1, MISSING 2, then these."""

Chosen = NDArray[np.int64]
Encoded = list[tuple[str, pa.Array]]


class Context(NamedTuple):
    """What every encoder is given."""

    spec: Spec
    name: str
    rows: Rows
    chosen: Chosen
    """int64 [n], which of the rows, ascending."""
    fitted: Fitted


def encode_feature(spec: Spec, name: str, rows: Rows, chosen: Chosen, fitted: Fitted) -> Encoded:
    """Return a feature's columns of a shard, by name, for the chosen rows.

    Raises:
        VocabularyError: A value is not in its vocabulary, and ``unseen="error"``.
    """
    return _encode(spec.features[name], Context(spec, name, rows, chosen, fitted))


def table_size(feature: Feature, vocabulary: Vocabulary | None) -> int | None:
    """Return the rows of a feature's embedding table, reserved ids included; None: it has no ids."""
    match feature:
        case Categorical() | Sequence() | Set() | WeightedSet():
            assert vocabulary is not None
            return len(vocabulary)
        case Hashed() | Cross():
            return FIRST + feature.buckets
        case TimePart():
            return FIRST + TIME_PARTS[feature.part].size
        case Numeric(transform="bucketize", buckets=int(buckets)):
            return FIRST + buckets
    return None


def id_dtype(size: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest unsigned type that holds the ids of a table of ``size`` rows."""
    for dtype in (np.uint8, np.uint16, np.uint32):
        if size <= np.iinfo(dtype).max + 1:
            return dtype
    return np.uint64


@singledispatch
def _encode(feature: Feature, context: Context) -> Encoded:
    raise TypeError(type(feature))


def _typed(context: Context) -> tuple[Place, ...]:
    return feature_places(context.spec, context.spec.features[context.name])


def _codes(context: Context, place: Place) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return ``(codes, present)`` of the chosen rows; the code of a missing value is the last one."""
    codes = numbers_of(context.rows.column(place))[context.chosen].astype(np.int64)
    present = codes != NULL_CODE
    codes[~present] = len(context.rows.dictionary(place))
    return codes, present


def _ids_by_code(context: Context, place: Place) -> tuple[NDArray[Any], Vocabulary]:
    """Return the id of each code of a column, in the dtype of the store, that of a missing value last."""
    vocabulary = context.fitted.vocabularies[vocabulary_name(context.spec, context.name)]
    ids = context.rows.ids(place, vocabulary, id_dtype(len(vocabulary)))
    feature = context.spec.features[context.name]
    return np.append(ids, ids.dtype.type(null_id(feature, vocabulary))), vocabulary


def vocabulary_name(spec: Spec, name: str) -> str:
    """Return the name of the vocabulary that a feature's ids come from: a shared one, or its own."""
    return getattr(spec.features[name], "vocabulary", None) or name


def null_id(feature: Feature, vocabulary: Vocabulary) -> int:
    """Return the id of a missing value of a feature on a vocabulary."""
    missing = getattr(feature, "missing", "own")
    return {"own": vocabulary.rules.null_id, "unknown": vocabulary.unk, "pad": vocabulary.pad}[missing]


@_encode.register
def _(feature: Categorical, context: Context) -> Encoded:
    (place,) = _typed(context)
    codes, present = _codes(context, place)
    ids, vocabulary = _ids_by_code(context, place)
    _refuse_unseen(context, place, vocabulary, codes[present])
    return [(context.name, primitive(ids[codes], present))]


def _refuse_unseen(context: Context, place: Place, vocabulary: Vocabulary, codes: NDArray[np.int64]) -> None:
    if vocabulary.rules.unseen != "error":
        return
    unseen = np.flatnonzero(vocabulary.find(context.rows.dictionary(place)) < 0)
    met = codes[np.isin(codes, unseen)]
    if len(met):
        value = str(context.rows.dictionary(place)[int(met[0])])
        raise VocabularyError(
            f"features.{context.name}: {value!r} is not in the vocabulary (not in the train split, rarer "
            'there than min_count, or beyond max_size), and unseen = "error". '
            'Add rows that hold it to train, or choose unseen = "unknown" or "hash".'
        )


@_encode.register
def _(feature: Sequence, context: Context) -> Encoded:
    place = _typed(context)[0]
    ids, vocabulary = _ids_by_code(context, place)
    column = context.rows.column(place)
    borders, codes = list_borders(column)
    lengths = np.empty(len(context.chosen), np.int64)
    ragged_kernels.kept_lengths(borders, context.chosen, feature.max_length, lengths)
    offsets = _offsets(lengths)
    out = np.empty(offsets[-1], ids.dtype)
    flat = numbers_of(codes)
    ragged_kernels.cut_sequences(
        flat, borders, context.chosen, ids, ids[-1], feature.keep == "last", offsets, out
    )
    if vocabulary.rules.unseen == "error":
        _refuse_unseen(context, place, vocabulary, flat[_elements(borders, context.chosen)].astype(np.int64))
    return [(context.name, ragged(offsets, pa.array(out), _valid(column, context.chosen)))]


@_encode.register
def _(feature: Set, context: Context) -> Encoded:
    (place,) = _typed(context)
    ids, vocabulary = _ids_by_code(context, place)
    column = context.rows.column(place)
    borders, codes = list_borders(column)
    flat = numbers_of(codes)
    offsets = np.empty(len(context.chosen) + 1, np.int64)
    out = np.empty(_room(borders, context.chosen), ids.dtype)
    first = vocabulary.rules.first_id
    ragged_kernels.cut_sets(
        flat,
        borders,
        context.chosen,
        ids,
        ids[-1],
        first,
        first + len(vocabulary.values),
        feature.max_length,
        offsets,
        out,
    )
    if vocabulary.rules.unseen == "error":
        _refuse_unseen(context, place, vocabulary, flat[_elements(borders, context.chosen)].astype(np.int64))
    return [(context.name, ragged(offsets, pa.array(out[: offsets[-1]]), _valid(column, context.chosen)))]


@_encode.register
def _(feature: WeightedSet, context: Context) -> Encoded:
    (place,) = _typed(context)
    ids, vocabulary = _ids_by_code(context, place)
    column = context.rows.column(place)
    borders, pairs = list_borders(column)
    codes, weights = (numbers_of(child) for child in pairs.flatten())
    room = _room(borders, context.chosen)
    offsets = np.empty(len(context.chosen) + 1, np.int64)
    out, out_weights = np.empty(room, ids.dtype), np.empty(room, np.float32)
    ragged_kernels.cut_weighted_sets(
        codes, weights, borders, context.chosen, ids, ids[-1], feature.max_length, offsets, out, out_weights
    )
    if vocabulary.rules.unseen == "error":
        _refuse_unseen(context, place, vocabulary, codes[_elements(borders, context.chosen)].astype(np.int64))
    valid, size = _valid(column, context.chosen), offsets[-1]
    return [
        (context.name, ragged(offsets, pa.array(out[:size]), valid)),
        (f"{context.name}_weights", ragged(offsets, pa.array(out_weights[:size]), valid)),
    ]


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _room(borders: NDArray[np.int64], chosen: Chosen) -> int:
    return int((borders[chosen + 1] - borders[chosen]).sum())


def _elements(borders: NDArray[np.int64], chosen: Chosen) -> NDArray[np.int64]:
    """Return the places of every element of the chosen rows."""
    lengths = borders[chosen + 1] - borders[chosen]
    starts = np.repeat(borders[chosen] - _offsets(lengths)[:-1], lengths)
    places: NDArray[np.int64] = starts + np.arange(len(starts))
    return places


def _valid(column: pa.Array, chosen: Chosen) -> NDArray[np.bool_]:
    valid = validity(column)
    return valid[chosen] if len(valid) else valid


@_encode.register
def _(feature: Numeric, context: Context) -> Encoded:
    (place,) = _typed(context)
    column = context.rows.column(place)
    values = numbers_of(column)[context.chosen]
    valid = _valid(column, context.chosen)
    present = valid if len(valid) else np.ones(len(values), bool)
    if feature.transform == "bucketize":
        numbers = statistics.bucket_numbers(values, context.fitted.statistics[context.name])
        return [(context.name, _own_ids(numbers, present, context))]
    out = np.full(len(values), 0.0 if feature.missing is None else feature.missing, np.float32)
    out[present] = _transformed(feature, values[present], context)
    return [(context.name, primitive(out, present))]


def _transformed(feature: Numeric, values: NDArray[np.float64], context: Context) -> NDArray[np.float64]:
    match feature.transform:
        case "log1p":
            return np.log1p(values)
        case "standardize":
            return statistics.standardized(values, context.fitted.statistics[context.name])
        case "minmax":
            return statistics.rescaled(values, context.fitted.statistics[context.name])
    return values


def _own_ids(numbers: NDArray[np.int64], present: NDArray[np.bool_], context: Context) -> pa.Array:
    """Return ids of a feature without a vocabulary; a negative number is UNKNOWN."""
    size = table_size(context.spec.features[context.name], None)
    assert size is not None
    ids = np.where(numbers < 0, UNKNOWN, numbers + FIRST)
    ids[~present] = MISSING
    return primitive(ids.astype(id_dtype(size)), present)


@_encode.register
def _(feature: Hashed, context: Context) -> Encoded:
    (place,) = _typed(context)
    codes, present = _codes(context, place)
    numbers = np.append(_hashes(context, place), np.uint64(0)) % np.uint64(feature.buckets)
    return [(context.name, _own_ids(numbers.astype(np.int64)[codes], present, context))]


@_encode.register
def _(feature: Cross, context: Context) -> Encoded:
    """Hash the 8-byte little-endian XXH64 hashes of the columns' texts, one after the other."""
    parts = np.empty((len(context.chosen), len(feature.columns)), "<u8")
    present = np.ones(len(context.chosen), bool)
    for column, place in enumerate(_typed(context)):
        codes, known = _codes(context, place)
        parts[:, column] = np.append(_hashes(context, place), np.uint64(0))[codes]
        present &= known
    borders = np.arange(len(parts) + 1, dtype=np.int64) * (8 * len(feature.columns))
    hashes = np.empty(len(parts), np.uint64)
    hash_texts(parts.reshape(-1).view(np.uint8), borders[:-1], borders[1:], np.uint64(0), hashes)
    numbers = (hashes % np.uint64(feature.buckets)).astype(np.int64)
    return [(context.name, _own_ids(numbers, present, context))]


def _hashes(context: Context, place: Place) -> NDArray[np.uint64]:
    """Return the XXH64 of each id text of a column's dictionary."""
    view = texts_of(context.rows.dictionary(place))
    hashes = np.empty(len(view), np.uint64)
    hash_texts(view.data, view.begins, view.ends, np.uint64(0), hashes)
    return hashes


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
def _(feature: TimePart, context: Context) -> Encoded:
    (place,) = _typed(context)
    column = context.rows.column(place)
    times = local_times(numbers_of(column)[context.chosen], _zone(feature, context.spec))
    first, count = TIME_PARTS[feature.part]
    numbers = _PARTS[feature.part](times).to_numpy().astype(np.int64) - first
    numbers[(numbers < 0) | (numbers >= count)] = -1
    valid = _valid(column, context.chosen)
    return [(context.name, _own_ids(numbers, valid if len(valid) else np.ones(len(numbers), bool), context))]


def _zone(feature: TimePart, spec: Spec) -> str:
    return feature.timezone or (spec.time.timezone if spec.time else None) or "UTC"


@_encode.register
def _(feature: Vector, context: Context) -> Encoded:
    (place,) = _typed(context)
    column = context.rows.column(place)
    flat = numbers_of(column.values).reshape(-1, feature.dim)[column.offset : column.offset + len(column)]
    values = flat[context.chosen]
    valid = _valid(column, context.chosen)
    if len(valid):
        values[~valid] = 0.0
    array = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), feature.dim)
    if len(valid) == 0 or valid.all():
        return [(context.name, array)]
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    masked = pa.Array.from_buffers(array.type, len(array), [bits], children=[array.values])
    return [(context.name, masked)]
