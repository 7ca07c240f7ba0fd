"""Which split each row belongs to: a function of the row alone."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headrace.arrays import numbers_of, texts_of
from headrace.encoding.declared import split_place
from headrace.encoding.rows import Rows
from headrace.kernels.hashing import hash_texts
from headrace.kernels.lookup import NULL_CODE
from headrace.kernels.rng import stream_key, uniforms
from headrace.spec import ColumnSplit, FileSplit, GroupSplit, RandomSplit, Spec, TimeSplit

OUTSIDE = -1
"""The row is in no split."""


def assign_splits(spec: Spec, rows: Rows, file_names: Sequence[str]) -> NDArray[np.int8]:
    """Return the number of each row's split in ``spec.split_names``, int8 [n]; ``OUTSIDE`` for none.

    Args:
        spec: The declaration.
        rows: Parsed rows; those that are bad get any value.
        file_names: Names of the source files, by number.
    """
    match spec.split:
        case None:
            return np.zeros(len(rows), np.int8)
        case TimeSplit():
            return _by_time(spec, rows)
        case ColumnSplit():
            return _by_value(spec.split, _codes(spec, rows), _texts(spec, rows))
        case FileSplit():
            by_file = [split_of_file(spec.split, name) for name in file_names]
            return np.array(by_file, np.int8)[rows.part.files] if len(rows) else np.empty(0, np.int8)
        case GroupSplit() | RandomSplit(key=str()):
            return _by_group(spec.split, _codes(spec, rows), rows, spec)
        case RandomSplit():
            return _by_row(spec.split, rows, file_names)


def split_of_file(split: FileSplit, name: str) -> int:
    """Return the number of the split whose globs match a file's name or the end of it, else ``OUTSIDE``."""
    for number, globs in enumerate(split.parts.values()):
        if any(fnmatch.fnmatchcase(name, glob) or fnmatch.fnmatchcase(name, f"*/{glob}") for glob in globs):
            return number
    return OUTSIDE


def _by_time(spec: Spec, rows: Rows) -> NDArray[np.int8]:
    place = split_place(spec)
    assert place is not None
    times = numbers_of(rows.column(place))
    splits = np.full(len(rows), OUTSIDE, np.int8)
    for number, (start, end) in enumerate(spec.split_bounds().values()):
        inside = np.ones(len(rows), bool)
        if start is not None:
            inside &= times >= start
        if end is not None:
            inside &= times < end
        splits[inside] = number
    return splits


def _codes(spec: Spec, rows: Rows) -> NDArray[np.int64]:
    """Return the code of each row's value, that of a missing one being the last."""
    place = split_place(spec)
    assert place is not None
    codes = numbers_of(rows.column(place)).astype(np.int64)
    codes[codes == NULL_CODE] = len(rows.dictionary(place))
    return codes


def _texts(spec: Spec, rows: Rows) -> list[str]:
    place = split_place(spec)
    assert place is not None
    texts: list[str] = rows.dictionary(place).to_pylist()
    return texts


def _by_value(split: ColumnSplit, codes: NDArray[np.int64], texts: list[str]) -> NDArray[np.int8]:
    numbers = {value: number for number, values in enumerate(split.parts.values()) for value in values}
    by_code = np.array([*(numbers.get(text, OUTSIDE) for text in texts), OUTSIDE], np.int8)
    return by_code[codes]


def _by_group(
    split: GroupSplit | RandomSplit, codes: NDArray[np.int64], rows: Rows, spec: Spec
) -> NDArray[np.int8]:
    """Draw once for each value of the key, by the hash of its text."""
    place = split_place(spec)
    assert place is not None
    view = texts_of(rows.dictionary(place))
    hashes = np.empty(len(view), np.uint64)
    hash_texts(view.data, view.begins, view.ends, np.uint64(0), hashes)
    by_code = np.append(_drawn(split, hashes, "split"), np.int8(OUTSIDE))
    return by_code[codes]


def _by_row(split: RandomSplit, rows: Rows, file_names: Sequence[str]) -> NDArray[np.int8]:
    """Draw for each row, by the name of its file and its place in it."""
    splits = np.empty(len(rows), np.int8)
    for number in np.unique(rows.part.files):
        inside = rows.part.files == number
        name = file_names[number].replace("\\", "/").rpartition("/")[2]
        splits[inside] = _drawn(split, rows.part.rows[inside].astype(np.uint64), f"split {name}")
    return splits


def _drawn(split: GroupSplit | RandomSplit, places: NDArray[np.uint64], stream: str) -> NDArray[np.int8]:
    draws = np.empty(len(places), np.float64)
    uniforms(stream_key(split.seed, 0, stream), places, draws)
    shares = np.cumsum(list(split.parts.values()))
    numbers = np.searchsorted(shares, draws, side="right").astype(np.int8)
    if abs(shares[-1] - 1) > 1e-9:
        numbers[numbers == len(shares)] = OUTSIDE
    return np.minimum(numbers, np.int8(len(shares) - 1))
