"""One shard: an uncompressed Arrow IPC file that holds one record batch, memory-mapped when open.

One batch a file, because a gather from one contiguous array is many times
faster than from a chunked one; uncompressed, so that a map of the file is the
array. Any Arrow reader opens a shard.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace import disk
from headrace.errors import StoreError

MAXIMUM_BYTES = 128 << 20
"""A writer closes a shard when its rows reach this many encoded bytes."""


@dataclass(frozen=True)
class FileEntry:
    """What a manifest says of one file of a store."""

    name: str
    """Path below the store's folder, with ``/`` between parts."""
    bytes: int
    """Size of the file."""
    xxh3: str
    """XXH3-64 of the file, 16 hexadecimal digits."""
    rows: int
    """Rows of a table; 0 for what is no table."""

    @classmethod
    def of(cls, folder: Path, name: str, rows: int = 0) -> FileEntry:
        """Describe the file ``folder / name`` as it lies on disk."""
        path = folder / name
        return cls(name=name, bytes=path.stat().st_size, xxh3=disk.checksum(path), rows=rows)


def shard_name(split: str, number: int) -> str:
    """Return the name of a split's shard below the store's folder: ``train/00000.arrow``."""
    return f"{split}/{number:05d}.arrow"


def write_shard(path: Path, batch: pa.RecordBatch) -> None:
    """Write one record batch as an uncompressed Arrow IPC file that appears whole.

    Raises:
        OSError: The disk is full or the folder cannot be written.
    """
    with disk.writing(path) as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table as one record batch; its chunks are joined."""
    batches = table.combine_chunks().to_batches()
    write_shard(path, batches[0] if batches else empty_batch(table.schema))


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a record batch of no rows."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def open_shard(path: Path) -> pa.RecordBatch:
    """Memory-map a shard and return its one record batch.

    Offsets and buffer sizes are checked, so that a damaged file is an error
    here and never a crash when rows are read.

    Raises:
        StoreError: The file is missing, is no Arrow file, or is damaged.
    """
    try:
        with pa.memory_map(os.fsencode(path)) as source:
            return _only_batch(pa.ipc.open_file(source))
    except FileNotFoundError:
        raise StoreError(
            f"{path}: the shard is missing. Build the store again, or restore the file."
        ) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StoreError(
            f"{path}: not a readable Arrow IPC file ({error}). Run `headrace verify` on the store; "
            "restore the file, or build again."
        ) from None


def _only_batch(reader: Any) -> pa.RecordBatch:
    batch = reader.get_batch(0) if reader.num_record_batches == 1 else _one_batch(reader.read_all())
    batch.validate(full=True)
    "".join(batch.schema.names)  # raises ValueError where a name is no UTF-8
    return batch


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else empty_batch(table.schema)
