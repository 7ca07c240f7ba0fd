"""What is checked of raw text before any parser sees it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.kernels.lines import Records

_FEW = 32


def is_valid_utf8(data: bytes | memoryview) -> bool:
    """Return whether all of ``data`` is UTF-8, without holding the GIL."""
    offsets = pa.py_buffer(np.array([0, len(data)], np.int64))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(data)]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def invalid_utf8(data: bytes, records: Records) -> NDArray[np.bool_]:
    """Return bool ``[R]``: which records are not valid UTF-8."""
    found = np.zeros(records.starts.size, np.bool_)
    if found.size:
        _mark_invalid(memoryview(data), records, 0, found.size, found)
    return found


def _mark_invalid(data: memoryview, records: Records, first: int, end: int, found: NDArray[np.bool_]) -> None:
    """Mark the invalid ones of the records ``[first, end)``: halves that are valid are left alone."""
    if is_valid_utf8(data[records.starts[first] : records.ends[end - 1]]):
        return
    if end - first <= _FEW:
        for row in range(first, end):
            found[row] = not _decodes(data[records.starts[row] : records.ends[row]])
        return
    middle = (first + end) // 2
    _mark_invalid(data, records, first, middle, found)
    _mark_invalid(data, records, middle, end, found)


def _decodes(line: memoryview) -> bool:
    try:
        str(line, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
