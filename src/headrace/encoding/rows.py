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
        self._ids: dict[tuple[Place, int], NDArray[Any]] = {}
        wanted = set(keys)
        first: dict[int, BadRow] = {}
        for fault in part.faults:
            if fault.key in wanted:
                first.setdefault(fault.place, fault.bad)
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

    def ids(self, place: Place, vocabulary: Vocabulary, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
        """Return the id of each code of a column, looked up once; a refused one (-1) wraps."""
        known = self._ids.get((place, id(vocabulary)))
        if known is None:
            known = vocabulary.find(self.dictionary(place)).astype(dtype)
            self._ids[place, id(vocabulary)] = known
        return known

    def forget(self) -> None:
        """Drop what was joined and looked up; it is made again where it is asked for."""
        self._joined = {}
        self._ids = {}
