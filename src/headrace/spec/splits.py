"""Splits: which rows are train, valid and test.

A key of ``[split]`` that is no option names a split. ``train`` must be there;
``valid``, ``test`` and any others may be.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field

from headrace.spec.base import LARGEST_INTEGER, Declared, IdTexts, OneOrMoreTexts, Text, one_of
from headrace.spec.problems import Problem, quoted
from headrace.spec.times import DeclaredMoment, Moment, Unit, to_microseconds

Share: TypeAlias = Annotated[float, Field(gt=0, le=1)]
Seed: TypeAlias = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]

USUAL_SPLITS = ("train", "valid", "test")
_SPLIT_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_FOLDERS_OF_A_STORE = ("vocabularies", "quarantine", "events", "tables")
_ROUNDING = 1e-9


class Bounds(Declared):
    """A stretch of time: ``from`` is included, ``until`` is not; None is open."""

    from_: DeclaredMoment | None = None
    until: DeclaredMoment | None = None

    def mistakes(self) -> Iterable[Problem]:
        """Find a stretch without bounds."""
        if self.from_ is None and self.until is None:
            yield Problem((), "needs 'from' or 'until'.")


class SplitBase(Declared):
    """Common to all: what is no option is a split."""

    model_config = ConfigDict(extra="allow")

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """Return the keys that are not splits."""
        return tuple(key for key in cls.allowed() if key not in USUAL_SPLITS)

    @classmethod
    def takes(cls, key: object) -> bool:
        """Return whether a key is an option or can name a split, and is not a slip of either."""
        return key in cls.allowed() or (isinstance(key, str) and _names_a_split(key, cls.options()))

    @property
    def parts(self) -> Mapping[str, Any]:
        """What was declared for each split: train, valid, test, then the others as written."""
        usual = {name: getattr(self, name) for name in USUAL_SPLITS if getattr(self, name) is not None}
        return {**usual, **(self.model_extra or {})}


def _names_a_split(key: str, options: tuple[str, ...]) -> bool:
    slip = any(sorted(key) == sorted(name) for name in USUAL_SPLITS)
    slip = slip or bool(difflib.get_close_matches(key, options, n=1, cutoff=0.75))
    return _SPLIT_NAME.fullmatch(key) is not None and not slip and key not in _FOLDERS_OF_A_STORE


class TimeSplit(SplitBase):
    """By the row's time; rows in no stretch, such as those of the purge gap, are in no split."""

    __pydantic_extra__: dict[str, Bounds]

    by: Literal["time"] = "time"
    train: Bounds
    valid: Bounds | None = None
    test: Bounds | None = None

    column: Text | None = None
    """Where it is not the column of ``[time]``."""

    unit: Unit | None = None
    """What the numbers of ``column`` count; None is seconds."""

    require_gap: bool = False
    """Whether a purge gap shorter than an attribution window is an error, not a warning."""

    def mistakes(self) -> Iterable[Problem]:
        """Find a unit without its column."""
        if self.unit is not None and self.column is None:
            yield Problem(("unit",), "is that of 'column' here; the unit of the row's time stands in [time].")


class _ByShare(SplitBase):
    """Splits as shares of all rows; what is left over is in no split."""

    __pydantic_extra__: dict[str, Share]

    train: Share
    valid: Share | None = None
    test: Share | None = None

    seed: Seed = 0
    """Another seed, another draw."""

    def mistakes(self) -> Iterable[Problem]:
        """Find shares that are more than everything."""
        total = sum(self.parts.values())
        if total > 1 + _ROUNDING:
            yield Problem((), f"the shares add up to {total:.6g}; they may add up to 1.")


class RandomSplit(_ByShare):
    """By a draw for each row, or for each value of ``key``."""

    by: Literal["random"] = "random"

    key: Text | None = None
    """Rows with one value of this column are never on two sides."""


class GroupSplit(_ByShare):
    """By a draw for each value of ``key``: its rows are never on two sides."""

    by: Literal["group"] = "group"

    key: Text


class ColumnSplit(SplitBase):
    """By the value of a column; rows with a value in no list are in no split."""

    __pydantic_extra__: dict[str, IdTexts]

    by: Literal["column"] = "column"
    column: Text
    train: IdTexts
    valid: IdTexts | None = None
    test: IdTexts | None = None

    def mistakes(self) -> Iterable[Problem]:
        """Find empty lists, and a value in two of them."""
        return _repeated(self.parts)


class FileSplit(SplitBase):
    """By the file: globs over the files of ``[source]``; a file in no split is not read."""

    __pydantic_extra__: dict[str, OneOrMoreTexts]

    by: Literal["file"] = "file"
    train: OneOrMoreTexts
    valid: OneOrMoreTexts | None = None
    test: OneOrMoreTexts | None = None

    def mistakes(self) -> Iterable[Problem]:
        """Find a glob in two splits."""
        return _repeated(self.parts)


def _repeated(parts: Mapping[str, tuple[str, ...]]) -> Iterable[Problem]:
    owner: dict[str, str] = {}
    for name, values in parts.items():
        if not values:
            yield Problem((name,), "the list is empty.")
        for place, value in enumerate(values):
            if value in owner:
                yield Problem((name, place), f"{quoted(value)} is in '{owner[value]}' already.")
            owner.setdefault(value, name)


def bounds_in_microseconds(bounds: Bounds, unit: Unit) -> tuple[int | None, int | None]:
    """Return ``[from, until)`` in int64 microseconds since the epoch, UTC; None is open.

    Raises:
        ValueError: A bound is finer than a microsecond, or does not fit int64.
    """
    return _optional(bounds.from_, unit), _optional(bounds.until, unit)


def _optional(moment: Moment | None, unit: Unit) -> int | None:
    return None if moment is None else to_microseconds(moment, unit)


Split: TypeAlias = Annotated[
    TimeSplit | RandomSplit | GroupSplit | ColumnSplit | FileSplit,
    one_of("by", TimeSplit, RandomSplit, GroupSplit, ColumnSplit, FileSplit),
]
