"""Sources become parsed parts on disk: each byte of raw text is parsed once.

    .build/parsed/rows/00000 ...    parts of the rows
    .build/parsed/table-NAME/00000  each joined table

A folder of parts belongs to its files and the way of reading them. Once it is whole,
it serves every declaration that asks for no more than it holds.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import xxhash

from headrace import disk
from headrace.arrays import numbers_of
from headrace.building.one_part import save_one_part
from headrace.building.plan import ParsePlan
from headrace.building.seal import is_sealed, seal
from headrace.building.settings import Settings
from headrace.dataset.manifest import FORMAT_VERSION
from headrace.engine.local import run_in_order
from headrace.errors import BuildError, SourceError
from headrace.kernels.lookup import NULL_CODE
from headrace.parse.part import Part, PartReader, open_part, save_part
from headrace.parse.readings import Ids, Reading, key_of
from headrace.scratch import give_back
from headrace.sources import BadRow, Block, Reader, SourceFile
from headrace.sources.cutter import LONGEST_RECORD

_MARKER = "parsed.json"
_EARLY_ROWS = 100_000
"""A build stops before all is read only when so many rows would not make the bad ones few enough."""


@dataclass(frozen=True)
class Parsed:
    """The parts of one source, in the order of the rows."""

    parts: tuple[Path, ...]
    keys: tuple[str, ...]
    """The readings and checks that are wanted; the parts may hold more."""

    def open(self) -> list[Part]:
        """Memory-map every part."""
        return [open_part(path, self.keys) for path in self.parts]


def parse_source(
    reader: Reader,
    plan: ParsePlan,
    folder: Path,
    settings: Settings,
    *,
    files: Collection[int] | None = None,
    one_part: bool = False,
    required: Collection[str] | None = None,
) -> Parsed:
    """Parse a source into parts below ``folder``; finished ones of an earlier run are kept.

    Args:
        reader: The opened source.
        plan: What to read of it.
        folder: Where the parts go.
        settings: Threads and size of parts.
        files: Numbers of the files to read; None is all.
        one_part: Make one part of all, as joined tables need it.
        required: Columns that some row must have; None is all.

    Raises:
        BuildError: More rows are bad than ``max_bad_fraction`` allows, or than ``on_bad_row`` does.
        SourceError: A file is damaged, or changed while it was read, or no row has a column.
    """
    part_bytes = 1 << 62 if one_part else settings.part_bytes
    claim = _Claim(folder, plan, reader, files, part_bytes)
    if claim.finished:
        return _reused(claim, plan, reader, required)
    saved = _save_one if one_part else _save_parts
    total = sum(max(file.size, 1) for file in reader.files)
    tally = _Tally(plan, reader)
    paths: list[Path] = []
    absent = _AbsentColumns(plan, reader, required)
    done = 0
    longest = min(settings.longest_record, LONGEST_RECORD)
    blocks = reader.blocks(settings.block_bytes, files, longest)
    try:
        for path, size in saved(claim, plan, reader, blocks, settings):
            paths.append(path)
            part = open_part(path)
            tally.add(part)
            absent.add(part)
            done += size
            settings.progress(f"parsing {plan.table or 'rows'}", min(1.0, done / total))
    except SourceError:
        # A file that changed while it was read may be put back with its old time: no part of it is kept.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    tally.check(final=True)
    absent.check()
    claim.finish(len(paths))
    if settings.is_little:
        give_back()
    return Parsed(tuple(paths), plan.keys)


def _reused(claim: _Claim, plan: ParsePlan, reader: Reader, required: Collection[str] | None) -> Parsed:
    """Return parts that an earlier run finished, judged by today's declaration."""
    parsed = Parsed(tuple(claim.part(number) for number in range(claim.finished)), plan.keys)
    tally, absent = _Tally(plan, reader), _AbsentColumns(plan, reader, required)
    for part in parsed.open():
        tally.add(part)
        absent.add(part)
    tally.check(final=True)
    absent.check()
    return parsed


def _save_parts(
    claim: _Claim, plan: ParsePlan, reader: Reader, blocks: Iterator[Block], settings: Settings
) -> Iterator[tuple[Path, int]]:
    """Save the parts that are not there yet, several at once; yield each, and the raw bytes read for it."""

    def save(task: tuple[int, list[Block]]) -> tuple[Path, int]:
        number, group = task
        path = claim.part(number)
        if not _is_whole(path):
            shutil.rmtree(path, ignore_errors=True)
            parser = PartReader(plan.readings, plan.checks)
            for block in group:
                parser.add(reader.parse(block))
            save_part(parser.part(), path, seal)
        return path, sum(block.nbytes for block in group)

    groups = enumerate(_grouped(blocks, claim.part_bytes))
    yield from run_in_order(save, groups, settings.workers)


def _save_one(
    claim: _Claim, plan: ParsePlan, reader: Reader, blocks: Iterator[Block], settings: Settings
) -> Iterator[tuple[Path, int]]:
    """Save all rows as one part, unless it is there; yield it, and the raw bytes of all files."""
    path = claim.part(0)
    if not _is_whole(path):
        shutil.rmtree(path, ignore_errors=True)
        save_one_part(blocks, reader.parse, plan, path, settings, seal)
    yield path, sum(max(file.size, 0) for file in reader.files)


class _Claim:
    """A folder of parts, and what its marker says that they were made from.

    Parts of the same files, read in the same way, serve whoever wants no more
    readings and checks than they hold. A folder of other parts is emptied.
    """

    def __init__(
        self, folder: Path, plan: ParsePlan, reader: Reader, files: Collection[int] | None, part_bytes: int
    ) -> None:
        self.folder = folder
        self.part_bytes = part_bytes
        self.finished = 0
        """Number of parts, where all are there."""
        marker = _read_marker(folder / _MARKER)
        wanted = {
            "format_version": FORMAT_VERSION,
            "how": plan.how,
            "files": [_identity(file) for file in reader.files],
            "chosen": None if files is None else sorted(files),
        }
        same = all(marker.get(key) == value for key, value in wanted.items())
        enough = set(plan.keys) <= set(marker.get("keys", ()))
        parts = marker.get("finished", 0) if same and enough else 0
        if parts and all(_is_whole(self.part(number)) for number in range(parts)):
            self.finished = parts
            return
        if not (same and enough and marker.get("part_bytes") == part_bytes):
            shutil.rmtree(folder, ignore_errors=True)
        self._content = {**wanted, "keys": sorted(plan.keys), "part_bytes": part_bytes}
        self.finish(0)
        disk.remove_temporaries(folder)

    def part(self, number: int) -> Path:
        """Return where a part lies."""
        return self.folder / f"{number:05d}"

    def finish(self, parts: int) -> None:
        """Note how many parts there are; 0 while there may be more."""
        content = {**self._content, "finished": parts}
        disk.write_json(self.folder / _MARKER, {"content": content, "xxh3": _digest(content)})


def _is_whole(folder: Path) -> bool:
    """Return whether a part can be opened, and holds the bytes that were written."""
    if not is_sealed(folder):
        return False
    try:
        open_part(folder)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        return False
    return True


def _read_marker(path: Path) -> dict[str, Any]:
    """Return what ``_Claim.finish`` noted; nothing where the file is missing, torn or damaged."""
    try:
        marker = json.loads(path.read_bytes())
        content: dict[str, Any] = marker["content"]
        return content if marker["xxh3"] == _digest(content) else {}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def _digest(content: object) -> str:
    return xxhash.xxh3_64_hexdigest(json.dumps(content, sort_keys=True).encode())


def _identity(file: SourceFile) -> list[Any]:
    """Return what tells that a file is the one that was read: its time or version, else its content."""
    told = file.modified or file.version or file.checksum()
    return [file.name, file.size, told]


def _grouped(blocks: Iterator[Block], part_bytes: int) -> Iterator[list[Block]]:
    """Yield the blocks of each part; a source without a row is one part of no rows."""
    group: list[Block] = []
    size, groups = 0, 0
    for block in blocks:
        group.append(block)
        size += block.nbytes
        if size >= part_bytes:
            yield group
            group, size, groups = [], 0, groups + 1
    if group or groups == 0:
        yield group


class _AbsentColumns:
    """Finds columns of JSON Lines that no row has: they have no header that would tell."""

    def __init__(self, plan: ParsePlan, reader: Reader, required: Collection[str] | None) -> None:
        self._reader = reader
        self._rows = 0
        self._empty = {
            key_of(reading): reading
            for reading in plan.readings
            if reader.format == "jsonl" and (required is None or reading.path in required)
        }

    def add(self, part: Part) -> None:
        self._rows += len(part)
        self._empty = {
            key: reading for key, reading in self._empty.items() if not _has_value(reading, part.columns[key])
        }

    def check(self) -> None:
        """Raise ``SourceError`` where a column is null in every row and no file's first rows have its key."""
        paths = {reading.path for reading in self._empty.values()}
        if self._rows == 0 or not paths:
            return
        names = {name for number in range(len(self._reader.files)) for name in self._reader.names(number)}
        for path in sorted(paths - names):
            raise self._reader.missing(path, 0)


def _has_value(reading: Reading, column: pa.Array) -> bool:
    if isinstance(reading, Ids):
        return bool((numbers_of(column) != NULL_CODE).any())
    return bool(column.null_count < len(column))


class _Tally:
    """Counts rows and bad rows, and stops a build that cannot succeed."""

    def __init__(self, plan: ParsePlan, reader: Reader) -> None:
        self._plan = plan
        self._reader = reader
        self._rows = 0
        self._bad = 0
        self._example: BadRow | None = None

    def add(self, part: Part) -> None:
        bad = part.bad.first(self._plan.keys)
        if len(bad):
            self._example = next(part.bad.rows(bad))
            if self._plan.source.on_bad_row == "fail":
                raise self._failed(self._example)
        self._rows += len(part) + part.bad.left_out
        self._bad += len(bad)
        self.check(final=False)

    def _failed(self, first: BadRow) -> BuildError:
        name = self._reader.files[first.file].name
        return BuildError(
            f"{name}:{first.line}{_byte(first.byte_offset)}: {first.reason}. "
            'Mend the row, or let on_bad_row = "quarantine" set such rows aside.'
        )

    def check(self, *, final: bool) -> None:
        allowed = self._plan.source.max_bad_fraction * (self._rows if final else max(self._rows, _EARLY_ROWS))
        if self._bad <= allowed:
            return
        example = self._example
        where = (
            ""
            if example is None
            else (
                f" For example {self._reader.files[example.file].name}:{example.line}"
                f"{_byte(example.byte_offset)}: {example.reason}."
            )
        )
        seen = "" if final else " read so far"
        raise BuildError(
            f"{self._bad:,} of {self._rows:,} rows{seen} are bad, max_bad_fraction = "
            f"{self._plan.source.max_bad_fraction:g} allows {int(allowed):,}.{where} "
            "Mend the rows or the declaration, or raise max_bad_fraction."
        )


def _byte(offset: int) -> str:
    return "" if offset < 0 else f" (byte {offset})"
