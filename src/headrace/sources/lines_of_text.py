"""Text files: one line is one row, in a column named ``text``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.kernels.lines import CUT_OFF, gather_lines
from headrace.sources.batch import Column, TextBlock
from headrace.sources.checks import invalid_utf8
from headrace.sources.jsonl import Parsed

NAME = "text"


class LineParser:
    """Parses blocks of text; safe to call from many threads.

    Args:
        columns: The wanted columns; others than ``text`` are null.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)

    def parse(self, block: TextBlock) -> Parsed:
        """Return the block's lines; those that are not valid UTF-8 are bad."""
        invalid = invalid_utf8(block.data, block.records)
        bad = {int(row): "not valid UTF-8" for row in np.flatnonzero(invalid)}
        bad |= {int(row): block.cut_off for row in np.flatnonzero(block.records.flags & CUT_OFF)}
        rows = np.setdiff1d(np.arange(block.row_count), np.array(list(bad), np.int64), assume_unique=True)
        offsets, text = gather_lines(block.data, block.records, rows, newline=False)
        lines = pa.Array.from_buffers(
            pa.string(), rows.size, [None, pa.py_buffer(offsets), pa.py_buffer(text)]
        )
        nothing = pa.nulls(rows.size, pa.string())
        arrays = [lines if column.path == NAME else nothing for column in self.columns]
        return Parsed(arrays, rows, dict(sorted(bad.items())))
