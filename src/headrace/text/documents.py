"""Documents out of whatever the user has: texts, files, rows of a dataset."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.errors import SourceError, TextError
from headrace.sources.files import SourceFile, find_files
from headrace.sources.streams import CutOff, decompressed

TEXT = "text"
_JSON_LINES = (".jsonl", ".ndjson", ".json")
_PACKED = (".gz", ".zst", ".zstd", ".bz2", ".xz")
_NO_FIELDS: Mapping[str, Any] = {}
_ROWS_AT_ONCE = 1024
_LONGEST_NAME = 4096


class Document(NamedTuple):
    """One document."""

    text: Any
    """A text; for a tokenizer of the user's own whatever it takes."""
    fields: Mapping[str, Any]
    """What else the row holds."""
    where: str
    """Where it came from, for messages."""


def read_documents(docs: Any) -> Iterator[Document]:
    """Yield documents one by one, reading no more than is asked for.

    Args:
        docs: A path, a glob or an fsspec URL, or several; a file of JSON lines or Parquet gives a document
            a row, from its field ``text``; any other file is one document; plain, gzip, zstd,
            bzip2 or xz. Several are given as ``Path``. Or a ``Dataset`` (of headrace or Hugging Face) or an
            Arrow table with a column ``text``. Or any iterable of texts, or of mappings that have a ``text``.

    Raises:
        SourceError: A file is missing, damaged, or not UTF-8.
        TextError: There is no text where one should be.
    """
    if isinstance(docs, (str, Path)):
        yield from _from_files(files_of(str(docs), "docs"))
        return
    if isinstance(docs, (pa.Table, pa.RecordBatch)):
        yield from _from_rows(docs.to_reader(_ROWS_AT_ONCE) if isinstance(docs, pa.Table) else [docs], "row")
        return
    if hasattr(docs, "with_format"):
        docs = docs.with_format(None)  # rows as mappings, whatever the user has them as
    if not isinstance(docs, Iterable):
        raise TextError(
            f"docs: {type(docs).__name__} holds no documents. Give files, a Dataset, or an iterable of texts."
        )
    _check_not_of_names(docs)
    for number, item in enumerate(docs):
        if isinstance(item, str):
            if number == 0:
                _warn_of_a_name(item)
            yield Document(item, _NO_FIELDS, f"document {number}")
        elif isinstance(item, Path):
            yield from _from_files(files_of(str(item), "docs"))
        else:
            yield _from_item(item, f"document {number}")


def files_of(patterns: str | Iterable[str], name: str) -> list[SourceFile]:
    """Return the files that paths, globs and URLs mean.

    Args:
        patterns: One or several.
        name: What the user calls them, for messages.

    Raises:
        SourceError: There is no such file.
    """
    try:
        return find_files(patterns)
    except SourceError as error:
        raise SourceError(str(error).replace("source.files", name)) from None


def _warn_of_a_name(text: str) -> None:
    """Warn of a list of file names, which would be taken for texts."""
    if len(text) <= _LONGEST_NAME and "\n" not in text and os.path.isfile(text):
        warnings.warn(
            f"document 0 is the text {text!r}, and there is a file of that name. A list of texts is taken as "
            "it is; for the content of files give them as Path.",
            UserWarning,
            stacklevel=2,
        )


def _check_not_of_names(docs: Any) -> None:
    """Refuse what gives names or numbers where texts are expected: splits by name, a data frame, bytes."""
    kind = type(docs).__name__
    if isinstance(docs, (bytes, bytearray, memoryview)):
        raise TextError(f"docs: {kind} is no text. Decode it, and give it in a list.")
    if isinstance(docs, Mapping):
        names = ", ".join(map(str, docs))
        raise TextError(
            f"docs: {kind} holds {names or 'nothing'} by name. Give one of them, or a list of rows."
        )
    if hasattr(docs, "columns"):
        raise TextError(f"docs: {kind} holds columns. Give the one that holds the texts, docs['text'].")


def _from_item(item: Any, where: str) -> Document:
    if isinstance(item, pa.Scalar):
        item = item.as_py()
    if not isinstance(item, Mapping):
        return Document(_checked(item, where), _NO_FIELDS, where)
    if TEXT not in item:
        raise TextError(
            f"{where}: a row has no field '{TEXT}', it has {sorted(map(str, item))}. "
            "Rename the one that holds the text."
        )
    return Document(_checked(item[TEXT], where), item, where)


def _checked(text: Any, where: str) -> Any:
    if text is None or isinstance(text, (bytes, bytearray)):
        found = "bytes; decode them first" if text is not None else "no text (null)"
        raise TextError(f"{where}: found {found}. Leave such rows out, or give them a text.")
    return text


def _from_files(files: Iterable[SourceFile]) -> Iterator[Document]:
    for file in files:
        suffix = _suffix(file.path)
        if suffix == ".parquet":
            yield from _from_parquet(file)
        elif suffix in _JSON_LINES:
            yield from _from_json_lines(file)
        else:
            yield Document(_decoded(_content(file), file.name), _NO_FIELDS, file.name)


def _suffix(path: str) -> str:
    """Return a name's last suffix that is not one of compression."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix not in _PACKED), "")


def _content(file: SourceFile) -> bytes:
    try:
        return b"".join(decompressed(file))
    except CutOff as error:
        raise SourceError(f"{file.name}: {error}. Restore the file, or leave it out.") from None


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{where}: not UTF-8 (byte {error.start} is 0x{content[error.start]:02x}). "
            "Convert the file, or read it yourself and pass the texts."
        ) from None


def _from_json_lines(file: SourceFile) -> Iterator[Document]:
    for number, line in enumerate(_lines(file), 1):
        where = f"{file.name}:{number}"
        if not line.strip():
            continue
        try:
            row = json.loads(_decoded(line, where))
        except (ValueError, RecursionError) as error:
            if isinstance(error, SourceError):
                raise
            raise SourceError(f"{where}: not a line of JSON ({error}).") from None
        if not isinstance(row, Mapping):
            raise SourceError(
                f"{where}: found a JSON {type(row).__name__}, expected an object with '{TEXT}'."
            )
        yield _from_item(row, where)


def _lines(file: SourceFile) -> Iterator[bytes]:
    """Yield lines without their ends, keeping no more than one in memory."""
    begun: list[bytes] = []
    try:
        for piece in decompressed(file):
            first, *more = piece.split(b"\n")
            begun.append(first)
            if more:
                yield b"".join(begun)
                yield from more[:-1]
                begun = more[-1:]
    except CutOff as error:
        raise SourceError(f"{file.name}: {error}. Restore the file, or leave it out.") from None
    yield b"".join(begun)


def _from_parquet(file: SourceFile) -> Iterator[Document]:
    try:
        with file.open() as stored:
            batches = pq.ParquetFile(stored).iter_batches(batch_size=_ROWS_AT_ONCE)
            yield from _from_rows(batches, f"{file.name}, row")
    except (pa.ArrowException, OSError) as error:  # a page that is damaged is an OSError to Arrow
        raise SourceError(f"{file.name}: not a readable Parquet file ({error}).") from None


def _from_rows(batches: Iterable[pa.RecordBatch], where: str) -> Iterator[Document]:
    number = 0
    for batch in batches:
        for row in batch.to_pylist():
            yield _from_item(row, f"{where} {number}")
            number += 1
