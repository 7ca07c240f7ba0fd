"""Reading bytes as a source, and the values of a batch as plain text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from headrace.sources import BadRow, Batch, Column, Reader, open_source

DEFAULTS: dict[str, Any] = {
    "format": "csv",
    "delimiter": None,
    "quote": '"',
    "header": True,
    "columns": (),
    "encoding": "utf-8",
    "missing_values": ("",),
}


def scalar_text(value: Any) -> str | None:
    """The id text of a number, written here once more, so that tests do not lean on the code."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        return str(int(value)) if value == value // 1 and abs(value) != float("inf") else repr(value)
    return str(value)


def texts(value: Any) -> Any:
    """A batch's value with every number as text; pairs as tuples."""
    if isinstance(value, list):
        return [texts(element) for element in value]
    if isinstance(value, dict):
        return (value["key"], scalar_text(value["value"]))
    return scalar_text(value)


@dataclass
class Read:
    """All that came out of a source."""

    columns: dict[str, list[Any]] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    byte_offsets: list[int] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    types: dict[str, set[str]] = field(default_factory=dict)

    def add(self, batch: Batch) -> None:
        for path, array in batch.columns.items():
            assert isinstance(array, pa.Array)
            array.validate(full=True)
            assert len(array) == len(batch)
            self.columns.setdefault(path, []).extend(texts(value) for value in array.to_pylist())
            self.types.setdefault(path, set()).add(str(array.type))
        self.rows += batch.rows.tolist()
        self.lines += batch.lines.tolist()
        self.byte_offsets += batch.byte_offsets.tolist()
        self.raw += [batch.raw(i) for i in range(len(batch))]
        self.bad += batch.bad

    @property
    def bad_lines(self) -> list[int]:
        return [bad.line for bad in self.bad]

    def key(self) -> tuple[Any, ...]:
        """Everything but the types, which are free."""
        return (self.columns, self.rows, self.lines, self.byte_offsets, self.raw, self.bad)


def read_all(reader: Reader, block_bytes: int = 8 << 20) -> Read:
    read = Read({column.path: [] for column in reader.columns})
    for block in reader.blocks(block_bytes):
        read.add(reader.parse(block))
    return read


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Reader]:
    def opened(
        content: bytes | dict[str, bytes] | str, wanted: Sequence[Column], /, **options: Any
    ) -> Reader:
        files: Any = content
        if isinstance(content, bytes):
            content = {"data": content}
        if isinstance(content, dict):
            for name, data in content.items():
                (tmp_path / name).write_bytes(data)
            files = list(content)
        source = SimpleNamespace(**{**DEFAULTS, "files": files, **options})
        return open_source(source, tmp_path, wanted)

    return opened


@pytest.fixture
def read(opened: Callable[..., Reader]) -> Callable[..., Read]:
    def read(content: Any, wanted: Sequence[Column], block_bytes: int = 8 << 20, /, **options: Any) -> Read:
        return read_all(opened(content, wanted, **options), block_bytes)

    return read
