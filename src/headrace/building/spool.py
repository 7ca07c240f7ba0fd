"""Record batches put one after the other through files, so that they are never whole in memory.

The values and offsets of each column are appended to files; the arrays of all rows are
maps of these files. Validity stays in memory, a bit a row where anything is null.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import bitmap, list_borders, numbers_of, texts_of, validity

_BYTES_AT_ONCE = 1 << 20


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
        self._validity = _Validity()
        self._offsets = _Offsets(path.with_name(f"{path.name}.offsets")) if _has_offsets(kind) else None
        self._children = [
            _Column(child, path.with_name(f"{path.name}.{place}"))
            for place, child in enumerate(_children(kind))
        ]
        self._file = None if self._children else path.open("wb")

    def append(self, array: pa.Array) -> None:
        if len(array) == 0:
            return
        self._validity.append(validity(array), len(array))
        self._size += len(array)
        if pa.types.is_fixed_size_list(self._kind):
            first, size = array.offset * self._kind.list_size, len(array) * self._kind.list_size
            self._children[0].append(array.values.slice(first, size))
        elif pa.types.is_struct(self._kind):
            for child, values in zip(self._children, array.flatten(), strict=True):
                child.append(values)
        elif self._offsets is not None and self._children:
            borders, elements = list_borders(array)
            self._offsets.append(borders)
            self._children[0].append(elements)
        elif _is_text(self._kind):
            self._append_texts(array)
        else:
            self._write(numbers_of(array))

    def _append_texts(self, array: pa.Array) -> None:
        texts = texts_of(array)
        borders = np.append(texts.begins, texts.ends[-1]).astype(np.int64)
        assert self._offsets is not None
        self._offsets.append(borders)
        self._write(texts.data[borders[0] : borders[-1]])

    def _write(self, values: NDArray[Any]) -> None:
        assert self._file is not None
        self._file.write(np.ascontiguousarray(values).view(np.uint8).data)

    def array(self) -> pa.Array:
        valid = self._validity.bitmap()
        if self._children:
            return self._nested(valid, [child.array() for child in self._children])
        self.close()
        values = _mapped(self._path)
        buffers = [valid, values] if self._offsets is None else [valid, self._borders(self._kind), values]
        return pa.Array.from_buffers(self._kind, self._size, buffers)

    def _nested(self, valid: pa.Buffer | None, children: list[pa.Array]) -> pa.Array:
        if self._offsets is None:
            return pa.Array.from_buffers(self._kind, self._size, [valid], children=children)
        kind = pa.large_list if self._offsets.last >= 1 << 31 else pa.list_
        wide = kind(children[0].type)
        return pa.Array.from_buffers(wide, self._size, [valid, self._borders(wide)], children=children)

    def _borders(self, kind: pa.DataType) -> pa.Buffer:
        assert self._offsets is not None
        return self._offsets.buffer(wide=pa.types.is_large_list(kind) or pa.types.is_large_string(kind))

    def close(self) -> None:
        for one in (*self._children, self._offsets, self._file):
            if one is not None:
                one.close()


class _Validity:
    """Which rows of a column are not null, piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[tuple[int, NDArray[np.uint8] | None]] = []

    def append(self, valid: NDArray[np.bool_], size: int) -> None:
        """Add ``size`` rows; no ``valid``: none of them is null."""
        self._pieces.append((size, np.packbits(valid) if len(valid) else None))

    def bitmap(self) -> pa.Buffer | None:
        """Return Arrow's bitmap of all rows, None where none is null."""
        if all(bits is None for _, bits in self._pieces):
            return None
        return bitmap(np.concatenate([_unpacked(size, bits) for size, bits in self._pieces]))


def _unpacked(size: int, bits: NDArray[np.uint8] | None) -> NDArray[np.bool_]:
    return np.ones(size, bool) if bits is None else np.unpackbits(bits, count=size).view(bool)


class _Offsets:
    """Where the elements of each row of a column end, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb")
        self._file.write(bytes(8))
        self.last = 0
        """The elements so far."""

    def append(self, borders: NDArray[np.int64]) -> None:
        """Add rows, given the borders of their elements, int64 [n + 1]."""
        ends = borders[1:] + (self.last - borders[0])
        self._file.write(ends.data)
        self.last = int(ends[-1])

    def buffer(self, *, wide: bool) -> pa.Buffer:
        """Return the offsets of all rows, int64 where ``wide``, else int32."""
        self.close()
        if wide:
            return _mapped(self._path)
        narrow = self._path.with_name(f"{self._path.name}.narrow")
        with self._path.open("rb") as file, narrow.open("wb") as written:
            while piece := file.read(_BYTES_AT_ONCE):
                written.write(np.frombuffer(piece, np.int64).astype(np.int32).data)
        return _mapped(narrow)

    def close(self) -> None:
        self._file.close()


def _mapped(path: Path) -> pa.Buffer:
    if path.stat().st_size == 0:
        return pa.py_buffer(b"")
    with pa.memory_map(os.fsencode(path)) as source:
        return source.read_buffer()


def _has_offsets(kind: pa.DataType) -> bool:
    return _is_text(kind) or bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _children(kind: pa.DataType) -> list[pa.DataType]:
    """Return the types of what a list or a struct holds; nothing of a plain type."""
    if pa.types.is_struct(kind):
        return [field.type for field in kind]
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return [kind.value_type] if is_list else []


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(kind) or pa.types.is_string(kind))
