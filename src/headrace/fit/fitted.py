"""Everything that was learned from the train split, as the encoders take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.fit.statistics import Statistics
from headrace.fit.vocabulary import Vocabulary


@dataclass(frozen=True)
class Fitted:
    """What encoding needs beside the declaration."""

    vocabularies: Mapping[str, Vocabulary]
    """By the name of the vocabulary."""
    statistics: Mapping[str, Statistics] = field(default_factory=dict)
    """By the name of the numeric feature, where its transform is fitted."""
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The classes of each class label, in the order of their numbers."""
    observed_until: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """For each attribution label, by split: up to when conversions are known, int64 microseconds."""
