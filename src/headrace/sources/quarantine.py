r"""Bad rows on disk: one JSON object for each, with where it was, why it is bad, and its own bytes.

    {"file": "raw/03.jsonl.gz", "row": 18230, "line": 18231, "byte_offset": 9120044,
     "reason": "price is 'n/a', a number is expected", "raw": "{\"price\": \"n/a\"}"}

Bytes that are not UTF-8 are written as Base64, with ``"base64": true``. Equal rows
give equal bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.disk import as_path, writing
from headrace.errors import StoreError
from headrace.sources.batch import BadRow

_ENCODER = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True)
class QuarantinedRow:
    """A bad row as it stands in a quarantine file."""

    file: str
    """Name of the source file."""

    row: int
    """0-based data row in the file."""

    line: int
    """1-based line of its first byte; Parquet and Arrow: row + 1."""

    byte_offset: int
    """Place of its first byte in the decompressed stream; Parquet and Arrow: -1."""

    reason: str
    """What is wrong, in words."""

    raw: bytes
    """The row's own bytes; Parquet and Arrow: JSON."""

    @classmethod
    def of(cls, bad: BadRow, file: str) -> QuarantinedRow:
        """Return a reader's bad row with its file's name instead of its number."""
        return cls(file, bad.row, bad.line, bad.byte_offset, bad.reason, bad.raw)

    def to_json(self) -> bytes:
        """Return the row as one line, the line end included."""
        value: dict[str, Any] = {
            "file": self.file,
            "row": self.row,
            "line": self.line,
            "byte_offset": self.byte_offset,
            "reason": self.reason,
        }
        try:
            value["raw"] = self.raw.decode()
        except UnicodeDecodeError:
            value["raw"] = base64.b64encode(self.raw).decode()
            value["base64"] = True
        text = _ENCODER.encode(value) + "\n"
        return text.encode("utf-8", "backslashreplace")

    @classmethod
    def from_json(cls, line: bytes) -> QuarantinedRow:
        """Return what ``to_json`` wrote.

        Raises:
            StoreError: It is something else.
        """
        try:
            value = json.loads(line)
            raw = value["raw"]
            data = base64.b64decode(raw, validate=True) if value.get("base64") else raw.encode()
            return cls(
                str(value["file"]),
                int(value["row"]),
                int(value["line"]),
                int(value["byte_offset"]),
                str(value["reason"]),
                data,
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error) as error:
            raise StoreError(f"not a quarantined row: {error!r}. The file was changed by hand.") from None


def write_quarantine(path: str | Path, rows: Iterable[QuarantinedRow]) -> int:
    """Write bad rows to one file that appears whole; return how many.

    Raises:
        OSError: The disk is full or the folder cannot be written.
    """
    count = 0
    with writing(as_path("path", path, StoreError)) as file:
        for row in rows:
            file.write(row.to_json())
            count += 1
    return count


def read_quarantine(path: str | Path) -> Iterator[QuarantinedRow]:
    """Yield the rows of a quarantine file.

    Raises:
        OSError: The file cannot be opened.
        StoreError: A line is not what ``write_quarantine`` writes; the message names file and line.
    """
    with as_path("path", path, StoreError).open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield QuarantinedRow.from_json(line)
            except StoreError as error:
                raise StoreError(f"{path}:{number}: {error}") from None
