"""Record batches put one after the other through files, so that a shard is never whole in memory.

The values of each column are appended to a file; the shard's arrays are maps of
these files. Validity and offsets, a few bytes a row, stay in memory.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import bitmap, list_borders, numbers_of, texts_of, validity


class BatchSpool:
    """Joins record batches of one schema.

    Use as a context manager: the files below ``folder`` go when it ends, and the
    batch that ``joined`` gave must not be used after that.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._columns: list[_Column] = []
        self._names: list[str] = []

    def __enter__(self) -> BatchSpool:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        return self

    def __exit__(self, *error: object) -> None:
        try:
            for column in self._columns:
                column.close()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def append(self, batch: pa.RecordBatch) -> None:
        """Add a batch; the first one gives names and types."""
        if not self._columns:
            self._names = batch.schema.names
            self._columns = [
                _Column(array.type, self._folder / str(place)) for place, array in enumerate(batch.columns)
            ]
        for column, array in zip(self._columns, batch.columns, strict=True):
            column.append(array)

    def joined(self) -> pa.RecordBatch:
        """Return all rows as one batch over maps of the files."""
        arrays = [column.array() for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, self._names)


class _Column:
    """One column: its validity, its offsets where it has any, and a file of values."""

    def __init__(self, kind: pa.DataType, path: Path) -> None:
        self._kind = kind
        self._path = path
        self._size = 0
        self._validity: list[NDArray[np.bool_]] = []
        self._offsets: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
        self._child = _Column(kind.value_type, path.with_suffix(".child")) if _is_list(kind) else None
        self._file = None if self._child is not None else path.open("wb")

    def append(self, array: pa.Array) -> None:
        if len(array) == 0:
            return
        valid = validity(array)
        self._validity.append(valid if len(valid) else np.ones(len(array), bool))
        self._size += len(array)
        if pa.types.is_fixed_size_list(self._kind):
            self._append_child(
                array.values.slice(array.offset * self._kind.list_size, len(array) * self._kind.list_size)
            )
        elif self._child is not None:
            borders, values = list_borders(array)
            self._offsets.append(borders[1:] + self._offsets[-1][-1])
            self._append_child(values)
        elif _is_text(self._kind):
            self._append_texts(array)
        else:
            self._write(numbers_of(array))

    def _append_child(self, values: pa.Array) -> None:
        assert self._child is not None
        self._child.append(values)

    def _append_texts(self, array: pa.Array) -> None:
        texts = texts_of(array)
        borders = np.append(texts.begins, texts.ends[-1]).astype(np.int64)
        self._offsets.append(borders[1:] - borders[0] + self._offsets[-1][-1])
        self._write(texts.data[borders[0] : borders[-1]])

    def _write(self, values: NDArray[Any]) -> None:
        assert self._file is not None
        self._file.write(np.ascontiguousarray(values).view(np.uint8).data)

    def array(self) -> pa.Array:
        valid = bitmap(np.concatenate([np.empty(0, bool), *self._validity]))
        if self._child is not None:
            return self._list(valid, self._child.array())
        values = self._mapped()
        if _is_text(self._kind):
            return pa.Array.from_buffers(self._kind, self._size, [valid, self._borders(self._kind), values])
        return pa.Array.from_buffers(self._kind, self._size, [valid, values])

    def _list(self, valid: pa.Buffer | None, values: pa.Array) -> pa.Array:
        if pa.types.is_fixed_size_list(self._kind):
            return pa.Array.from_buffers(self._kind, self._size, [valid], children=[values])
        wide = self._offsets[-1][-1] >= 1 << 31
        kind = pa.large_list(values.type) if wide else pa.list_(values.type)
        return pa.Array.from_buffers(kind, self._size, [valid, self._borders(kind)], children=[values])

    def _borders(self, kind: pa.DataType) -> pa.Buffer:
        offsets = np.concatenate(self._offsets)
        wide = pa.types.is_large_list(kind) or pa.types.is_large_string(kind)
        return pa.py_buffer(offsets if wide else offsets.astype(np.int32))

    def _mapped(self) -> pa.Buffer:
        self.close()
        if self._path.stat().st_size == 0:
            return pa.py_buffer(b"")
        with pa.memory_map(str(self._path)) as source:
            return source.read_buffer()

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
        if self._file is not None:
            self._file.close()


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(kind) or pa.types.is_string(kind))
