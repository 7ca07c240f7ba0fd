"""Typed columns of labels become the label columns of a shard; a label that is not known is null."""

from __future__ import annotations

import datetime
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from headrace.arrays import numbers_of, validity
from headrace.encoding.columns import Encoded, EncodedColumn
from headrace.encoding.declared import Place, label_places
from headrace.encoding.rows import Rows
from headrace.fit.fitted import Fitted
from headrace.kernels.lookup import NULL_CODE
from headrace.spec import Attribution, Binary, ClassLabel, Continuous, Label, Spec

Known = tuple[NDArray[np.float32] | NDArray[np.int64], NDArray[np.bool_]]
"""Values [n], and bool [n]: the label is known."""

_MICROSECOND = datetime.timedelta(microseconds=1)


def encode_label(
    spec: Spec, name: str, rows: Rows, chosen: NDArray[np.int64], split: str, fitted: Fitted
) -> Encoded:
    """Return a label's columns for the chosen rows of one split."""
    values, known = _known(spec.labels[name], spec, name, rows, split, fitted)
    values, known = values[chosen], known[chosen]
    values[~known] = 0
    columns = [EncodedColumn(name, values, known)]
    if spec.labels[name].weight is not None:
        place = label_places(spec, spec.labels[name])[-1]
        weights = numbers_of(rows.column(place))[chosen].astype(np.float32)
        columns.append(EncodedColumn(f"{name}_weight", weights))
    return columns


def censored(spec: Spec, rows: Rows, split: str, fitted: Fitted) -> NDArray[np.bool_]:
    """Return which rows a label with ``censored = "drop"`` leaves out of a split, bool [n]."""
    dropped = np.zeros(len(rows), bool)
    for name, label in spec.labels.items():
        if isinstance(label, Attribution) and label.censored == "drop":
            mature = _mature(label, spec, rows, fitted.observed_until[name][split])
            dropped |= _has_label(label, spec, rows, split, fitted) & ~mature
    return dropped


@singledispatch
def _known(label: Label, spec: Spec, name: str, rows: Rows, split: str, fitted: Fitted) -> Known:
    raise TypeError(type(label))


def _number(rows: Rows, place: Place) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    column = rows.column(place)
    valid = validity(column)
    return numbers_of(column), valid if len(valid) else np.ones(len(column), bool)


@_known.register
def _(label: Binary, spec: Spec, name: str, rows: Rows, split: str, fitted: Fitted) -> Known:
    values, known = _number(rows, label_places(spec, label)[0])
    return (values >= (1 if label.at_least is None else label.at_least)).astype(np.float32), known


@_known.register
def _(label: Continuous, spec: Spec, name: str, rows: Rows, split: str, fitted: Fitted) -> Known:
    values, known = _number(rows, label_places(spec, label)[0])
    return values.astype(np.float32), known


@_known.register
def _(label: ClassLabel, spec: Spec, name: str, rows: Rows, split: str, fitted: Fitted) -> Known:
    place = label_places(spec, label)[0]
    numbers = {value: number for number, value in enumerate(fitted.classes[name])}
    by_code = np.array(
        [*(numbers.get(text, -1) for text in rows.dictionary(place).to_pylist()), -1], np.int64
    )
    codes = numbers_of(rows.column(place)).astype(np.int64)
    classes = by_code[np.where(codes == NULL_CODE, len(by_code) - 1, codes)]
    return classes, classes >= 0


@_known.register
def _(label: Attribution, spec: Spec, name: str, rows: Rows, split: str, fitted: Fitted) -> Known:
    click, convert = (_number(rows, place) for place in label_places(spec, label)[:2])
    observed_until = fitted.observed_until[name][split]
    delay = convert[0] - click[0]
    converted = convert[1] & (delay >= 0) & (delay <= label.window // _MICROSECOND)
    converted &= convert[0] <= observed_until
    known = _has_label(label, spec, rows, split, fitted)
    if label.censored != "keep":
        known &= _mature(label, spec, rows, observed_until)
    return converted.astype(np.float32), known


def _has_label(label: Attribution, spec: Spec, rows: Rows, split: str, fitted: Fitted) -> NDArray[np.bool_]:
    """Return which rows have such a label at all: a click, and the label ``given`` where one is named."""
    clicked = _number(rows, label_places(spec, label)[0])[1]
    if label.given is None:
        return clicked.copy()
    values, known = _known(spec.labels[label.given], spec, label.given, rows, split, fitted)
    given: NDArray[np.bool_] = clicked & known & (values == 1)
    return given


def _mature(label: Attribution, spec: Spec, rows: Rows, observed_until: int) -> NDArray[np.bool_]:
    """Return which rows' windows are over: ``click + window <= observed_until``."""
    clicks = _number(rows, label_places(spec, label)[0])[0]
    mature: NDArray[np.bool_] = clicks <= observed_until - label.window // _MICROSECOND
    return mature
