"""Parsed rows as the encoders see them: typed columns by place, tables joined, bad rows left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.encoding.declared import Place
from headrace.encoding.tables import JoinedTable
from headrace.fit.vocabulary import Vocabulary
from headrace.parse.part import Part
from headrace.parse.readings import key_of
from headrace.sources import BadRow


class Rows:
    """A part with its joined tables.

    Args:
        part: Parsed rows.
        tables: The joined tables by name.
        keys: The readings and checks whose faults count; those of others are passed over.
    """

    def __init__(self, part: Part, tables: Mapping[str, JoinedTable], keys: Iterable[str]) -> None:
        self.part = part
        self._tables = tables
        self._joined: dict[Place, pa.Array] = {}
        self._ids: dict[tuple[Place, int, int], NDArray[Any]] = {}
        first = _first_faults(part, keys) if part.faults else {}
        self.good: NDArray[np.bool_] = np.ones(len(part), bool)
        """bool [n]: the row is not bad."""
        self.good[list(first)] = False
        self.bad: list[BadRow] = sorted([*part.bad, *first.values()], key=lambda bad: (bad.file, bad.row))
        """The bad rows in the order of the files, each once, with the first reason."""

    def __len__(self) -> int:
        return len(self.part)

    def has(self, place: Place) -> bool:
        """Return whether the sources had this column."""
        part = self.part if place.table is None else self._tables[place.table].part
        return key_of(place.reading) in part.columns

    def column(self, place: Place) -> pa.Array:
        """Return a typed column, [n]; see ``headrace.parse.typed``."""
        if place.table is None:
            return self.part.columns[key_of(place.reading)]
        joined = self._joined.get(place)
        if joined is None:
            joined = self._tables[place.table].column(place, self.part)
            self._joined[place] = joined
        return joined

    def dictionary(self, place: Place) -> pa.Array:
        """Return the id texts of a column's codes, large_string."""
        if place.table is None:
            return self.part.dictionaries[key_of(place.reading)]
        return self._tables[place.table].dictionary(place)

    def ids(
        self, place: Place, vocabulary: Vocabulary, dtype: type[np.unsignedinteger[Any]], null_id: int
    ) -> NDArray[Any]:
        """Return the id of each code of a column, that of a missing value last; a refused one (-1) wraps.

        Looked up once for all features that read the column alike.
        """
        key = (place, id(vocabulary), null_id)
        known = self._ids.get(key)
        if known is None:
            found = vocabulary.find(self.dictionary(place))
            known = np.empty(len(found) + 1, dtype)
            known[:-1] = found
            known[-1] = null_id
            self._ids[key] = known
        return known

    def forget(self) -> None:
        """Drop what was joined and looked up; it is made again where it is asked for."""
        self._joined = {}
        self._ids = {}


def _first_faults(part: Part, keys: Iterable[str]) -> dict[int, BadRow]:
    """Return the first fault of each place that one of the readings or checks named by ``keys`` found."""
    wanted = set(keys)
    first: dict[int, BadRow] = {}
    for fault in part.faults:
        if fault.key in wanted:
            first.setdefault(fault.place, fault.bad)
    return first
