"""The bad rows of a part in columns: memory maps where they were saved, so that many of them are light.

file row line byte_offset   where it was
reason raw                  why it is bad, and its own bytes
place                       its place among the rows of the part, -1: it is not among them
key                         what found it, a place in ``keys``; -1: the reader of the source
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import numbers_of
from headrace.sources import BadRow

_SCHEMA = pa.schema(
    {
        "file": pa.int32(),
        "row": pa.int64(),
        "line": pa.int64(),
        "byte_offset": pa.int64(),
        "reason": pa.large_string(),
        "raw": pa.large_binary(),
        "place": pa.int64(),
        "key": pa.int32(),
    }
)
_OF_BAD_ROW = _SCHEMA.names[:6]
_AT_ONCE = 256
"""Bad rows that are made at once: one of them may be a whole line of megabytes."""


@dataclass(frozen=True)
class Fault:
    """A row of a part that one reading or check cannot take."""

    place: int
    """The row's place in the part."""
    key: str
    """The reading or check, as ``key_of`` or ``check_key`` gives it."""
    bad: BadRow


@dataclass(frozen=True)
class BadRows:
    """What is wrong with the rows of a part: rows left out of it, and faults of rows that are in it."""

    table: pa.RecordBatch
    """One row for each bad row and each fault."""
    keys: tuple[str, ...]
    """The readings and checks that found the faults."""

    @classmethod
    def of(cls, bad: Sequence[BadRow], faults: Sequence[Fault]) -> BadRows:
        """Return them in columns: rows left out, then faults by place, in their order."""
        if not bad and not faults:
            return NO_BAD_ROWS
        faults = sorted(faults, key=lambda fault: fault.place)
        keys = tuple(dict.fromkeys(fault.key for fault in faults))
        number_of = {key: number for number, key in enumerate(keys)}
        rows = [*bad, *(fault.bad for fault in faults)]
        columns = [[getattr(row, name) for row in rows] for name in _OF_BAD_ROW]
        columns.append([-1] * len(bad) + [fault.place for fault in faults])
        columns.append([-1] * len(bad) + [number_of[fault.key] for fault in faults])
        return cls(pa.RecordBatch.from_pydict(dict(zip(_SCHEMA.names, columns, strict=True)), _SCHEMA), keys)

    def check(self, size: int) -> None:
        """Look at every byte that may have been damaged since.

        Args:
            size: Rows of the part.

        Raises:
            ValueError: An array is damaged, or a place or key is outside.
        """
        if self.table.schema.names != _SCHEMA.names or self.table.schema.types != _SCHEMA.types:
            raise ValueError("the bad rows have other columns")
        self.table.validate(full=True)
        places, numbers = self._numbers("place"), self._numbers("key")
        for values, end in ((places, size), (numbers, len(self.keys))):
            if ((values < -1) | (values >= end)).any() or len(values) != len(self):
                raise ValueError("a bad row is beyond the rows")

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def left_out(self) -> int:
        """How many rows are not among those of the part."""
        return int(np.count_nonzero(self._numbers("place") < 0)) if len(self) else 0

    def first(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """Return which of them count where only some readings and checks do.

        Args:
            keys: The readings and checks that count, in their order.

        Returns:
            int64, all rows left out and of each other row the fault that the first one of ``keys`` found,
            in the order of the files.
        """
        if not len(self):
            return np.empty(0, np.int64)
        places = self._numbers("place")
        faults = self._by_place(keys)
        faults = faults[np.unique(places[faults], return_index=True)[1]]
        chosen = np.concatenate([np.flatnonzero(places < 0), faults])
        order = np.lexsort((self._numbers("row")[chosen], self._numbers("file")[chosen]))
        return chosen[order]

    def _by_place(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """Return the faults that some readings and checks found, by place and then by their order."""
        rank_of = {key: rank for rank, key in enumerate(keys)}
        ranks = np.array([*(rank_of.get(key, -1) for key in self.keys), -1])[self._numbers("key")]
        faults = np.flatnonzero(ranks >= 0)
        return faults[np.lexsort((ranks[faults], self._numbers("place")[faults]))]

    def only(self, keys: Sequence[str]) -> BadRows:
        """Return the rows left out, and the faults that some readings and checks found, in their order."""
        if not len(self):
            return NO_BAD_ROWS
        chosen = np.concatenate([np.flatnonzero(self._numbers("place") < 0), self._by_place(keys)])
        number_of = {key: number for number, key in enumerate(keys)}
        numbers = np.array([*(number_of.get(key, -1) for key in self.keys), -1], np.int32)
        is_all = len(chosen) == len(self) and bool((np.diff(chosen) > 0).all())
        table = self.table if is_all else self.table.take(pa.array(chosen))
        renumbered = pa.array(numbers[numbers_of(table.column("key"))])
        return BadRows(table.set_column(_SCHEMA.names.index("key"), "key", renumbered), tuple(keys))

    def places(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places in the part of those among ``chosen`` that are rows of it."""
        places = self._numbers("place")[chosen]
        return places[places >= 0]

    def rows(self, chosen: NDArray[np.int64]) -> Iterator[BadRow]:
        """Yield bad rows one by one."""
        table = self.table.select(_OF_BAD_ROW)
        for start in range(0, len(chosen), _AT_ONCE):
            some = table.take(pa.array(chosen[start : start + _AT_ONCE]))
            yield from map(BadRow, *(column.to_pylist() for column in some.columns))

    def faults(self) -> Iterator[Fault]:
        """Yield every fault of a row that is in the part."""
        found = np.flatnonzero(self._numbers("place") >= 0)
        places, numbers = self._numbers("place")[found], self._numbers("key")[found]
        for place, number, bad in zip(places.tolist(), numbers.tolist(), self.rows(found), strict=True):
            yield Fault(place, self.keys[number], bad)

    def _numbers(self, name: str) -> NDArray[np.int64]:
        numbers: NDArray[np.int64] = numbers_of(self.table.column(name))
        return numbers


NO_BAD_ROWS = BadRows(
    pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in _SCHEMA], schema=_SCHEMA), ()
)
"""Of a part whose rows are all as declared."""
