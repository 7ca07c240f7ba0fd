"""What must hold of typed columns, row by row; a row that breaks it is bad.

Checks run while the row's raw bytes are at hand, so that quarantine can show them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import list_borders, numbers_of, validity
from headrace.kernels.lookup import NULL_CODE
from headrace.kernels.ragged import first_disorder
from headrace.parse.faults import Faults
from headrace.parse.numbers import in_float32
from headrace.parse.readings import IdLists, Ids, Numbers, Reading, TimeLists, Times, key_of

Columns = Mapping[str, pa.Array]


@dataclass(frozen=True)
class Present:
    """The value is not missing."""

    reading: Ids | Numbers | Times

    def faults(self, columns: Columns) -> Faults:
        """Return the rows without a value."""
        column = columns[key_of(self.reading)]
        found = Faults()
        found.add(np.flatnonzero(~present(self.reading, column)), lambda _: f"{self.reading.path} is missing")
        return found


@dataclass(frozen=True)
class Above:
    """The number, where there is one, is above a limit, or equal to it where ``including``."""

    reading: Numbers
    limit: float
    including: bool
    purpose: str

    def faults(self, columns: Columns) -> Faults:
        """Return the rows whose number is too small."""
        column = columns[key_of(self.reading)]
        values = numbers_of(column)
        small = values < self.limit if self.including else values <= self.limit
        found = Faults()
        found.add(
            np.flatnonzero(small & present(self.reading, column)),
            lambda row: f"{self.reading.path} is {values[row]:g}; {self.purpose}",
        )
        return found


@dataclass(frozen=True)
class InFloat32:
    """The number, where there is one, is finite as a float32, which is what a store holds."""

    reading: Numbers

    def faults(self, columns: Columns) -> Faults:
        """Return the rows whose number would become infinite."""
        column = columns[key_of(self.reading)]
        values = numbers_of(column)
        found = Faults()
        found.add(
            np.flatnonzero(~in_float32(values) & present(self.reading, column)),
            lambda row: f"{self.reading.path} is {values[row]:g}, beyond float32",
        )
        return found


@dataclass(frozen=True)
class Ordered:
    """A sequence's times are as many as its elements, ascending, and strictly before the row's time."""

    elements: IdLists
    times: TimeLists
    row_time: Times | None

    def faults(self, columns: Columns) -> Faults:
        """Return the rows whose sequence is out of order."""
        element_borders, _ = list_borders(columns[key_of(self.elements)])
        borders, values = list_borders(columns[key_of(self.times)])
        found = Faults()
        unequal = np.diff(element_borders) != np.diff(borders)
        names = f"{self.elements.path} and {self.times.path}"
        found.add(np.flatnonzero(unequal), lambda _: f"{names} have different lengths")
        verdicts = self._verdicts(columns, borders, numbers_of(values))
        verdicts[unequal] = 0
        found.add(np.flatnonzero(verdicts == 1), lambda _: f"{self.times.path} is not ascending")
        found.add(
            np.flatnonzero(verdicts == 2),
            lambda _: f"{self.times.path} holds a time that is not before the row's own time",
        )
        return found

    def _verdicts(
        self, columns: Columns, borders: NDArray[np.int64], times: NDArray[np.int64]
    ) -> NDArray[np.uint8]:
        rows = len(borders) - 1
        verdicts = np.empty(rows, np.uint8)
        if self.row_time is None:
            limits, known = np.zeros(rows, np.int64), np.zeros(rows, bool)
        else:
            column = columns[key_of(self.row_time)]
            limits, known = numbers_of(column), validity(column)
        first_disorder(times, borders, limits, known, verdicts)
        return verdicts


Check = Present | Above | InFloat32 | Ordered


def readings_of(check: Check) -> tuple[Reading, ...]:
    """Return the readings that a check looks at."""
    if isinstance(check, Ordered):
        times = () if check.row_time is None else (check.row_time,)
        return (check.elements, check.times, *times)
    return (check.reading,)


@functools.cache
def check_key(check: Check) -> str:
    """Return a text that is equal for equal checks, on every machine."""
    looked_at = [key_of(reading) for reading in readings_of(check)]
    options = [check.limit, check.including] if isinstance(check, Above) else []
    return json.dumps([type(check).__name__, looked_at, options])


def present(reading: Reading, column: pa.Array) -> NDArray[np.bool_]:
    """Return which rows have a value, bool [n]."""
    if isinstance(reading, Ids):
        codes: NDArray[np.bool_] = numbers_of(column) != NULL_CODE
        return codes
    valid = validity(column)
    return valid if len(valid) else np.ones(len(column), bool)
