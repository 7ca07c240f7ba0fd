"""Item and user tables joined to the rows by key, one look-up for each different key of a part."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import numbers_of
from headrace.encoding.declared import Place
from headrace.errors import SourceError
from headrace.fit.index import Index
from headrace.kernels.lookup import NULL_CODE
from headrace.parse.part import Part
from headrace.parse.readings import Ids, key_of
from headrace.scratch import IN_MEMORY, Scratch
from headrace.sources import BadRow

_ROWS_AT_ONCE = 1 << 18


class JoinedTable:
    """A parsed table, indexed by its key.

    Args:
        name: The table's name in the spec.
        key: Its key column, which the rows have too.
        part: Its parsed rows.
        scratch: Where what is as large as the table lies.

    Raises:
        SourceError: Two rows have one key and different values.
    """

    def __init__(self, name: str, key: str, part: Part, scratch: Scratch = IN_MEMORY) -> None:
        self.name = name
        self.part = part
        self._key = key_of(Ids(key))
        self._bad = part.bad.first(part.bad.keys)
        values = part.dictionaries[self._key]
        self._first_row = scratch.full(len(values) + 1, -1, np.int64)
        """The row of each code of the key; the last one is that of an absent key."""
        self._index = Index.build(values, scratch)
        self.of_codes: dict[Hashable, NDArray[Any]] = {}
        """What was made of the codes of its columns, as ids and hashes; see ``Rows.of_codes``."""
        good = np.ones(len(part), bool)
        good[part.bad.places(self._bad)] = False
        for start in range(0, len(part), _ROWS_AT_ONCE):
            self._add_rows(start, good[start : start + _ROWS_AT_ONCE])

    @property
    def bad_count(self) -> int:
        """How many rows are bad."""
        return len(self._bad)

    def bad(self) -> Iterator[BadRow]:
        """Yield the rows that cannot be read as declared, each once: no row is joined to them."""
        yield from self.part.bad.rows(self._bad)

    def column(self, place: Place, rows: Part) -> pa.Array:
        """Return one typed column of the table for each of ``rows``, missing where the key is not here."""
        column, found = self.part.columns[key_of(place.reading)], self._rows(rows)
        taken = column.take(pa.array(found, from_pandas=False, mask=found < 0))
        return taken.fill_null(NULL_CODE) if isinstance(place.reading, Ids) else taken

    def dictionary(self, place: Place) -> pa.Array:
        """Return the id texts of a column's codes."""
        return self.part.dictionaries[key_of(place.reading)]

    def _rows(self, rows: Part) -> NDArray[np.int64]:
        """Return the table's row of each row, -1 where there is none."""
        found = self._index.find(rows.dictionaries[self._key])
        by_code = np.append(self._first_row[found], -1)
        codes = numbers_of(rows.columns[self._key]).astype(np.int64)
        result: NDArray[np.int64] = by_code[np.where(codes == NULL_CODE, len(by_code) - 1, codes)]
        return result

    def _add_rows(self, start: int, good: NDArray[np.bool_]) -> None:
        """Note the first row of each key among some rows, and hold that later ones are equal to it."""
        codes = numbers_of(self.part.columns[self._key])[start : start + len(good)]
        places = np.flatnonzero((codes != NULL_CODE) & good)
        codes, rows = codes[places], places + start
        new = self._first_row[codes] < 0
        self._first_row[codes[new][::-1]] = rows[new][::-1]
        first = self._first_row[codes]
        self._refuse_conflicts(rows[first != rows], first[first != rows])

    def _refuse_conflicts(self, again: NDArray[np.int64], before: NDArray[np.int64]) -> None:
        for column in self.part.columns.values():
            mine, theirs = column.take(pa.array(again)), column.take(pa.array(before))
            if mine.equals(theirs):
                continue
            at = next(i for i in range(len(again)) if mine[i] != theirs[i])
            code = numbers_of(self.part.columns[self._key])[again[at]]
            key = str(self.part.dictionaries[self._key][code])
            raise SourceError(
                f"tables.{self.name}: the key {key!r} stands in rows {before[at] + 1} and {again[at] + 1} "
                "with different values. Keep one row for each key."
            )
