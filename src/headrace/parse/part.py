"""A part: consecutive rows of the sources, parsed once, with the dictionaries of its codes.

On disk a part is a folder that appears whole:

    rows.arrow          one row per row: file, row, and a column for each reading
    dictionaries.arrow  one row: for each reading with codes, the list of its id texts
    bad.arrow           rows that cannot be read, and what else is wrong with the others
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace import disk
from headrace.arrays import numbers_of
from headrace.kernels.lookup import NULL_CODE
from headrace.parse.bad_rows import NO_BAD_ROWS, BadRows, Fault
from headrace.parse.checks import Check, check_key
from headrace.parse.codes import OwnCodes
from headrace.parse.faults import Faults
from headrace.parse.interner import Interner
from headrace.parse.readings import IdLists, Ids, Reading, WeightedIds, key_of
from headrace.parse.typed import read_column
from headrace.scratch import IN_MEMORY, Scratch
from headrace.sources import BadRow, Batch

_WITH_CODES = (Ids, IdLists, WeightedIds)


@dataclass
class Part:
    """Parsed rows in memory, or memory-mapped."""

    files: NDArray[np.int32]
    """int32 [n], the number of each row's file."""
    rows: NDArray[np.int64]
    """int64 [n], the 0-based data row in its file."""
    columns: dict[str, pa.Array]
    """By key of the reading; see ``headrace.parse.typed``."""
    dictionaries: dict[str, pa.Array]
    """By key of the reading: the id text of each code, large_string."""
    bad: BadRows = NO_BAD_ROWS
    """Rows that are not among the part's rows, and what is wrong with those that are."""

    def __len__(self) -> int:
        return len(self.rows)


class Collector(Protocol):
    """Puts record batches one after the other, in memory or elsewhere."""

    def append(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""

    def joined(self) -> pa.RecordBatch:
        """Return all rows as one batch; at least one was added."""


class _InMemory:
    """Keeps the batches as they are until they are joined."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []

    def append(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def joined(self) -> pa.RecordBatch:
        columns = [joined(pieces) for pieces in zip(*(one.columns for one in self._batches), strict=True)]
        return pa.RecordBatch.from_arrays(columns, self._batches[0].schema.names)


class PartReader:
    """Collects parsed batches, in the order of the rows, into one part.

    Args:
        readings: What is read.
        checks: What is checked of each row.
        collector: Where the columns are collected; None: in memory.
        scratch: Where the dictionaries grow.
    """

    def __init__(
        self,
        readings: Iterable[Reading],
        checks: Iterable[Check] = (),
        collector: Collector | None = None,
        scratch: Scratch = IN_MEMORY,
    ) -> None:
        self._readings = {key_of(reading): reading for reading in readings}
        self._checks = {check_key(check): check for check in checks}
        self._interners = {key: Interner(scratch=scratch) for key in self._readings}
        self._collector: Collector = _InMemory() if collector is None else collector
        self._is_given = False
        self._faults: list[Fault] = []
        self._bad: list[BadRow] = []
        self._size = 0

    def add(self, batch: Batch) -> None:
        """Read a batch's columns, and check them."""
        columns = {}
        for key, reading in self._readings.items():
            columns[key], faults = read_column(reading, batch.columns[reading.path], self._interners[key])
            self._faults += faults_of(batch, key, faults, self._size)
        for key, check in self._checks.items():
            self._faults += faults_of(batch, key, check.faults(columns), self._size)
        self._append(np.full(len(batch), batch.file, np.int32), batch.rows, columns)
        self._bad.extend(batch.bad)
        self._size += len(batch)

    def _append(
        self, files: NDArray[np.int32], rows: NDArray[np.int64], columns: Mapping[str, pa.Array]
    ) -> None:
        self._is_given = True
        arrays = [pa.array(files), pa.array(rows), *columns.values()]
        self._collector.append(pa.RecordBatch.from_arrays(arrays, ["file", "row", *columns]))

    def _nothing(self) -> dict[str, pa.Array]:
        """Return the columns of no row."""
        return {
            key: read_column(reading, pa.nulls(0), self._interners[key])[0]
            for key, reading in self._readings.items()
        }

    def part(self) -> Part:
        """Return what was collected."""
        if not self._is_given:
            self._append(np.empty(0, np.int32), np.empty(0, np.int64), self._nothing())
        files, rows, *columns = self._collector.joined().columns
        return Part(
            files=numbers_of(files),
            rows=numbers_of(rows),
            columns=dict(zip(self._readings, columns, strict=True)),
            dictionaries={
                key: self._interners[key].values()
                for key, reading in self._readings.items()
                if isinstance(reading, _WITH_CODES)
            },
            bad=BadRows.of(self._bad, self._faults),
        )


def read_part(batch: Batch, readings: Mapping[str, Reading], checks: Mapping[str, Check]) -> Part:
    """Read one small batch whole, as ``PartReader`` does; equal values need not share a code.

    Args:
        batch: Rows of which none is bad.
        readings: By key, as ``key_of`` gives it.
        checks: By key, as ``check_key`` gives it.
    """
    columns, dictionaries, faults = {}, {}, []
    for key, reading in readings.items():
        codes = OwnCodes()
        columns[key], wrong = read_column(reading, batch.columns[reading.path], codes)
        faults += faults_of(batch, key, wrong)
        if isinstance(reading, _WITH_CODES):
            dictionaries[key] = codes.values()
    for key, check in checks.items():
        faults += faults_of(batch, key, check.faults(columns))
    files = np.full(len(batch), batch.file, np.int32)
    return Part(files, batch.rows, columns, dictionaries, BadRows.of([], faults))


def faults_of(batch: Batch, key: str, faults: Faults, first: int = 0) -> list[Fault]:
    """Return what a reading or check cannot take; ``first`` is the place of the batch's first row."""
    pairs = zip(faults.rows, faults.reasons, strict=True)
    return [Fault(first + row, key, batch.bad_row(row, reason)) for row, reason in pairs]


def joined(arrays: Sequence[pa.Array]) -> pa.Array:
    """Return arrays one after the other; lists become large_list where their elements need it."""
    if len(arrays) == 1:
        return arrays[0]
    kind = arrays[0].type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        total = sum(len(array.values) for array in arrays)
        wide = total >= 1 << 31 or any(pa.types.is_large_list(array.type) for array in arrays)
        if wide:
            arrays = [array.cast(pa.large_list(kind.value_type)) for array in arrays]
    return pa.concat_arrays(arrays)


def save_part(part: Part, folder: Path, finish: Callable[[Path], None] | None = None) -> None:
    """Write a part so that ``folder`` is whole or absent; ``finish`` is called while it has another name."""
    temporary = folder.with_name(f"{folder.name}{disk.TEMPORARY_SUFFIX}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    keys = list(part.columns)
    columns = [pa.array(part.files), pa.array(part.rows), *part.columns.values()]
    names = ["file", "row", *(f"c{number}" for number in range(len(keys)))]
    _write(temporary / "rows.arrow", pa.RecordBatch.from_arrays(columns, names), keys)
    lists = [_one_list(values) for values in part.dictionaries.values()]
    names = [f"d{number}" for number in range(len(lists))]
    _write(
        temporary / "dictionaries.arrow", pa.RecordBatch.from_arrays(lists, names), list(part.dictionaries)
    )
    _write(temporary / "bad.arrow", part.bad.table, list(part.bad.keys))
    if finish is not None:
        finish(temporary)
    temporary.rename(folder)


def open_part(folder: Path, wanted: Sequence[str] | None = None) -> Part:
    """Memory-map a saved part; with ``wanted`` what a part that was read for these keys alone would hold."""
    rows, keys = _open(folder / "rows.arrow")
    lists, dictionary_keys = _open(folder / "dictionaries.arrow")
    columns = dict(zip(keys, rows.columns[2:], strict=True))
    dictionaries = {key: column.values for key, column in zip(dictionary_keys, lists.columns, strict=True)}
    bad = BadRows(*_open(folder / "bad.arrow"))
    if wanted is not None:
        columns = {key: columns[key] for key in wanted if key in columns}
        dictionaries = {key: dictionaries[key] for key in wanted if key in dictionaries}
        bad = bad.only(wanted)
    return Part(rows.column(0).to_numpy(), rows.column(1).to_numpy(), columns, dictionaries, bad)


def check_part(part: Part) -> None:
    """Look at every byte of a saved part that may have been damaged since.

    Raises:
        ValueError: An array is damaged, or a code, a length or the place of a fault does not fit.
    """
    for key, column in part.columns.items():
        column.validate(full=True)
        if len(column) != len(part):
            raise ValueError(f"{key}: {len(column)} values for {len(part)} rows")
    for key, texts in part.dictionaries.items():
        texts.validate(full=True)
        if not pa.types.is_large_string(texts.type):
            raise ValueError(f"{key}: the dictionary is {texts.type}")
        codes = _codes(part.columns[key])
        if (codes[codes != NULL_CODE] >= len(texts)).any():
            raise ValueError(f"{key}: a code is beyond the dictionary")
    part.bad.check(len(part))


def _codes(column: pa.Array) -> NDArray[np.uint32]:
    """Return every code of a column of ids, of lists of ids or of weighted ids."""
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.values
    if pa.types.is_struct(column.type):
        column = column.field(0)
    if not pa.types.is_uint32(column.type):
        raise ValueError(f"codes are {column.type}")
    codes: NDArray[np.uint32] = numbers_of(column)
    return codes


def _one_list(values: pa.Array) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)


def _write(path: Path, batch: pa.RecordBatch, keys: list[str]) -> None:
    batch = batch.replace_schema_metadata({"keys": json.dumps(keys)})
    with pa.OSFile(os.fsencode(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def _open(path: Path) -> tuple[pa.RecordBatch, tuple[str, ...]]:
    with pa.memory_map(os.fsencode(path)) as source:
        batch = pa.ipc.open_file(source).get_batch(0)
    return batch, tuple(json.loads(batch.schema.metadata[b"keys"]))
