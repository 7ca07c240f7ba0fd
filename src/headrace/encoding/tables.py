"""Item and user tables joined to the rows by key, one look-up for each different key of a part."""

from __future__ import annotations

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
from headrace.sources import BadRow


class JoinedTable:
    """A parsed table, indexed by its key.

    Args:
        name: The table's name in the spec.
        key: Its key column, which the rows have too.
        part: Its parsed rows.

    Raises:
        SourceError: Two rows have one key and different values.
    """

    def __init__(self, name: str, key: str, part: Part) -> None:
        self.name = name
        self.part = part
        self._key = key_of(Ids(key))
        faults = {fault.place: fault.bad for fault in reversed(part.faults)}
        self.bad: list[BadRow] = sorted([*part.bad, *faults.values()], key=lambda bad: (bad.file, bad.row))
        """Rows that cannot be read as declared, each once: no row is joined to them."""
        codes = numbers_of(part.columns[self._key])
        good = np.ones(len(part), bool)
        good[list(faults)] = False
        known = np.flatnonzero((codes != NULL_CODE) & good)
        values = part.dictionaries[self._key]
        self._first_row = np.full(len(values) + 1, -1, np.int64)
        """The row of each code of the key; the last one is that of an absent key."""
        self._first_row[codes[known][::-1]] = known[::-1]
        self._index = Index.build(values)
        self._refuse_conflicts(codes, known)

    def column(self, place: Place, rows: Part) -> pa.Array:
        """Return one typed column of the table for each of ``rows``, missing where the key is not here."""
        column = self.part.columns[key_of(place.reading)]
        taken = column.take(pa.array(self._rows(rows), from_pandas=False, mask=self._rows(rows) < 0))
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

    def _refuse_conflicts(self, codes: NDArray[np.uint32], known: NDArray[np.int64]) -> None:
        first = self._first_row[codes[known]]
        again, before = known[first != known], first[first != known]
        for column in self.part.columns.values():
            mine, theirs = column.take(pa.array(again)), column.take(pa.array(before))
            if mine.equals(theirs):
                continue
            at = next(i for i in range(len(again)) if mine[i] != theirs[i])
            value = self.part.dictionaries[self._key][codes[again[at]]]
            raise SourceError(
                f"tables.{self.name}: the key {str(value)!r} stands in rows "
                f"{before[at] + 1} and {again[at] + 1} "
                "with different values. Keep one row for each key."
            )
