"""What is wrong with single rows: the row is bad, the others are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headrace.parse.texts import id_text

_LONGEST_SHOWN = 60


@dataclass
class Faults:
    """Rows of a block that cannot be what was declared, each with its reason."""

    rows: list[int] = field(default_factory=list)
    """Places in the block, ascending for one column."""
    reasons: list[str] = field(default_factory=list)

    def add(self, rows: NDArray[np.int64] | Iterable[int], reason: Callable[[int], str]) -> None:
        """Add ``reason(row)`` for each of ``rows``."""
        for row in rows:
            self.rows.append(int(row))
            self.reasons.append(reason(int(row)))

    def extend(self, faults: Faults, rows: NDArray[np.int64]) -> None:
        """Add faults of chosen rows: ``rows[i]`` is the place in the block of their row ``i``."""
        self.rows.extend(int(rows[row]) for row in faults.rows)
        self.reasons.extend(faults.reasons)

    def __len__(self) -> int:
        return len(self.rows)


def shown(value: object) -> str:
    """Return a raw value as a message shows it, cut where it is long.

    A number is shown as its text: how a block of rows holds it depends on its neighbours.
    """
    if value is None:
        return "a missing value"
    text = repr(id_text(value)) if isinstance(value, int | float) else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}... ({len(text)} characters)"
