"""Parquet and Arrow IPC files: row groups and record batches as blocks."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.errors import SourceError
from headrace.sources.arrow_values import Converter
from headrace.sources.batch import Column, TableBlock
from headrace.sources.files import SourceFile, reason_of
from headrace.sources.jsonl import Parsed
from headrace.sources.streams import CutOff, compression_of, decompressed

_LARGEST_GROUP = 1 << 26
_ROWS_AT_ONCE = 1 << 16
_ARROW_MAGIC = b"ARROW1"
_SPOOLED = 1 << 24


class TableFile:
    """One Parquet or Arrow file.

    Args:
        file: What to read.
        number: Its number in ``Reader.files``.
        form: ``"parquet"`` or ``"arrow"``.
    """

    def __init__(self, file: SourceFile, number: int, form: str) -> None:
        self.file = file
        self.number = number
        self.form = form
        self._metadata: pq.FileMetaData | None = None

    def schema(self) -> pa.Schema:
        """Return the file's Arrow schema.

        Raises:
            SourceError: The file is not of the declared format, or is damaged.
        """
        with self._opened() as source, self._faults():
            schema = source.schema_arrow if self.form == "parquet" else source.schema
            column_paths(schema)  # raises where a name is no UTF-8
            return schema

    def blocks(self, columns: Sequence[Column], block_bytes: int) -> Iterator[TableBlock]:
        """Yield the file's rows in order.

        Raises:
            SourceError: The file is damaged.
        """
        if self.form == "parquet":
            with self._opened() as source:
                yield from self._parquet_blocks(source, columns)
        else:
            with self._opened(_top_level(columns, self.schema())) as source:
                yield from self._arrow_blocks(source, block_bytes)

    def read_group(self, group: int, columns: Sequence[Column]) -> pa.Table:
        """Read the wanted columns of one Parquet row group."""
        with self._opened() as source, self._faults():
            return source.read_row_group(
                group, columns=_leaves(columns, source.schema_arrow), use_threads=False
            )

    def _parquet_blocks(self, source: pq.ParquetFile, columns: Sequence[Column]) -> Iterator[TableBlock]:
        row = 0
        with self._faults():
            groups = [source.metadata.row_group(i) for i in range(source.metadata.num_row_groups)]
        for number, group in enumerate(groups):
            if group.total_byte_size <= _LARGEST_GROUP:
                if group.num_rows:
                    yield self._block(row, group.num_rows, group=number, byte_count=group.total_byte_size)
                    row += group.num_rows
                continue
            wanted = _leaves(columns, source.schema_arrow)
            slices = source.iter_batches(
                _ROWS_AT_ONCE, row_groups=[number], columns=wanted, use_threads=False
            )
            for table in self._guarded(slices):
                yield self._block(row, table.num_rows, table=pa.Table.from_batches([table]))
                row += table.num_rows

    def _arrow_blocks(self, source: Any, block_bytes: int) -> Iterator[TableBlock]:
        row = 0
        for batch in self._guarded_batches(_record_batches(source)):
            count = batch.num_rows
            size = max(1, count * block_bytes // max(batch.nbytes, 1)) if batch.num_columns else max(count, 1)
            for start in range(0, count, size):
                part = pa.Table.from_batches([batch.slice(start, size)])
                yield self._block(row + start, part.num_rows, table=part)
            row += count

    def _guarded_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield record batches that were looked through: damaged arrays must not be computed with."""
        for batch in self._guarded(batches):
            with self._faults():
                checked = _with_unchecked_text(batch)
                checked.validate(full=True)
            yield checked

    def _guarded(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what a library reads, its errors as ours."""
        while True:
            with self._faults():
                batch = next(batches, None)
                if batch is None:
                    return
            yield batch

    def _block(self, row: int, count: int, **rest: Any) -> TableBlock:
        return TableBlock(self.number, row, row + 1, -1, count, **rest)

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, ValueError, KeyError, EOFError, IndexError, MemoryError) as error:
            if isinstance(error, SourceError):
                raise
            raise SourceError(
                f"{self.file.name}: cannot be read as {self.form}: {reason_of(error)}. "
                "The file is damaged, or of another format or a newer version of it."
            ) from error

    @contextlib.contextmanager
    def _opened(self, fields: Sequence[int] | None = None) -> Iterator[Any]:
        """Open the file; of an Arrow file only the fields of those numbers, where given."""
        with contextlib.ExitStack() as stack:
            stored = stack.enter_context(self.file.open())
            head = self.file.read(stored, len(_ARROW_MAGIC) + 4)
            stored.seek(0)
            if compression_of(head):
                stored = stack.enter_context(self._unpacked())
                head = stored.read(len(_ARROW_MAGIC))
                stored.seek(0)
            elif self.file.is_local:
                stored = stack.enter_context(pa.OSFile(os.fsencode(self.file.path)))
            with self._faults():
                source = self._reader(stored, head, fields)
            yield source

    def _reader(self, stored: Any, head: bytes, fields: Sequence[int] | None) -> Any:
        if self.form == "parquet":
            opened = pq.ParquetFile(stored, metadata=self._metadata, page_checksum_verification=True)
            self._metadata = opened.metadata
            return opened
        options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        opener = pa.ipc.open_file if head.startswith(_ARROW_MAGIC) else pa.ipc.open_stream
        return opener(stored, options=options)

    @contextlib.contextmanager
    def _unpacked(self) -> Iterator[IO[bytes]]:
        with tempfile.SpooledTemporaryFile(_SPOOLED) as whole:
            try:
                for piece in decompressed(self.file):
                    whole.write(piece)
            except CutOff as cut:
                raise SourceError(f"{self.file.name}: {cut}. Fetch the file again.") from None
            whole.seek(0)
            yield whole


def _with_unchecked_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with its text as binary: whether it is UTF-8 is judged row by row later."""
    if not batch.num_columns:
        return batch
    unchecked = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
    arrays = [
        array.view(unchecked[array.type]) if array.type in unchecked else array for array in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _record_batches(source: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(source, pa.RecordBatchFileReader):
        for number in range(source.num_record_batches):
            yield source.get_batch(number)
    else:
        yield from source


def _top_level(columns: Sequence[Column], schema: pa.Schema) -> list[int]:
    names = {name for column in columns for name in (column.path, column.path.split(".")[0])}
    return [i for i, name in enumerate(schema.names) if name in names]


def _leaves(columns: Sequence[Column], schema: pa.Schema) -> list[str]:
    names = set(schema.names)
    return sorted({column.path for column in columns if column.path in names or "." in column.path})


def has_column(schema: pa.Schema, path: str) -> bool:
    """Return whether a schema has a column of that name, or nested fields along the path."""
    return path in schema.names or ("." in path and _nested_type(schema, path) is not None)


def _nested_type(schema: pa.Schema, path: str) -> pa.DataType | None:
    first, *rest = path.split(".")
    if schema.names.count(first) != 1:
        return None
    kind = schema.field(first).type
    for name in rest:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(name).type
    return kind


def column_paths(schema: pa.Schema) -> list[str]:
    """Return the dotted paths of a schema's columns, nested structs included."""
    paths: list[str] = []
    for field in schema:
        paths += _paths_in(field, "")
    return paths


def _paths_in(field: pa.Field, prefix: str) -> list[str]:
    path = prefix + field.name
    paths = [path]
    if pa.types.is_struct(field.type):
        for i in range(field.type.num_fields):
            paths += _paths_in(field.type.field(i), f"{path}.")
    return paths


def parse_table(table: pa.Table, columns: Sequence[Column], where: str) -> Parsed:
    """Return the rows of a Parquet or Arrow block; a column that is not there is null.

    Raises:
        SourceError: A column's type does not fit its kind.
    """
    arrays: list[pa.Array] = []
    bad: dict[int, str] = {}
    for column in columns:
        array, reasons = Converter(column, where).convert(_array_at(table, column.path, where))
        arrays.append(array)
        bad |= {row: f"{column.path}: {why}" for row, why in reasons.items() if row not in bad}
    rows = np.setdiff1d(np.arange(table.num_rows), np.array(list(bad), np.int64), assume_unique=True)
    if bad:
        arrays = [array.take(pa.array(rows)) for array in arrays]
    return Parsed(arrays, rows, dict(sorted(bad.items())))


def _array_at(table: pa.Table, path: str, where: str) -> pa.Array:
    names = table.schema.names
    if names.count(path) > 1 or names.count(path.split(".")[0]) > 1:
        raise SourceError(f"{where}: two columns are named '{path}'. Rename one of them.")
    if path in names:
        return _one_array(table.column(path))
    if not has_column(table.schema, path):
        return pa.nulls(table.num_rows, pa.null())
    first, *rest = path.split(".")
    return pc.struct_field(_one_array(table.column(first)), rest)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def row_as_json(table: pa.Table, row: int) -> bytes:
    """Return one row as a JSON object; what JSON cannot hold is written as text."""
    values = {name: _value(table.column(i), row) for i, name in enumerate(table.schema.names)}
    return json.dumps(values, ensure_ascii=False, default=_as_text).encode("utf-8", "backslashreplace")


def _value(column: pa.ChunkedArray, row: int) -> Any:
    try:
        return column[row].as_py()
    except UnicodeDecodeError:
        return column.cast(pa.binary())[row].as_py() if pa.types.is_string(column.type) else str(column.type)
    except (ValueError, OverflowError):
        kind = column.type
        if pa.types.is_date32(kind):
            return column.cast(pa.int32())[row].as_py()
        return column.cast(pa.int64())[row].as_py() if _is_time(kind) else str(kind)


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date64(kind))


def _as_text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
