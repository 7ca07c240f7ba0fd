"""A spec of which parts may be missing, so that the rest is checked in the same run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.spec.problems import Path

if TYPE_CHECKING:
    from headrace.spec.model import Spec

SECTIONS_OF_NAMES = ("vocabularies", "features", "labels", "tables")
"""The tables whose keys are names that the user gives."""

_STAND_INS: dict[str, Any] = {
    "name": "unnamed",
    "source": {"files": ["*"], "format": "jsonl"},
    "features": {},
}
"""What stands for a required key that is wrong; nothing is checked against it."""

_STAND_INS_BY_KIND: dict[str, dict[str, Any]] = {
    "sequence": {"max_length": 1},
    "set": {"max_length": 1},
    "weighted_set": {"max_length": 1},
    "time": {"part": "hour"},
    "cross": {"buckets": 2},
    "hashed": {"buckets": 2},
    "vector": {"dim": 1},
    "attribution": {"window": "1us"},
}
"""The same for features and labels."""


@dataclass(frozen=True)
class Draft:
    """What is right in a spec, and where the rest is wrong.

    Attributes:
        spec: What is right.
        broken: Tables, entries of tables, and keys of either that are wrong.
    """

    spec: Spec
    broken: frozenset[Path] = frozenset()

    def has(self, section: str, name: str | None = None) -> bool:
        """Return whether a table or one of its entries is written, be it right or wrong."""
        if (section,) in self.broken or (section, name) in self.broken:
            return True
        found = getattr(self.spec, section)
        return found is not None if name is None else name in found

    def names(self, section: str) -> list[str]:
        """Return the names in a table, those of wrong entries included."""
        broken = [str(path[1]) for path in self.broken if len(path) == 2 and path[0] == section]
        return [*getattr(self.spec, section), *broken]


def part_of(place: Path) -> Path:
    """Return the table or entry that a key is in: ``("features", "user_id")``, ``("split",)``."""
    return place[: 2 if place[0] in SECTIONS_OF_NAMES else 1]


def key_of(place: Path) -> Path:
    """Return the key of a table or entry that a place is in: ``("features", "user_id", "reserved")``."""
    return place[: len(part_of(place)) + 1]


def without(data: Mapping[Any, Any], cut: Iterable[Path]) -> dict[Any, Any]:
    """Return what a spec declares less some keys and parts, with stand-ins for what it must have."""
    sound = _less(data, cut)
    for section in ("features", "labels"):
        if isinstance(sound.get(section), Mapping):
            sound[section] = {name: _completed(one) for name, one in sound[section].items()}
    return {**_STAND_INS, **sound}


def _completed(declared: object) -> object:
    if not isinstance(declared, Mapping) or not isinstance(declared.get("kind"), str):
        return declared
    return {**_STAND_INS_BY_KIND.get(declared["kind"], {}), **declared}


def _less(data: Mapping[Any, Any], cut: Iterable[Path]) -> dict[Any, Any]:
    below: dict[str | int, list[Path]] = {}
    for path in cut:
        below.setdefault(path[0], []).append(path[1:])
    return {
        key: _less(value, below[key]) if key in below and isinstance(value, Mapping) else value
        for key, value in data.items()
        if () not in below.get(key, ())
    }
