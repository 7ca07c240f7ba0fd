"""The ids of a feature: how many there are, how wide they are stored, and which one is a missing value's."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.fit.vocabulary import Vocabulary
from headrace.spec import (
    TIME_PARTS,
    Categorical,
    Cross,
    Feature,
    Hashed,
    Numeric,
    Sequence,
    Set,
    Spec,
    TimePart,
    WeightedSet,
)

UNKNOWN = 1
MISSING = 2
FIRST = 3
"""Hashed, crossed, bucketized and time features have ids PAD 0, UNKNOWN 1, MISSING 2, then these."""


def table_size(feature: Feature, vocabulary: Vocabulary | None) -> int | None:
    """Return the rows of a feature's embedding table, reserved ids included; None: it has no ids."""
    match feature:
        case Categorical() | Sequence() | Set() | WeightedSet():
            assert vocabulary is not None
            return len(vocabulary)
        case Hashed() | Cross():
            return FIRST + feature.buckets
        case TimePart():
            return FIRST + TIME_PARTS[feature.part].size
        case Numeric(transform="bucketize", buckets=int(buckets)):
            return FIRST + buckets
    return None


def id_dtype(size: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest unsigned type that holds the ids of a table of ``size`` rows."""
    for dtype in (np.uint8, np.uint16, np.uint32):
        if size <= np.iinfo(dtype).max + 1:
            return dtype
    return np.uint64


def vocabulary_name(spec: Spec, name: str) -> str:
    """Return the name of the vocabulary that a feature's ids come from: a shared one, or its own."""
    return getattr(spec.features[name], "vocabulary", None) or name


def null_id(feature: Feature, vocabulary: Vocabulary) -> int:
    """Return the id of a missing value of a feature on a vocabulary."""
    missing = getattr(feature, "missing", "own")
    return {"own": vocabulary.rules.null_id, "unknown": vocabulary.unk, "pad": vocabulary.pad}[missing]
