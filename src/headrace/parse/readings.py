"""How a raw column is read: declarations without work, the unit in which parsed data is kept.

Two features that need the same reading of a column share it; a reading that
was spilled to disk serves every later build that declares it.
"""

from __future__ import annotations

import functools
import json
from dataclasses import asdict, dataclass
from typing import Literal

from headrace.spec.times import Unit


@dataclass(frozen=True)
class Ids:
    """One id text per row."""

    path: str


@dataclass(frozen=True)
class IdLists:
    """A list of id texts per row; a text is split at ``separator``."""

    path: str
    separator: str


@dataclass(frozen=True)
class WeightedIds:
    """Pairs of id text and weight per row."""

    path: str
    separator: str
    pair_separator: str


@dataclass(frozen=True)
class Numbers:
    """One number per row."""

    path: str
    dtype: Literal["int", "float"]
    nan: Literal["bad", "missing"]


@dataclass(frozen=True)
class Flags:
    """0 or 1 per row, or true and false."""

    path: str


@dataclass(frozen=True)
class Vectors:
    """``dim`` numbers per row; a text is split at ``separator``."""

    path: str
    dim: int
    separator: str


@dataclass(frozen=True)
class Times:
    """One time per row, as int64 microseconds since the epoch, UTC."""

    path: str
    unit: Unit
    format: str | None
    timezone: str | None


@dataclass(frozen=True)
class TimeLists:
    """A list of times per row."""

    path: str
    separator: str
    unit: Unit
    format: str | None
    timezone: str | None


Reading = Ids | IdLists | WeightedIds | Numbers | Flags | Vectors | Times | TimeLists


@functools.cache
def key_of(reading: Reading) -> str:
    """Return a text that is equal for equal readings, on every machine."""
    return json.dumps({"as": type(reading).__name__, **asdict(reading)}, sort_keys=True, ensure_ascii=False)
