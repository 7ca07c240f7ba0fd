"""Records beside a shard: what batches of random rows are read from, derived from its columns.

    train/00000.arrow      the columns, for every reader of Arrow
    train/00000.records    their numbers once more, a record for each row (see ``headrace.loading.records``)

A store without them, or one whose rows have too few numbers for them, is read from its columns.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace import disk
from headrace.dataset.manifest import Manifest
from headrace.dataset.shard import FileEntry
from headrace.errors import StoreError
from headrace.loading.columns import Column
from headrace.loading.records import pack, record_dtype

_FEWEST_FIELDS = 2
_PIECE_BYTES = 1 << 20


def records_name(shard: str) -> str:
    """Return the name of the records beside a shard."""
    return str(PurePosixPath(shard).with_suffix(".records"))


def write_records(path: Path, columns: Sequence[Column], rows: int) -> bool:
    """Write the records of a shard to a file that appears whole.

    Args:
        path: The file; one that is there is taken for what it should be.
        columns: Of the shard alone.
        rows: In the shard.

    Returns:
        Whether there are any: not where a record would have fewer than two fields.

    Raises:
        OSError: The disk is full or the folder cannot be written.
    """
    dtype = record_dtype(columns)
    if len(dtype.names or ()) < _FEWEST_FIELDS:
        return False
    if not path.exists():
        piece_rows = max(1, _PIECE_BYTES // dtype.itemsize)
        with disk.writing(path) as file:
            for first in range(0, rows + 1, piece_rows):
                file.write(pack(columns, dtype, first, min(first + piece_rows, rows + 1)).data)
    return True


def open_records(
    folder: Path, manifest: Manifest, split: str, columns: Sequence[Column]
) -> list[NDArray[Any]] | None:
    """Memory-map the records of a split.

    Args:
        folder: The store.
        manifest: Its manifest.
        split: A split of it.
        columns: Of all shards of the split.

    Returns:
        Structured [rows + 1] of each shard; None where the store has no records.

    Raises:
        StoreError: A file is missing, or has another size than its shard's rows need.
    """
    there = {entry.name for entry in manifest.files}
    shards = manifest.splits[split]
    if not shards or records_name(shards[0].name) not in there:
        return None
    dtype = record_dtype(columns)
    return [_open(folder, shard, dtype) for shard in shards]


def _open(folder: Path, shard: FileEntry, dtype: np.dtype[Any]) -> NDArray[Any]:
    path = folder / records_name(shard.name)
    try:
        with pa.memory_map(os.fsencode(path)) as source:
            content = source.read_buffer()
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{path}: cannot be read ({error}). Restore the file, or build again.") from None
    if content.size != (shard.rows + 1) * dtype.itemsize:
        raise StoreError(
            f"{path}: {content.size} bytes, {shard.rows} rows need {(shard.rows + 1) * dtype.itemsize}. "
            "Run `headrace verify` on the store; restore the file, or build again."
        )
    return np.frombuffer(content, dtype)
