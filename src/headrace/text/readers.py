"""Token files that others wrote, as ``Tokens``: mapped, not copied, where their layout allows."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import DTypeLike, NDArray

from headrace import disk
from headrace.errors import SourceError, TextError, did_you_mean
from headrace.kernels.windows_scan import count_id, ends_after, largest_id
from headrace.loading.dtypes import dtype_name
from headrace.sources.files import SourceFile
from headrace.text.documents import files_of
from headrace.text.special import Special, check_special
from headrace.text.store import IDS, plain_lists, tokens_of_batches
from headrace.text.token_checks import check_ids
from headrace.text.tokens import Tokens, dtype_for

_BIN_DTYPES = ("uint8", "uint16", "uint32", "uint64", "int16", "int32", "int64")
_MEGATRON_MAGIC = b"MMIDIDX\x00\x00"
_MEGATRON_DTYPES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 8: "uint16"}
"""Megatron-LM's codes of integers; 6 and 7 are floats."""


def from_bin(
    path: str | Path, dtype: DTypeLike = "uint16", eos: int | None = None, *, vocab_size: int | None = None
) -> Tokens:
    """Map a file of bare ids, as nanoGPT and llm.c write it, without a copy.

    Such a file says nothing of documents: with ``eos`` each one ends after that id, which is
    the only place where headrace looks for an id; without, all of it is one document.

    Args:
        path: The file.
        dtype: The ids' dtype, of 8 to 64 bits; little-endian.
        eos: Id that ends each document.
        vocab_size: Number of ids, if known; every id is then checked.

    Raises:
        SourceError: The file is missing, or is no whole number of ids.
        TextError: An id is not below ``vocab_size``, or ``dtype`` is none of integers.
    """
    check_special(Special(vocab_size=vocab_size, eos=eos))
    values = _mapped(disk.as_path("path", path, TextError), _bin_dtype(dtype))
    _check_size(values, vocab_size, str(path))
    offsets = np.array([0, values.size]) if eos is None else _offsets_at(values, eos)
    return Tokens.from_arrays(values, offsets, vocab_size=vocab_size, eos=eos)


def _bin_dtype(given: DTypeLike) -> np.dtype[Any]:
    name = dtype_name(given, _BIN_DTYPES)
    if name is None:
        allowed = ", ".join(_BIN_DTYPES)
        raise TextError(f"dtype={given!r}: expected one of {allowed}.{did_you_mean(str(given), _BIN_DTYPES)}")
    return np.dtype(name).newbyteorder("<")


def _mapped(path: Path, dtype: np.dtype[Any], size: int | None = None) -> NDArray[Any]:
    """Return a file's content as a read-only map; an empty file as an empty array."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}.") from None
    if found % dtype.itemsize or (size is not None and found != size * dtype.itemsize):
        wanted = f"a multiple of {dtype.itemsize}" if size is None else f"{size * dtype.itemsize:,}"
        raise SourceError(f"{path}: {found:,} bytes, expected {wanted} for ids of {dtype.name}.")
    if found == 0:
        return np.empty(0, dtype)
    return np.memmap(path, dtype, mode="r")


def _offsets_at(values: NDArray[Any], eos: int) -> NDArray[np.int64]:
    """Return int64 [D+1]: documents end after each ``eos``, the last one where the file ends."""
    ends = np.empty(count_id(values, eos), np.int64)
    ends_after(values, eos, ends)
    tail = [] if ends.size and ends[-1] == values.size else [values.size]
    return np.concatenate([[0], ends, tail]).astype(np.int64) if values.size else np.zeros(1, np.int64)


def _check_size(values: NDArray[Any], vocab_size: int | None, where: str) -> None:
    """Check all ids in one pass: a negative one, seen as unsigned, is above all that its dtype allows."""
    if vocab_size is None:
        return
    unsigned = values.view(f"<u{values.dtype.itemsize}")
    if largest_id(unsigned) >= min(vocab_size, int(np.iinfo(values.dtype).max) + 1):
        check_ids(values, vocab_size, where)


def from_megatron(prefix: str | Path, *, eos: int | None = None, vocab_size: int | None = None) -> Tokens:
    """Map an indexed dataset of Megatron-LM: ``prefix.bin`` and ``prefix.idx``.

    Documents are those of the index, which may hold several sequences each; end tokens that
    were written into them stay.

    Args:
        prefix: The path without ``.bin`` and ``.idx``.
        eos: Id that ends a document.
        vocab_size: Number of ids, if known; every id is then checked.

    Raises:
        SourceError: A file is missing, of another format, or damaged.
        TextError: An id is not below ``vocab_size``.
    """
    stem = str(disk.as_path("prefix", prefix, TextError)).removesuffix(".bin").removesuffix(".idx")
    dtype, sequence_offsets, documents = _read_index(Path(f"{stem}.idx"))
    values = _mapped(Path(f"{stem}.bin"), dtype, size=int(sequence_offsets[-1]))
    _check_size(values, vocab_size, f"{stem}.bin")
    return Tokens.from_arrays(values, sequence_offsets[documents], vocab_size=vocab_size, eos=eos)


def _read_index(path: Path) -> tuple[np.dtype[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Return dtype, tokens before each sequence, and the sequence at which each document begins."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}.") from None
    if not content.startswith(_MEGATRON_MAGIC):
        raise SourceError(f"{path}: not an index of Megatron-LM (it begins with {content[:9]!r}).")
    try:
        _, code, sequences, documents = struct.unpack_from("<QBQQ", content, len(_MEGATRON_MAGIC))
        place = len(_MEGATRON_MAGIC) + struct.calcsize("<QBQQ")
        lengths = np.frombuffer(content, "<i4", sequences, place)
        addresses = np.frombuffer(content, "<i8", sequences, place + sequences * 4)
        borders = np.frombuffer(content, "<i8", documents, place + sequences * (4 + 8))
    except (struct.error, ValueError, OverflowError):
        raise SourceError(f"{path}: {len(content):,} bytes, fewer than its header announces.") from None
    if not documents or borders[0] != 0 or borders[-1] != sequences or np.any(np.diff(borders) < 0):
        raise SourceError(f"{path}: its documents do not cover its {sequences:,} sequences.")
    dtype = _integer_dtype(code, path)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    if np.any(lengths < 0) or not np.array_equal(addresses, offsets[:-1] * dtype.itemsize):
        raise SourceError(f"{path}: damaged, its sequences do not lie one after the other.")
    return dtype, offsets, borders


def _integer_dtype(code: int, path: Path) -> np.dtype[Any]:
    if code not in _MEGATRON_DTYPES:
        raise SourceError(f"{path}: dtype code {code}, expected one of integers: {sorted(_MEGATRON_DTYPES)}.")
    return np.dtype(_MEGATRON_DTYPES[code]).newbyteorder("<")


def from_parquet(
    files: Any,
    column: str = IDS,
    *,
    eos: int | None = None,
    pad: int | None = None,
    vocab_size: int | None = None,
) -> Tokens:
    """Read tokenized Parquet files, one document a row, into the smallest dtype, in memory.

    Args:
        files: Paths, globs or fsspec URLs; read in byte order of their names.
        column: The column of lists of ids. Other lists of numbers of the same lengths travel with them.
        eos: Id that ends a document.
        pad: Id for padding.
        vocab_size: Number of ids; None: the largest id decides the dtype.

    Raises:
        SourceError: A file is missing or damaged.
        TextError: There is no such column, it holds null, or an id is outside the vocabulary.
    """
    several = [files] if isinstance(files, (str, Path)) else files
    if not isinstance(column, str):
        raise TextError(f"column={column!r}: expected the name of a column.")
    if not isinstance(several, Iterable) or not all(isinstance(file, (str, Path)) for file in several):
        raise TextError(f"files={files!r}: expected a path, a glob or an fsspec URL, or a list of them.")
    patterns = [str(file) for file in several]
    batches = [_parquet_batch(file, column, vocab_size) for file in files_of(patterns, "files")]
    tokens = tokens_of_batches(_narrowed(batches, vocab_size))
    return tokens.with_special(eos=eos, pad=pad, vocab_size=vocab_size)


def _parquet_batch(file: SourceFile, column: str, vocab_size: int | None) -> pa.RecordBatch:
    try:
        with file.open() as stored:
            table = pq.ParquetFile(stored).read()
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"{file.name}: not a readable Parquet file ({error}).") from None
    batch = _one_batch(_renamed(table, column, file.name))
    check_ids(tokens_of_batches([batch]).values[0], vocab_size, file.name)
    return batch


def _renamed(table: pa.Table, column: str, path: str) -> pa.Table:
    """Return a table whose ``column`` is called ``input_ids``."""
    if column not in table.column_names:
        raise TextError(
            f"{path}: there is no column '{column}', only {table.column_names}."
            + did_you_mean(column, table.column_names)
        )
    twice = next((name for name in table.column_names if table.column_names.count(name) > 1), None)
    if twice is not None:
        raise TextError(f"{path}: there are two columns '{twice}'; leave one out.")
    kept = [name for name in table.column_names if name == column or name != IDS]
    return table.select(kept).rename_columns([IDS if name == column else name for name in kept])


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _narrowed(batches: Sequence[pa.RecordBatch], vocab_size: int | None) -> list[pa.RecordBatch]:
    """Return batches with ids of the smallest dtype, one for all."""
    ids = [tokens_of_batches([batch]).values[0] for batch in batches]
    size = vocab_size or 1 + max((int(values.max(initial=0)) for values in ids), default=0)
    kind = pa.from_numpy_dtype(dtype_for(size))
    return [_cast(batch, kind) for batch in batches]


def _cast(batch: pa.RecordBatch, kind: pa.DataType) -> pa.RecordBatch:
    place = batch.schema.get_field_index(IDS)
    column = plain_lists(batch.column(place))
    wide = pa.types.is_large_list(column.type)
    return batch.set_column(place, IDS, column.cast(pa.large_list(kind) if wide else pa.list_(kind)))
