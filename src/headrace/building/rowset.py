"""All parsed rows of a build, and which split each belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from headrace.encoding.declared import label_places, time_place
from headrace.encoding.labels import censored
from headrace.encoding.rows import Rows
from headrace.encoding.split import OUTSIDE, assign_splits
from headrace.fit.fitted import Fitted
from headrace.sources import BadRow
from headrace.spec import Attribution, Spec

_BAD = -2
_DROPPED = -3
_NEVER = -(2**63)


@dataclass(frozen=True)
class Accounting:
    """Where every row that was read went: the parts add up to ``read``."""

    read: int
    written: Mapping[str, int]
    """By split."""
    quarantined: int
    outside: int
    """In no split."""
    dropped: int
    """Censored, with ``censored = "drop"``."""


class RowSet:
    """The parts of the rows with the split of each row.

    Args:
        spec: The declaration.
        parts: In the order of the rows.
        file_names: Names of the source files, by number.
        split: One split for every row, in place of the spec's.
    """

    def __init__(
        self, spec: Spec, parts: Sequence[Rows], file_names: Sequence[str], split: str | None = None
    ) -> None:
        self.spec = spec
        self.parts = parts
        self.split_names = spec.split_names if split is None else (split,)
        self._splits = [
            _with_bad(np.zeros(len(rows), np.int8) if split else assign_splits(spec, rows, file_names), rows)
            for rows in parts
        ]

    def chosen(self, part: int, split: str) -> NDArray[np.int64]:
        """Return which rows of a part are in a split, ascending."""
        return np.flatnonzero(self._splits[part] == self.split_names.index(split))

    def counts(self, split: str) -> NDArray[np.int64]:
        """Return how many rows of each part are in a split, int64 [parts]."""
        number = self.split_names.index(split)
        return np.array([np.count_nonzero(splits == number) for splits in self._splits], np.int64)

    def observed_until(self) -> dict[str, dict[str, int]]:
        """Return up to when each attribution label's conversions are known, by split, int64 microseconds."""
        return {
            name: {split: self._observed_until(name, label, split) for split in self.split_names}
            for name, label in self.spec.labels.items()
            if isinstance(label, Attribution)
        }

    def _observed_until(self, name: str, label: Attribution, split: str) -> int:
        declared = self.spec.observed_until(name)
        if isinstance(declared, int):
            return declared
        end = self.spec.split_bounds().get(split, (None, None))[1]
        return end if declared == "split" and end is not None else self._log_end(label)

    def _log_end(self, label: Attribution) -> int:
        """Return the largest time read: of the rows, of clicks or of conversions."""
        places = list(label_places(self.spec, label)[:2])
        if self.spec.time is not None:
            places.append(time_place(self.spec.time))
        ends = [pc.max(rows.column(place)).as_py() for rows in self.parts for place in places]
        return max((end for end in ends if end is not None), default=_NEVER)

    def drop_censored(self, observed_until: Mapping[str, Mapping[str, int]]) -> None:
        """Take the rows out that a label with ``censored = "drop"`` leaves out."""
        fitted = Fitted(vocabularies={}, observed_until=observed_until)
        if not any(
            isinstance(one, Attribution) and one.censored == "drop" for one in self.spec.labels.values()
        ):
            return
        for splits, rows in zip(self._splits, self.parts, strict=True):
            for number, split in enumerate(self.split_names):
                splits[(splits == number) & censored(self.spec, rows, split, fitted)] = _DROPPED

    def bad(self) -> Iterator[BadRow]:
        """Yield the bad rows of all parts in the order of the files."""
        for rows in self.parts:
            yield from rows.bad()

    def accounting(self) -> Accounting:
        """Count where the rows went."""
        count = {
            kind: sum(int(np.count_nonzero(s == kind)) for s in self._splits) for kind in (OUTSIDE, _DROPPED)
        }
        quarantined = sum(rows.bad_count for rows in self.parts)
        return Accounting(
            read=sum(len(rows) + rows.part.bad.left_out for rows in self.parts),
            written={split: int(self.counts(split).sum()) for split in self.split_names},
            quarantined=quarantined,
            outside=count[OUTSIDE],
            dropped=count[_DROPPED],
        )

    def train(self) -> Iterator[tuple[Rows, NDArray[np.int64]]]:
        """Yield each part with its train rows; what was joined to them is dropped afterwards."""
        for number, rows in enumerate(self.parts):
            yield rows, self.chosen(number, "train")
            rows.forget()


def _with_bad(splits: NDArray[np.int8], rows: Rows) -> NDArray[np.int8]:
    splits = splits.copy()
    splits[~rows.good] = _BAD
    return splits
