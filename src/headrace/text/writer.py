"""Token shards: documents in, a file whenever enough have come, cut by the documents alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from headrace.arrays import ragged
from headrace.dataset.shard import FileEntry, open_shard, shard_name, write_shard
from headrace.errors import TextError
from headrace.text.special import Special
from headrace.text.store import IDS, SENTENCES, special_metadata

Integers = NDArray[np.int64]


@dataclass
class Written:
    """What a split holds so far, in finished shards; what a later run goes on from."""

    consumed: int = 0
    """Documents of the split that were read, those too short to keep included."""
    chain: int = 0
    """64-bit hash of the contents read, each hashed with the one before it as seed."""
    documents: int = 0
    tokens: int = 0
    too_short: int = 0
    ends_with_eos: int = 0
    shards: list[FileEntry] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """What the manifest says of the split."""
        names = ("documents", "tokens", "too_short", "ends_with_eos")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Rows:
    """Documents of one split, ready to be stored."""

    lengths: Integers
    """int64 [n], tokens of each document."""
    values: NDArray[Any]
    """[T], their ids in the store's dtype."""
    parallel: Mapping[str, NDArray[Any]]
    """[T], columns parallel to the ids."""
    sentences: tuple[Integers, Integers] | None
    """int64 [n] and [M]: sentences of each document, and the token at which each begins."""
    hashes: NDArray[np.uint64]
    """uint64 [m], the content of every document that was read, those too short included."""
    kept: Integers
    """int64 [n], which of these the rows are."""

    def __len__(self) -> int:
        return self.lengths.size

    def part(self, begin: int, end: int) -> Rows:
        """Return rows ``begin`` to ``end - 1``, with what was read since the row before them.

        What was read behind the last row goes with it, and to no part that begins there.
        """
        tokens = np.concatenate([[0], np.cumsum(self.lengths)])
        read = self._read_before(begin)
        return Rows(
            self.lengths[begin:end],
            self.values[tokens[begin] : tokens[end]],
            {name: column[tokens[begin] : tokens[end]] for name, column in self.parallel.items()},
            self._part_of_sentences(begin, end),
            self.hashes[read : self._read_before(end)],
            self.kept[begin:end] - read,
        )

    def _read_before(self, row: int) -> int:
        """Return the documents read before a row: all up to the row before it; behind the last row, all."""
        if row == len(self):
            return self.hashes.size
        return 0 if row == 0 else int(self.kept[row - 1]) + 1

    def _part_of_sentences(self, begin: int, end: int) -> tuple[Integers, Integers] | None:
        if self.sentences is None:
            return None
        counts, starts = self.sentences
        borders = np.concatenate([[0], np.cumsum(counts)])
        return counts[begin:end], starts[borders[begin] : borders[end]]


class SplitWriter:
    """Writes the shards of one split.

    Args:
        folder: The store.
        split: The split's name.
        special: Special tokens, kept in every shard's schema.
        shard_bytes: A shard is closed by the first document with which its ids have so many bytes.
        written: What is there already.
        on_shard: Called after each finished shard.
    """

    def __init__(
        self,
        folder: Path,
        split: str,
        special: Special,
        shard_bytes: int,
        written: Written,
        on_shard: Callable[[], None],
    ) -> None:
        self.folder, self.split, self.special = folder, split, special
        self.shard_bytes, self.written, self.on_shard = shard_bytes, written, on_shard
        self._pending: list[Rows] = []
        self._pending_bytes = 0

    def add(self, rows: Rows) -> None:
        """Take documents; write shards as they fill."""
        while (cut := self._cut(rows)) is not None:
            self._pending.append(rows.part(0, cut))
            self._write()
            rows = rows.part(cut, len(rows))
        self._pending.append(rows)
        self._pending_bytes += rows.values.nbytes

    def _cut(self, rows: Rows) -> int | None:
        """Return how many of the rows fill the shard, or None where they do not."""
        filled = self._pending_bytes + np.cumsum(rows.lengths) * rows.values.itemsize
        place = int(np.searchsorted(filled, self.shard_bytes))
        return place + 1 if place < len(rows) else None

    def finish(self, nothing: Rows) -> None:
        """Write what is left; a split without a document has one shard without a row.

        Args:
            nothing: No rows, of the right columns.
        """
        pending = self._pending or [nothing]
        self._pending = pending
        if any(map(len, pending)) or not self.written.shards:
            self._write()
        else:
            self._count(pending, 0)

    def _write(self) -> None:
        """Write all pending rows as one shard."""
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        batch = self._with_columns(shard_of(pending, self.special))
        name = shard_name(self.split, self._next_number())
        write_shard(self.folder / name, batch)
        if not any(entry.rows for entry in self.written.shards):
            self.written.shards.clear()  # one without a row need not know of the columns
        self.written.shards.append(FileEntry.of(self.folder, name, batch.num_rows))
        self._count(pending, batch.num_rows)
        self.on_shard()

    def _next_number(self) -> int:
        shards = self.written.shards
        return int(Path(shards[-1].name).stem) + 1 if shards else 0

    def _with_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a shard with the columns of the first shard with rows, in their order there.

        Raises:
            TextError: It has tokens, and other columns.
        """
        earlier = next((entry for entry in self.written.shards if entry.rows), None)
        if earlier is None or batch.num_rows == 0:
            return batch
        there = open_shard(self.folder / earlier.name).schema
        if len(batch.column(IDS).values) == 0:
            return _with_empty_columns(batch, there)
        if _values(there) != _values(batch.schema):
            raise TextError(
                f"{self.folder}: the documents bring {_values(batch.schema)}, and {earlier.name} holds "
                f"{_values(there)}. Give the same columns, each of one dtype, or another out."
            )
        return batch.select(there.names)

    def _count(self, pending: list[Rows], documents: int) -> None:
        written = self.written
        for rows in pending:
            written.chain = chained(written.chain, rows.hashes.tolist())
            written.consumed += rows.hashes.size
            written.too_short += rows.hashes.size - len(rows)
            written.tokens += rows.values.size
            written.ends_with_eos += _ending_with(rows, self.special.eos)
        written.documents += documents


def stored_columns(folder: Path, written: Iterable[Written]) -> dict[str, np.dtype[Any]] | None:
    """Return the dtypes of the columns beside the ids in finished shards; None where none has a token."""
    for entry in (entry for part in written for entry in part.shards if entry.rows):
        batch = open_shard(folder / entry.name)
        if len(batch.column(IDS).values):
            beside = [field for field in batch.schema if field.name not in (IDS, SENTENCES)]
            return {field.name: np.dtype(field.type.value_type.to_pandas_dtype()) for field in beside}
    return None


def chained(chain: int, hashes: Iterable[int]) -> int:
    """Return the hash of a sequence of content hashes, going on from the hash of those before them."""
    for content in hashes:
        chain = xxhash.xxh3_64_intdigest(content.to_bytes(8, "little"), seed=chain)
    return chain


def _ending_with(rows: Rows, eos: int | None) -> int:
    if eos is None:
        return 0
    ends = np.cumsum(rows.lengths)[rows.lengths > 0] - 1
    return int(np.count_nonzero(rows.values[ends] == eos))


def shard_of(pending: list[Rows], special: Special) -> pa.RecordBatch:
    """Return rows as a record batch: ``input_ids``, parallel columns and sentence starts, as lists."""
    offsets = _offsets(np.concatenate([rows.lengths for rows in pending]))
    columns = {IDS: ragged(offsets, pa.array(np.concatenate([rows.values for rows in pending])))}
    telling = next((rows for rows in pending if rows.values.size), pending[0])
    for name, like in telling.parallel.items():
        parts = [rows.parallel[name] for rows in pending if rows.values.size]
        columns[name] = ragged(offsets, pa.array(np.concatenate([like[:0], *parts])))
    if all(rows.sentences is not None for rows in pending):
        counts, starts = zip(*(rows.sentences for rows in pending if rows.sentences is not None), strict=True)
        borders = _offsets(np.concatenate(counts))
        columns[SENTENCES] = ragged(borders, pa.array(np.concatenate(starts).astype(np.int32)))
    batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    return batch.replace_schema_metadata(special_metadata(special))


def _with_empty_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return documents without a token with the columns that others bring, empty too."""
    nothing = _offsets(np.zeros(batch.num_rows, np.int64))
    columns = {
        field.name: batch.column(field.name)
        if field.name in (IDS, SENTENCES)
        else ragged(nothing, pa.array([], field.type.value_type))
        for field in schema
    }
    whole = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    return whole.replace_schema_metadata(batch.schema.metadata)


def _values(schema: pa.Schema) -> dict[str, str]:
    """Return the dtype of each column's values; whether offsets are long or short is no difference."""
    return {field.name: str(field.type.value_type) for field in schema}


def _offsets(lengths: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
