"""What passes between a reader and whoever wants its rows: columns, blocks, batches, bad rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.kernels.lines import Records

Kind: TypeAlias = Literal["text", "number", "texts", "numbers", "pairs"]


@dataclass(frozen=True)
class Column:
    """What is wanted of a raw column.

    The array of a column in a ``Batch`` is, by kind:

    - ``text``: string, or int64 / uint64 whose decimal text is the id's text.
    - ``number``: string, int64, uint64, double, or timestamp(us) of Arrow and Parquet.
    - ``texts``, ``numbers``: a list of these; CSV and TSV: the string that is still to be split.
    - ``pairs``: list<struct<key: string, value: number>>; CSV and TSV: the string still to be split.
    """

    path: str
    """``"user_id"``, or dotted, ``"ad.industry"``; a top-level key of that very name wins over nesting."""

    kind: Kind
    """What structure the values must have."""

    optional: bool = False
    """Nulls instead of an error where the whole source has no such column."""

    separator: str = ","
    """Stands between the elements of a list that is written as text."""

    pair_separator: str = ":"
    """Stands between key and value of a pair that is written as text."""


@dataclass(frozen=True)
class BadRow:
    """A row that could not be read as declared."""

    file: int
    """Number of the file in ``Reader.files``."""

    row: int
    """0-based data row in the file, bad rows counted."""

    line: int
    """1-based line of its first byte; Parquet and Arrow: row + 1."""

    byte_offset: int
    """Place of its first byte in the decompressed stream; Parquet and Arrow: -1."""

    reason: str
    """What is wrong, in words."""

    raw: bytes
    """The row's own bytes, the line end left out; Parquet and Arrow: JSON."""


@dataclass
class Block:
    """Whole records of one file, not parsed yet; blocks follow one another in the order of the rows."""

    file: int
    """Number of the file in ``Reader.files``."""

    first_row: int
    """0-based data row in the file of the first record, bad rows counted."""

    first_line: int
    """1-based line of the block's first byte; Parquet and Arrow: ``first_row + 1``."""

    first_byte: int
    """Place of the block's first byte in the decompressed stream in its own encoding; or -1."""

    row_count: int
    """Records in the block, bad ones counted."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the block holds."""
        return 0


@dataclass
class TextBlock(Block):
    """Bytes of a text format, in UTF-8, with the places of the records in them."""

    data: bytes
    """The block's bytes; other encodings are already UTF-8 here. A record that is not whole may follow."""

    records: Records
    """Where each record begins and ends in ``data``."""

    names: tuple[str, ...] = ()
    """CSV and TSV: the columns of this file, in its order."""

    original: Callable[[bytes], bytes] | None = None
    """Turns UTF-8 of ``data`` back into the file's own encoding; None where that is UTF-8."""

    cut_off: str = ""
    """Why the stream broke off inside the last record; "" where it did not."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the block holds."""
        return len(self.data) + sum(array.nbytes for array in self.records[:4])


@dataclass
class TableBlock(Block):
    """Rows of a Parquet or Arrow file: a row group still to be read, or a record batch that is read."""

    group: int = -1
    """Number of the row group or record batch, or -1 where ``table`` holds the rows."""

    table: pa.Table | None = None
    """The rows themselves, where only a sequential pass gives them."""

    byte_count: int = 0
    """Decoded size as the file tells it."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the block holds, or will hold once it is read."""
        return self.table.nbytes if self.table is not None else self.byte_count


@dataclass
class Batch:
    """Rows of one file as one array for each column, and where each row came from."""

    columns: dict[str, pa.Array]
    """By path: one contiguous array each, of one length."""

    file: int
    """Number of the file in ``Reader.files``."""

    rows: NDArray[np.int64]
    """int64 ``[N]``, 0-based data row in the file of each kept row, ascending."""

    lines: NDArray[np.int64]
    """int64 ``[N]``, 1-based line of each row's first byte; Parquet and Arrow: row + 1."""

    byte_offsets: NDArray[np.int64]
    """int64 ``[N]``, place of each row's first byte in the decompressed stream; Parquet and Arrow: -1."""

    bad: list[BadRow]
    """Rows that are not among the kept ones, in the order of the file."""

    raw_of: Callable[[int], bytes] = field(repr=False)
    """Gives the bytes of the i-th kept row."""

    def __len__(self) -> int:
        return int(self.rows.size)

    def raw(self, i: int) -> bytes:
        """Return the bytes of the i-th kept row; Parquet and Arrow: its wanted columns as JSON."""
        return self.raw_of(i)

    def bad_row(self, i: int, reason: str) -> BadRow:
        """Return the i-th kept row as a bad one, for a fault that is found later."""
        return BadRow(
            self.file,
            int(self.rows[i]),
            int(self.lines[i]),
            int(self.byte_offsets[i]),
            reason,
            self.raw(i),
        )
