"""What batches read of a spec is what the spec itself says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.dataset.declared import LISTS, StoredColumns, stored_columns
from headrace.dataset.manifest import Manifest
from headrace.errors import StoreError
from headrace.spec import ClassLabel, Numeric, Sequence, Set, Spec, Vector, WeightedSet

SPEC: dict[str, Any] = {
    "name": "small",
    "source": {"files": "rows.jsonl"},
    "time": {"column": "ts"},
    "id": {"column": "request"},
    "weight": {"column": "w"},
    "split": {"by": "time", "train": {"until": "2025-06-02"}, "test": {"from": "2025-06-02"}},
    "features": {
        "color": {"kind": "categorical"},
        "left": {"kind": "sequence", "max_length": 7},
        "right": {"kind": "sequence", "max_length": 3, "pad": "right"},
        "tags": {"kind": "set", "max_length": 5},
        "weighted": {"kind": "weighted_set", "max_length": 4},
        "price": {"kind": "numeric"},
        "bins": {"kind": "numeric", "transform": "bucketize", "buckets": 4},
        "hour": {"kind": "time", "column": "ts", "part": "hour"},
        "crossed": {"kind": "cross", "columns": ["color", "price"], "buckets": 10},
        "hashed": {"kind": "hashed", "buckets": 10},
        "embedding": {"kind": "vector", "dim": 8},
    },
    "labels": {
        "click": {"kind": "binary"},
        "rating": {"kind": "continuous"},
        "genre": {"kind": "class"},
    },
}


def read(spec: Any) -> StoredColumns:
    return stored_columns(Manifest("rows", "f", {}, details={"spec": spec}, versions={}), Path("store"))


def declared(changes: dict[str, Any]) -> Spec:
    return Spec.from_dict({**SPEC, **changes})


def test_every_kind_of_feature() -> None:
    spec = declared({})
    columns = read(spec.to_dict())
    assert list(columns.features) == list(spec.features)
    for name, feature in spec.features.items():
        found = columns.features[name]
        assert found.kind == feature.kind
        assert (found.kind in LISTS) == isinstance(feature, Sequence | Set | WeightedSet)
        assert found.is_number == (isinstance(feature, Numeric) and feature.transform != "bucketize")
        if isinstance(feature, Sequence | Set | WeightedSet):
            assert found.length == feature.max_length
            assert found.pad == getattr(feature, "pad", "right")
        if isinstance(feature, Vector):
            assert found.length == feature.dim


def test_labels_and_what_else_a_shard_has() -> None:
    spec = declared({})
    columns = read(spec.to_dict())
    assert columns.labels == {name: isinstance(label, ClassLabel) for name, label in spec.labels.items()}
    assert (columns.has_id, columns.has_time, columns.has_weight) == (True, True, True)


def test_what_is_not_declared() -> None:
    parts = {"by": "random", "train": 0.5, "test": 0.5}
    features = {"color": {"kind": "categorical"}}
    spec = Spec.from_dict(
        {"name": "small", "source": {"files": "rows.jsonl"}, "split": parts, "features": features}
    )
    columns = read(spec.to_dict())
    assert columns.labels == {}
    assert (columns.has_id, columns.has_time, columns.has_weight) == (False, False, False)


@pytest.mark.parametrize(
    "spec",
    [
        None,
        [],
        {},
        {"features": []},
        {"features": {"a": None}},
        {"features": {"a": {}}},
        {"features": {"a": {"kind": "unknown"}}},
        {"features": {"a": {"kind": ["set"]}}},
        {"features": {"a": {"kind": "set"}}},
        {"features": {"a": {"kind": "set", "max_length": 0}}},
        {"features": {"a": {"kind": "set", "max_length": 1 << 31}}},
        {"features": {"a": {"kind": "set", "max_length": "7"}}},
        {"features": {"a": {"kind": "sequence", "max_length": 7, "pad": "up"}}},
        {"features": {}, "labels": {"y": {}}},
    ],
)
def test_a_spec_that_is_none(spec: Any) -> None:
    with pytest.raises(StoreError, match=r"store: the spec in the manifest cannot be read"):
        read(spec)
