"""The bad rows of a build go to ``quarantine/``, one file for each source file that has any.

quarantine/00000.jsonl          of the first file of the rows
quarantine/tables/ad/00000.jsonl  of the first file of the joined table ``ad``
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

from headrace.dataset.layout import QUARANTINE, safe_name
from headrace.dataset.shard import FileEntry
from headrace.sources import BadRow
from headrace.sources.quarantine import QuarantinedRow, write_quarantine


def write_quarantines(
    folder: Path, rows: Iterable[BadRow], file_names: Sequence[str], table: str | None = None
) -> list[FileEntry]:
    """Write bad rows below ``folder``; return the files.

    Args:
        folder: The store, or where it is made.
        rows: The bad rows of one source, those of a file one after the other.
        file_names: Names of its files, by number.
        table: The joined table that the source is; None: the rows themselves.
    """
    below = QUARANTINE if table is None else f"{QUARANTINE}/tables/{safe_name(table)}"
    by_file = itertools.groupby(rows, key=lambda row: row.file)
    return [_write(folder, below, number, bad, file_names[number]) for number, bad in by_file]


def _write(folder: Path, below: str, number: int, rows: Iterable[BadRow], file_name: str) -> FileEntry:
    name = f"{below}/{number:05d}.jsonl"
    count = write_quarantine(folder / name, (QuarantinedRow.of(bad, file_name) for bad in rows))
    return FileEntry.of(folder, name, rows=count)
