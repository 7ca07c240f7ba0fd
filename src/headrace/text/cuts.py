"""How streams are cut into rows: by arithmetic, by a list of windows, or by a packing plan.

Each kind of cut answers the same two questions: how many rows there are, and,
for row numbers, which runs of tokens fill each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headrace.errors import TextError
from headrace.kernels.windows_fill import first_outside
from headrace.kernels.windows_layout import cumulate_windows, list_windows, locate_windows
from headrace.text.plans import RunPlan, kept_plan
from headrace.text.runs import Integers, Runs
from headrace.text.streams import Streams

TAILS = {"pad": 0, "drop": 1, "shift": 2}
"""The kernels' number of each ``tail``."""


def no_such_window(number: int, count: int) -> TextError:
    """Return the error for a window number beyond the last."""
    return TextError(f"window {number}: this epoch has {count} windows, numbered from 0.")


def check_windows(indices: Integers, count: int) -> None:
    """Check window numbers.

    Raises:
        TextError: One is outside ``[0, count)``.
    """
    wrong = first_outside(indices, count)
    if wrong >= 0:
        raise no_such_window(int(indices[wrong]), count)


class Cut(Protocol):
    """Rows of one epoch."""

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def width(self, indices: Integers) -> int:
        """Return how many tokens wide a batch of the rows ``indices`` (int64 [B]) is."""
        ...

    def runs(self, indices: Integers) -> Runs:
        """Return what fills the rows ``indices`` (int64 [B]).

        Raises:
            TextError: One of them is not there.
        """
        ...


@dataclass(frozen=True, eq=False)
class StrideCut:
    """Windows of a fixed stride: nothing is kept but how many there are before each stream."""

    streams: Streams
    window: int
    stride: int
    offsets: Integers
    """int64 [K] or [1], where the second window begins; 0: at ``stride``."""
    tail: str
    min_remainder: int

    @cached_property
    def cumulative(self) -> Integers:
        """int64 [K+1], windows before each stream."""
        result: Integers = cumulate_windows(
            self.streams.offsets, self.window, self.stride, self.offsets, TAILS[self.tail], self.min_remainder
        )
        return result

    def __len__(self) -> int:
        return int(self.cumulative[-1])

    def width(self, indices: Integers) -> int:
        """Return the tokens in a window."""
        return self.window

    def runs(self, indices: Integers) -> Runs:
        """Return one run a row."""
        row_runs = np.empty(indices.size + 1, np.int64)
        position, size, document, seen = np.empty((4, indices.size), np.int64)
        wrong = locate_windows(
            indices,
            self.cumulative,
            self.streams.offsets,
            self.streams.document_offsets,
            self.window,
            self.stride,
            self.offsets,
            TAILS[self.tail],
            row_runs,
            position,
            size,
            document,
            seen,
        )
        if wrong >= 0:
            raise no_such_window(int(indices[wrong]), len(self))
        return Runs(row_runs, position, size, document, seen)


@dataclass(frozen=True, eq=False)
class ListedCut:
    """Windows whose starts were computed one by one, and are kept."""

    streams: Streams
    window: int
    cumulative: Integers
    """int64 [K+1], windows before each stream."""
    position: Integers
    """int64 [N]."""
    size: NDArray[np.int32]
    """int32 [N]."""
    seen: NDArray[np.int32]
    """int32 [N]."""

    @classmethod
    def from_starts(
        cls,
        streams: Streams,
        starts: Integers,
        start_offsets: Integers,
        first_ends: Integers,
        window: int,
        tail: str,
        min_remainder: int,
    ) -> ListedCut:
        """Cut streams at given starts; the last window is left out or moved as ``tail`` says.

        Args:
            streams: What is cut.
            starts: int64 [N], ascending in each stream and relative to it.
            start_offsets: int64 [K+1], which starts are of which stream.
            first_ends: int64 [K] or [1], where a stream's first window is to end.
            window: Tokens in a window.
            tail: ``"pad"``, ``"drop"`` or ``"shift"``.
            min_remainder: Fewest new tokens for which a last, incomplete window is kept.
        """
        cumulative = np.zeros(start_offsets.size, np.int64)
        position, (size, seen) = np.empty(starts.size, np.int64), np.empty((2, starts.size), np.int32)
        list_windows(
            streams.offsets,
            starts,
            start_offsets,
            first_ends,
            window,
            TAILS[tail],
            min_remainder,
            cumulative,
            position,
            size,
            seen,
        )
        count = int(cumulative[-1])
        return cls(streams, window, cumulative, position[:count], size[:count], seen[:count])

    @classmethod
    def kept(
        cls, streams: Streams, kind: str, window: int, declared: object, make: Callable[[], ListedCut]
    ) -> ListedCut:
        """Return the windows that ``make`` lists: listed on first use, and kept beside the tokens.

        Args:
            streams: What is cut.
            kind: Names the plan's file.
            window: Tokens in a window.
            declared: What else the windows depend on.
            make: Lists them.
        """

        def plan() -> RunPlan:
            cut = make()
            columns: dict[str, NDArray[Any]] = {"position": cut.position, "size": cut.size, "seen": cut.seen}
            return RunPlan(cut.cumulative, columns)

        def fits(plan: RunPlan) -> bool:
            enough = plan.offsets.size == streams.offsets.size and "seen" in plan.columns
            return enough and int(plan.columns["size"].max(initial=0)) <= window

        found = kept_plan(streams, kind, (window, declared), plan, fits)
        return cls(
            streams, window, found.offsets, *(found.columns[name] for name in ("position", "size", "seen"))
        )

    def __len__(self) -> int:
        return self.position.size

    def width(self, indices: Integers) -> int:
        """Return the tokens in a window."""
        return self.window

    def runs(self, indices: Integers) -> Runs:
        """Return one run a row."""
        check_windows(indices, len(self))
        position = self.position[indices]
        return Runs(
            np.arange(indices.size + 1),
            position,
            self.size[indices].astype(np.int64),
            self.streams.documents_at(position),
            self.seen[indices].astype(np.int64),
        )
