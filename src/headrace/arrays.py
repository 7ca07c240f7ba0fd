"""Arrow arrays seen as plain NumPy arrays, and back, without a copy where none is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

ALL_VALID: NDArray[np.bool_] = np.empty(0, np.bool_)
"""What kernels take where no element is null."""

_NO_BYTES: NDArray[np.uint8] = np.empty(0, np.uint8)
_NO_BORDERS: NDArray[np.int64] = np.empty(0, np.int64)

# One look-up by number where Arrow's own functions take several calls: a request of one row makes dozens.
_INT32: np.dtype[Any] = np.dtype(np.int32)
_INT64: np.dtype[Any] = np.dtype(np.int64)
_DTYPES: dict[int, np.dtype[Any]] = {
    pa.from_numpy_dtype(dtype).id: np.dtype(dtype)
    for dtype in (
        *(np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64),
        *(np.float16, np.float32, np.float64),
    )
}
_KINDS = {dtype: pa.from_numpy_dtype(dtype) for dtype in _DTYPES.values()}
_LARGE_LIST = pa.large_list(pa.int8()).id
_VIEWS = {pa.string_view().id, pa.binary_view().id}
_BORDERS = {
    pa.string().id: _INT32,
    pa.binary().id: _INT32,
    pa.large_string().id: _INT64,
    pa.large_binary().id: _INT64,
}


@dataclass(frozen=True)
class Texts:
    """A text column as bytes and borders; text ``i`` is ``data[begins[i]:ends[i]]``."""

    data: NDArray[np.uint8]
    begins: NDArray[np.integer[Any]]
    ends: NDArray[np.integer[Any]]
    valid: NDArray[np.bool_]
    """bool [n], or empty where nothing is null."""

    def __len__(self) -> int:
        return len(self.begins)

    def select(self, places: NDArray[np.int64]) -> Texts:
        """Return some of the texts, over the same bytes."""
        valid = self.valid[places] if len(self.valid) else self.valid
        return Texts(self.data, self.begins[places], self.ends[places], valid)


def validity(array: pa.Array) -> NDArray[np.bool_]:
    """Return which elements are not null: bool [n], or empty where none is null."""
    if array.null_count == 0:
        return ALL_VALID
    bits = array.buffers()[0]
    if bits is None:
        valid: NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
        return valid
    first, size = array.offset >> 3, len(array) + (array.offset & 7)
    unpacked = np.unpackbits(np.frombuffer(bits, np.uint8)[first:], count=size, bitorder="little")
    return unpacked[array.offset & 7 :].view(np.bool_)


def bytes_of(buffer: pa.Buffer | None) -> NDArray[np.uint8]:
    """Return a buffer's bytes as uint8, empty for no buffer."""
    return np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else _NO_BYTES


def is_text(array: pa.Array) -> bool:
    """Return whether ``texts_of`` takes the array."""
    return array.type.id in _BORDERS or array.type.id in _VIEWS


def texts_of(array: pa.Array) -> Texts:
    """See a string or binary array as bytes and borders.

    Args:
        array: string, large_string, string_view, binary or large_binary.
    """
    if array.type.id in _VIEWS:
        array = array.cast(pa.large_binary())
    size = len(array)
    _, borders, data = array.buffers()
    if borders is None or size == 0:
        return Texts(_NO_BYTES, _NO_BORDERS, _NO_BORDERS, ALL_VALID)
    dtype = _BORDERS[array.type.id]
    offsets = np.frombuffer(borders, dtype, size + 1, array.offset * dtype.itemsize)
    return Texts(bytes_of(data), offsets[:-1], offsets[1:], validity(array))


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """See a primitive numeric array as NumPy; what lies under null bits is unspecified."""
    dtype = _DTYPES.get(array.type.id)
    if dtype is None:
        dtype = np.dtype(array.type.to_pandas_dtype())
    buffer, size = array.buffers()[1], len(array)
    if buffer is None or size == 0:
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype, size, array.offset * dtype.itemsize)


def list_borders(array: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """Return ``(offsets int64 [n + 1], values)`` of a list or large_list array; null lists are empty.

    The offsets begin at 0 and the values are exactly those that they cover.
    """
    if array.null_count and not _null_lists_are_empty(array):
        array = _emptied(array)
    dtype = _INT64 if array.type.id == _LARGE_LIST else _INT32
    borders = array.buffers()[1]
    if len(array) == 0 or borders is None:
        return np.zeros(1, np.int64), array.values.slice(0, 0)
    offsets = np.frombuffer(borders, dtype, len(array) + 1, array.offset * dtype.itemsize).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    values = array.values
    if first or last != len(values):
        values, offsets = values.slice(first, last - first), offsets - first
    return offsets, values


def _null_lists_are_empty(array: pa.Array) -> bool:
    lengths = np.diff(array.offsets.to_numpy())
    return not lengths[~validity(array)].any()


def _emptied(array: pa.Array) -> pa.Array:
    """Return the array with null lists empty, also where bytes lie below the null bit."""
    import pyarrow.compute as pc  # slow to import, and rarely needed

    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return pa.LargeListArray.from_arrays(pa.array(offsets), array.flatten())


def large_strings(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> pa.Array:
    """Return a large_string array over bytes that are valid UTF-8 (not checked) and their borders."""
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def bitmap(valid: NDArray[np.bool_]) -> pa.Buffer | None:
    """Return Arrow's validity bitmap (least significant bit first), ``None`` where nothing is null."""
    if len(valid) == 0 or valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def primitive(values: NDArray[Any], valid: NDArray[np.bool_] = ALL_VALID) -> pa.Array:
    """Return an Arrow array over ``values``; what lies under a null bit is kept as it is."""
    kind = _KINDS.get(values.dtype) or pa.from_numpy_dtype(values.dtype)
    whole = values if values.flags.c_contiguous else np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [bitmap(valid), pa.py_buffer(whole)])


def ragged(offsets: NDArray[np.int64], values: pa.Array, valid: NDArray[np.bool_] = ALL_VALID) -> pa.Array:
    """Return a list array; 32-bit offsets where they hold the values, else 64-bit ones."""
    small = len(offsets) == 0 or offsets[-1] < 1 << 31
    kind = pa.list_(values.type) if small else pa.large_list(values.type)
    borders = offsets.astype(np.int32) if small else offsets
    return pa.Array.from_buffers(
        kind, len(offsets) - 1, [bitmap(valid), pa.py_buffer(borders)], children=[values]
    )


def vectors(values: NDArray[np.float32], valid: NDArray[np.bool_] = ALL_VALID) -> pa.Array:
    """Return float32 [n, D] as a fixed_size_list array; what lies under a null bit is kept as it is."""
    rows, width = values.shape
    flat = primitive(values.reshape(-1))
    return pa.Array.from_buffers(pa.list_(flat.type, width), rows, [bitmap(valid)], children=[flat])
