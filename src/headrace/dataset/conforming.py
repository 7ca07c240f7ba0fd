"""Whether the shards of a store have the columns that its spec declares: an error when opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.dataset.declared import LISTS, StoredColumns, StoredFeature
from headrace.dataset.shard import FileEntry, open_shard
from headrace.encoding.names import FILE, ID, ROW, TIME
from headrace.errors import StoreError

Holds = Callable[[pa.DataType], Any]
"""Whether a type is one that a column may have."""


def open_encoded(folder: Path, entries: Sequence[FileEntry], declared: StoredColumns) -> list[pa.RecordBatch]:
    """Memory-map the shards of a split that a spec encoded, in row order.

    Args:
        folder: The store.
        entries: What its manifest says of the shards.
        declared: What they shall have columns of.

    Raises:
        StoreError: A shard is missing or damaged, or has other rows or columns than were declared.
    """
    batches: list[pa.RecordBatch] = []
    for entry in entries:
        path = folder / entry.name
        batch = open_shard(path)
        _check(batch, batches[0] if batches else batch, entry.rows, declared, path)
        batches.append(batch)
    return batches


def _check(
    batch: pa.RecordBatch, first: pa.RecordBatch, rows: int, declared: StoredColumns, path: Path
) -> None:
    if batch.num_rows != rows:
        raise _damaged(path, f"{batch.num_rows} rows, the manifest says {rows}")
    if not batch.schema.equals(first.schema):
        raise _damaged(path, "other columns than in the first shard of the split")
    there = dict(zip(batch.schema.names, batch.schema.types, strict=True))
    for name, required, holds in _expected(declared):
        if name not in there:
            if required:
                raise _damaged(path, f"the column '{name}' is missing")
        elif not holds(there[name]):
            raise _damaged(path, f"the column '{name}' is {there[name]}, which is not what the spec declares")

    for name, feature in declared.features.items():
        if feature.kind == "weighted_set" and not _same_lengths(batch, name):
            raise _damaged(path, f"'{name}' and its weights differ in length")


def _same_lengths(batch: pa.RecordBatch, name: str) -> bool:
    ids, weights = batch.column(name), batch.column(f"{name}_weights")
    return bool(ids.offsets.equals(weights.offsets)) and ids.null_count == weights.null_count


def _damaged(path: Path, what: str) -> StoreError:
    return StoreError(
        f"{path}: {what}. Run `headrace verify` on the store; restore the file, or build again."
    )


def _expected(declared: StoredColumns) -> Iterator[tuple[str, bool, Holds]]:
    """Yield each column's name, whether every shard has it, and which types it may have."""
    for name, feature in declared.features.items():
        yield name, True, _feature_type(feature)
        if feature.kind == "weighted_set":
            yield f"{name}_weights", True, _list_of(_is_float)
    for name, is_class in declared.labels.items():
        yield name, False, pa.types.is_int64 if is_class else pa.types.is_float32
        yield f"{name}_weight", False, pa.types.is_float32
    yield "weight", False, pa.types.is_float32
    yield ID, declared.has_id, pa.types.is_large_string
    yield FILE, not declared.has_id, pa.types.is_uint32
    yield ROW, not declared.has_id, pa.types.is_uint64
    yield TIME, declared.has_time, pa.types.is_int64


def _feature_type(feature: StoredFeature) -> Holds:
    if feature.kind in LISTS:
        return _list_of(_is_id)
    if feature.kind == "vector":
        return lambda kind: kind == pa.list_(pa.float32(), feature.length)
    return _is_float if feature.is_number else _is_id


def _is_float(kind: pa.DataType) -> Any:
    return pa.types.is_float32(kind)


def _is_id(kind: pa.DataType) -> Any:
    return pa.types.is_unsigned_integer(kind)


def _list_of(holds: Holds) -> Holds:
    return lambda kind: (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and holds(kind.value_type)
