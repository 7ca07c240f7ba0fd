"""What batches need to know of a store's spec, read from the manifest as it is.

The spec as a whole is a tree of models whose machinery takes longer to import than a store takes
to open; batches need the kinds of features and the lengths of lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headrace.dataset.manifest import Manifest
from headrace.errors import StoreError

LISTS = ("sequence", "set", "weighted_set")
"""Kinds of features that are a list of ids."""
_KINDS = (*LISTS, "categorical", "numeric", "time", "cross", "hashed", "vector")
_LONGEST = (1 << 31) - 1


@dataclass(frozen=True)
class StoredFeature:
    """One feature of a store."""

    kind: str
    """As in the spec."""
    length: int
    """Padded length of a list, numbers of a vector; 0 for others."""
    pad: Literal["left", "right"]
    """Where a list is padded."""
    is_number: bool
    """One float32 for each row; else ids, or a vector."""


@dataclass(frozen=True)
class StoredColumns:
    """What a store's spec declares, as far as its shards have columns of it."""

    features: Mapping[str, StoredFeature]
    labels: Mapping[str, bool]
    """Whether each label is a class: int64, not float32."""
    has_id: bool
    has_time: bool
    has_weight: bool


def stored_columns(manifest: Manifest, folder: Path) -> StoredColumns:
    """Read the columns that the spec of a store declares.

    Raises:
        StoreError: The manifest's spec is none; where it is a wrong one, the first mistake is told.
    """
    try:
        return declared_columns(manifest.details["spec"])
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise StoreError(
            f"{folder}: the spec in the manifest cannot be read ({error!r}). Build the store again."
        ) from None


def declared_columns(spec: Mapping[str, Any]) -> StoredColumns:
    """Return the columns that a spec declares, from what ``Spec.to_dict`` gives."""
    return StoredColumns(
        features={name: _feature(declared) for name, declared in spec["features"].items()},
        labels={name: declared["kind"] == "class" for name, declared in spec.get("labels", {}).items()},
        has_id="id" in spec,
        has_time="time" in spec,
        has_weight="weight" in spec,
    )


def _feature(declared: Mapping[str, Any]) -> StoredFeature:
    kind = _one_of(declared["kind"], _KINDS)
    pad = declared.get("pad", "left") if kind == "sequence" else "right"
    return StoredFeature(
        kind=kind,
        length=_length(declared["dim" if kind == "vector" else "max_length"]) if _is_long(kind) else 0,
        pad="left" if _one_of(pad, ("left", "right")) == "left" else "right",
        is_number=kind == "numeric" and declared.get("transform") != "bucketize",
    )


def _is_long(kind: str) -> bool:
    return kind == "vector" or kind in LISTS


def _one_of(value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{value!r}, expected one of {', '.join(allowed)}")
    return str(value)


def _length(value: Any) -> int:
    if not isinstance(value, int) or not 1 <= value <= _LONGEST:
        raise ValueError(f"{value!r}, expected a length")
    return value
