"""Encoded shards as the columns that a loader gathers from: the same bytes, no copy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from headrace.arrays import bytes_of, numbers_of
from headrace.dataset.conforming import open_encoded
from headrace.dataset.declared import LISTS, StoredColumns, stored_columns
from headrace.dataset.manifest import Manifest, read_manifest
from headrace.dataset.records import open_records
from headrace.loading import columns
from headrace.loading.columns import Bitmap, Column
from headrace.loading.records import unpack
from headrace.loading.rows import Rows

Batches: TypeAlias = Sequence[pa.RecordBatch]
Records: TypeAlias = Sequence[NDArray[Any]] | None
"""Structured [rows + 1] of each shard."""


def encoded_rows(
    declared: StoredColumns,
    shards: Batches,
    fingerprint: str,
    *,
    id_dtype: DTypeLike = "int64",
    masks: bool = False,
    pad_to: Literal["max", "batch"] = "max",
    layout: Literal["padded", "jagged"] = "padded",
    store: tuple[Path, str] | None = None,
    records: Records = None,
) -> Rows:
    """Return a split's rows as a sample space.

    Args:
        declared: What the shards have columns of.
        shards: In row order.
        fingerprint: Of the data.
        id_dtype: Dtype of ids in a batch.
        masks: Give ``f_present`` for every feature.
        pad_to: Width of padded columns.
        layout: Padding, or values and lengths.
        store: Folder and split to open again in another process.
        records: Those beside the shards, from which scalars and the borders of lists are taken then.
    """
    there = shard_columns(declared, shards)
    options: dict[str, Any] = {"id_dtype": id_dtype, "masks": masks, "pad_to": pad_to, "layout": layout}
    return Rows(
        there if records is None else unpack(there, records),
        [batch.num_rows for batch in shards],
        fingerprint,
        reopen=None if store is None else (_open_again, (str(store[0]), store[1], fingerprint, options)),
        **options,
    )


def _open_again(folder: str, split: str, fingerprint: str, options: dict[str, Any]) -> Rows:
    manifest = read_manifest(Path(folder))
    declared = stored_columns(manifest, Path(folder))
    shards = open_encoded(Path(folder), manifest.splits[split], declared)
    records = open_split_records(Path(folder), manifest, split, declared, shards)
    return encoded_rows(
        declared, shards, fingerprint, store=(Path(folder), split), records=records, **options
    )


def open_split_records(
    folder: Path, manifest: Manifest, split: str, declared: StoredColumns, shards: Batches
) -> Records:
    """Memory-map the records beside a split's shards; None where there are none.

    Raises:
        StoreError: A file is missing or of another size than it must be.
    """
    return open_records(folder, manifest, split, shard_columns(declared, shards))


def shard_columns(declared: StoredColumns, shards: Batches) -> list[Column]:
    """Return the columns of a batch: features, labels and weight, in the order of the spec."""
    found: list[Column] = [_feature(declared, name, shards) for name in declared.features]
    there = shards[0].schema.names if shards else []
    found += [_label(name, shards) for name in declared.labels if name in there]
    if declared.has_weight and "weight" in there:
        found.append(columns.Scalar("weight", _values("weight", shards)))
    return found


def _feature(declared: StoredColumns, name: str, shards: Batches) -> Column:
    feature = declared.features[name]
    validity = _validity(name, shards)
    if feature.kind == "vector":
        return columns.Fixed(name, _vectors(name, shards, feature.length), validity)
    if feature.kind not in LISTS:
        return columns.Scalar(name, _values(name, shards), validity)
    weights = _elements(f"{name}_weights", shards) if feature.kind == "weighted_set" else None
    offsets, elements = _offsets(name, shards), _elements(name, shards)
    return columns.Ragged(name, offsets, elements, feature.length, feature.pad, weights, validity)


def _label(name: str, shards: Batches) -> Column:
    weight = f"{name}_weight"
    weights = _values(weight, shards) if weight in shards[0].schema.names else None
    return columns.Label(name, _values(name, shards), _validity(name, shards), weights)


def _values(name: str, shards: Batches) -> list[NDArray[Any]]:
    return [numbers_of(batch.column(name)) for batch in shards]


def _validity(name: str, shards: Batches) -> list[Bitmap | None]:
    return [_bitmap(batch.column(name)) for batch in shards]


def _bitmap(array: pa.Array) -> Bitmap | None:
    bits = array.buffers()[0]
    return None if bits is None or array.null_count == 0 else Bitmap(bytes_of(bits), array.offset)


def _offsets(name: str, shards: Batches) -> list[NDArray[Any]]:
    wide = any(pa.types.is_large_list(batch.column(name).type) for batch in shards)
    dtype = np.int64 if wide else np.int32
    return [numbers_of(batch.column(name).offsets).astype(dtype, copy=False) for batch in shards]


def _elements(name: str, shards: Batches) -> list[NDArray[Any]]:
    return [numbers_of(batch.column(name).values) for batch in shards]


def _vectors(name: str, shards: Batches, dim: int) -> list[NDArray[Any]]:
    vectors = []
    for batch in shards:
        column = batch.column(name)
        flat = numbers_of(column.values).reshape(-1, dim)
        vectors.append(flat[column.offset : column.offset + len(column)])
    return vectors
