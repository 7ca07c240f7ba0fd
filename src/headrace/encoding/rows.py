"""Parsed rows as the encoders see them: typed columns by place, tables joined, bad rows left out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
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

_NONE: NDArray[np.int64] = np.empty(0, np.int64)


class Rows:
    """A part with its joined tables.

    Args:
        part: Parsed rows.
        tables: The joined tables by name.
        keys: The readings and checks whose faults count, in their order; those of others are passed over.
    """

    def __init__(self, part: Part, tables: Mapping[str, JoinedTable], keys: Sequence[str]) -> None:
        self.part = part
        self._tables = tables
        self._joined: dict[Place, pa.Array] = {}
        self._of_codes: dict[Hashable, NDArray[Any]] = {}
        self.good: NDArray[np.bool_] = np.ones(len(part), bool)
        """bool [n]: the row is not bad."""
        self._bad = part.bad.first(keys) if len(part.bad) else _NONE
        self.good[part.bad.places(self._bad)] = False

    def __len__(self) -> int:
        return len(self.part)

    @property
    def bad_count(self) -> int:
        """How many rows are bad."""
        return len(self._bad)

    def bad(self) -> Iterator[BadRow]:
        """Yield the bad rows in the order of the files, each once, with the first reason."""
        yield from self.part.bad.rows(self._bad)

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

        def find() -> NDArray[Any]:
            found = vocabulary.find(self.dictionary(place))
            known = np.empty(len(found) + 1, dtype)
            known[:-1] = found
            known[-1] = null_id
            return known

        return self.of_codes(place, (vocabulary, null_id), find)

    def of_codes(self, place: Place, what: Hashable, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return what ``make`` gives for the codes of a column, made once.

        Args:
            place: The column.
            what: Names what is made, beside the column.
            make: Makes it of ``dictionary(place)``; that of a joined table serves the rows of every part.
        """
        known = self._of_codes if place.table is None else self._tables[place.table].of_codes
        key = (place, what)
        if key not in known:
            known[key] = make()
        return known[key]

    def forget(self) -> None:
        """Drop what was joined and looked up; it is made again where it is asked for."""
        self._joined = {}
        self._of_codes = {}
