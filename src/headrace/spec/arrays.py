"""The arrays that a declaration puts into a batch, by name."""

from __future__ import annotations

from headrace.spec.features import Feature, Sequence, Set, WeightedSet
from headrace.spec.labels import Label

RESERVED_ARRAYS = ("weight", "sample_id", "valid", "negatives", "negatives_log_q", "target_log_q")
"""Arrays that a loader adds; no feature or label can have their names."""


def feature_arrays(name: str, feature: Feature) -> tuple[str, ...]:
    """Return every array that a feature can give, the one with ``masks=True`` (``f_present``) last."""
    names = [name]
    if isinstance(feature, (Sequence, Set, WeightedSet)):
        names += [f"{name}_mask", f"{name}_lengths"]
    if isinstance(feature, WeightedSet):
        names.append(f"{name}_weights")
    if isinstance(feature, Sequence):
        names += [f"{name}_{column}" for column in feature.with_]
    return (*names, f"{name}_present")


def label_arrays(name: str, label: Label) -> tuple[str, ...]:
    """Return every array that a label can give."""
    return (name, f"{name}_mask", f"{name}_weight") if label.weight is not None else (name, f"{name}_mask")
