"""The bad rows of a build go to ``quarantine/``, one file for each source file that has any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from headrace.dataset.layout import QUARANTINE
from headrace.dataset.shard import FileEntry
from headrace.encoding.rows import Rows
from headrace.sources import BadRow
from headrace.sources.quarantine import QuarantinedRow, write_quarantine


def write_quarantines(folder: Path, parts: Iterable[Rows], file_names: Sequence[str]) -> list[FileEntry]:
    """Write the bad rows of all parts below ``folder``; return the files."""
    by_file: dict[int, list[BadRow]] = {}
    for rows in parts:
        for bad in rows.bad:
            by_file.setdefault(bad.file, []).append(bad)
    return [_write(folder, number, bad, file_names[number]) for number, bad in sorted(by_file.items())]


def _write(folder: Path, number: int, rows: list[BadRow], file_name: str) -> FileEntry:
    name = f"{QUARANTINE}/{number:05d}.jsonl"
    write_quarantine(folder / name, [QuarantinedRow.of(bad, file_name) for bad in rows])
    return FileEntry.of(folder, name, rows=len(rows))
