"""Encoded columns as the columns that a loader gathers from, without a shard between."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.encoding.columns import Encoded, EncodedColumn
from headrace.loading import columns
from headrace.loading.columns import Bitmap, Column
from headrace.spec import Sequence, Set, Spec, WeightedSet


def loader_columns(spec: Spec, encoded: Encoded) -> list[Column]:
    """Return what a batch is made of, as ``headrace.dataset.view.shard_columns`` does for shards."""
    by_name = {column.name: column for column in encoded}
    found: list[Column] = [_feature(spec, by_name[name], by_name) for name in spec.features]
    found += [_label(by_name[name], by_name) for name in spec.labels if name in by_name]
    if spec.weight is not None and "weight" in by_name:
        found.append(columns.Scalar("weight", [by_name["weight"].values]))
    return found


def _feature(spec: Spec, column: EncodedColumn, by_name: Mapping[str, EncodedColumn]) -> Column:
    feature = spec.features[column.name]
    if column.values.ndim == 2:
        return columns.Fixed(column.name, [column.values])
    if column.offsets is None:
        return columns.Scalar(column.name, [column.values])
    assert isinstance(feature, Sequence | Set | WeightedSet)
    weighted = isinstance(feature, WeightedSet)
    return columns.Ragged(
        column.name,
        [column.offsets],
        [column.values],
        feature.max_length,
        feature.pad if isinstance(feature, Sequence) else "right",
        [by_name[f"{column.name}_weights"].values] if weighted else None,
    )


def _label(column: EncodedColumn, by_name: Mapping[str, EncodedColumn]) -> Column:
    weight = by_name.get(f"{column.name}_weight")
    known = None if column.valid.all() else Bitmap.pack(column.valid)
    return columns.Label(column.name, [column.values], [known], None if weight is None else [weight.values])
