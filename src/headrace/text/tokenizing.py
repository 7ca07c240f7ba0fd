"""Documents to a token store: batched, parallel, resumable, in bounded memory."""

from __future__ import annotations

import json
import operator
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import DTypeLike

from headrace import disk
from headrace.dataset.dataset import Dataset
from headrace.dataset.manifest import MANIFEST_NAME, Manifest, read_manifest, write_manifest
from headrace.dataset.shard import MAXIMUM_BYTES, FileEntry
from headrace.dataset.splits import DatasetDict, load_from_disk
from headrace.engine.local import default_threads, run_in_order
from headrace.errors import TextError, did_you_mean
from headrace.loading.dtypes import dtype_name
from headrace.text.bars import counting
from headrace.text.documents import read_documents
from headrace.text.encoding import Assigned, SameColumns, Wanted, check_encoded, empty_rows, rows_of
from headrace.text.masking import WORD_STARTS
from headrace.text.plans import remove_plans
from headrace.text.progress import Progress, difference
from headrace.text.settings import check_integer
from headrace.text.special import Special, check_special
from headrace.text.splitting import TRAIN, Splitting, content_hash
from headrace.text.tokenizer import (
    Encoded,
    Tokenizer,
    TokenizerLike,
    as_tokenizer,
    encode_documents,
    plain_text,
)
from headrace.text.tokens import dtype_for
from headrace.text.writer import SplitWriter, Written, stored_columns

_TOKENIZER = "tokenizer"
_LOCK = ".lock"
_DTYPES = ("uint8", "uint16", "uint32", "uint64")
_BATCH_CHARACTERS = 1 << 18
_BATCH_DOCUMENTS = 1 << 12


def tokenize(
    docs: Any,
    tokenizer: TokenizerLike,
    out: str | Path,
    split: Mapping[str, float] | None = None,
    split_by: str = "hash",
    sentences: bool = False,
    min_length: int = 0,
    *,
    words: bool = False,
    special: Mapping[str, int] | None = None,
    vocab_size: int | None = None,
    dtype: DTypeLike | None = None,
    append: bool = False,
    threads: int | None = None,
    shard_bytes: int = MAXIMUM_BYTES,
) -> Dataset | DatasetDict:
    """Tokenize documents into a store of one ragged column ``input_ids``.

    No special token is added: where documents end stands in the column's offsets. Ids take the
    smallest of uint8/16/32/64 that holds the vocabulary. Memory is bounded by a few batches and one
    shard a split. Killed at any instant, a second run with the same arguments goes on after the last
    finished shard and gives the same bytes; until the end the folder is no store.

        store/headrace.json    manifest: tokenizer's name, hash, vocabulary size, special tokens; counts
        store/tokenizer/...    the tokenizer's own file, so that samples can be decoded
        store/train/00000.arrow ...

    Args:
        docs: Files, a ``Dataset`` or an iterable of texts: see ``read_documents``.
        tokenizer: See ``as_tokenizer``. A function may return a mapping: its other entries, one value a
            token, become columns that travel with the tokens (``label_mask``, types, weights).
        out: The store's folder.
        split: Shares of documents, such as ``{"valid": 0.001}``; the rest is ``train``. None: all of them.
        split_by: ``"hash"`` of the text, or a field of the rows whose equal values stay on one side.
        sentences: Keep where sentences start: needed by ``align="sentence"``.
        min_length: Documents of fewer tokens are left out, and counted.
        words: Keep which tokens start a word: needed by ``MLM(whole_word=True)``.
        special: Ids by ``"eos"``, ``"pad"`` and ``"mask"``, where the tokenizer does not say.
        vocab_size: Number of ids, where the tokenizer does not say.
        dtype: Force a dtype of the ids; an id that it does not hold is an error.
        append: Add documents to a finished store as new shards.
        threads: Threads that encode; None: one for each processor. A function is called in several at once:
            give 1 for one that keeps a state, such as a vocabulary that grows.
        shard_bytes: Bytes of ids with which a shard is closed.

    Returns:
        The store's ``Dataset``; with ``split`` a ``DatasetDict``.

    Raises:
        TextError: Ids outside the vocabulary, another tokenizer than the store's, a store that is there
            already, or documents that are not those of the run that was interrupted.
        SourceError: A file is missing, damaged or not UTF-8.
        BuildError: Another process writes to the folder.
    """
    _check_types(split, split_by, special, append)
    check_integer("shard_bytes", shard_bytes, 1)
    if threads is not None:
        check_integer("threads", threads, 1)
    folder = disk.as_path("out", out, TextError)
    chosen = as_tokenizer(tokenizer)
    if chosen.randomness is not None:
        warnings.warn(
            f"tokenizer {chosen.name} draws its ids ({chosen.randomness}): another run gives others, and one "
            "that was interrupted goes on with others. Switch that off for ids that can be made again.",
            UserWarning,
            stacklevel=2,
        )
    job = Job(
        folder=folder,
        tokenizer=chosen,
        special=_special(chosen, special, vocab_size),
        splitting=Splitting(dict(split or {}), split_by),
        wanted=Wanted(sentences, words, min_length),
        dtype=_dtype(dtype),
        shard_bytes=int(shard_bytes),
        threads=int(threads) if threads is not None else default_threads(),
    )
    with disk.locked(folder / _LOCK, str(folder)):
        _run(job, docs, append)
    opened = load_from_disk(folder)
    return opened if split else opened[TRAIN]


@dataclass(frozen=True)
class Job:
    """One call of ``tokenize``, its arguments resolved."""

    folder: Path
    tokenizer: Tokenizer
    special: Special
    splitting: Splitting
    wanted: Wanted
    dtype: str | None
    shard_bytes: int
    threads: int

    @property
    def values_dtype(self) -> np.dtype[Any]:
        """The dtype of stored ids; uint32 where nobody knows how many there are."""
        if self.dtype is not None:
            return np.dtype(self.dtype)
        return np.dtype(np.uint32) if self.special.vocab_size is None else dtype_for(self.special.vocab_size)

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the bytes beside the documents; a tokenizer counts by its content, not its name."""
        return {
            "tokenizer": {
                "kind": self.tokenizer.kind,
                "digest": self.tokenizer.digest,
                "special_tokens": dict(self.tokenizer.special_tokens),
                **asdict(self.special),
            },
            "split": dict(self.splitting.shares),
            "split_by": self.splitting.by,
            **asdict(self.wanted),
            "dtype": self.values_dtype.name,
            "shard_bytes": self.shard_bytes,
        }


def _check_types(split: object, split_by: object, special: object, append: object) -> None:
    for name, value in (("split", split), ("special", special)):
        if value is not None and not isinstance(value, Mapping):
            example = '{"valid": 0.01}' if name == "split" else '{"eos": 0}'
            raise TextError(f"{name}={value!r}: expected a mapping such as {example}.")
    if not isinstance(append, bool):
        raise TextError(f"append={append!r}: expected True or False.")
    if not isinstance(split_by, str):
        raise TextError(f"split_by={split_by!r}: expected 'hash', or the name of a field.")


def _special(tokenizer: Tokenizer, given: Mapping[str, int] | None, vocab_size: int | None) -> Special:
    unknown = set(given or {}) - {"eos", "pad", "mask"}
    if unknown:
        raise TextError(f"special: {sorted(unknown)[0]!r} is unknown; there are 'eos', 'pad' and 'mask'.")
    found = replace(tokenizer.special, **dict(given or {}))
    whole = found if vocab_size is None else replace(found, vocab_size=vocab_size)
    check_special(whole)
    return whole


def _dtype(dtype: DTypeLike | None) -> str | None:
    name = dtype_name(dtype, _DTYPES)
    if dtype is not None and name is None:
        raise TextError(
            f"dtype={dtype!r}: expected one of {', '.join(_DTYPES)}, or None for the smallest that fits."
            + did_you_mean(str(dtype), _DTYPES)
        )
    return name


def _run(job: Job, docs: Any, append: bool) -> None:
    base = _finished_before(job, append)
    disk.remove_temporaries(job.folder)
    progress = Progress.of(job.folder, job.settings, job.splitting.names, base)
    writers = {
        name: SplitWriter(job.folder, name, job.special, job.shard_bytes, written, progress.save)
        for name, written in progress.written.items()
    }
    made = (WORD_STARTS,) if job.wanted.words else ()
    columns = SameColumns(stored_columns(job.folder, progress.written.values()), made)
    with counting("tokenizing") as advance:
        for documents, encoded in _encoded(job, progress.left(_assigned(job, docs))):
            check_encoded(documents, encoded, columns, job.special, job.values_dtype)
            for name, rows in rows_of(documents, encoded, job.wanted, job.values_dtype).items():
                writers[name].add(rows)
                advance(len(rows), rows.values.size)
    for writer in writers.values():
        writer.finish(empty_rows(job.wanted, job.values_dtype))
    _publish(job, progress.written)
    progress.path.unlink(missing_ok=True)
    remove_plans(job.folder)


def _assigned(job: Job, docs: Any) -> Iterator[Assigned]:
    takes_anything = job.tokenizer.kind == "callable" and not job.wanted.needs_ends
    for document in read_documents(docs):
        text = document.text
        if not (takes_anything or isinstance(text, str)):
            raise TextError(f"{document.where}: found {type(text).__name__}, expected a text.")
        content = content_hash(text)
        split = job.splitting.split_of(document, content)
        plain = plain_text(text)
        yield Assigned(document if plain is text else document._replace(text=plain), split, content)


def _encoded(job: Job, documents: Iterable[Assigned]) -> Iterator[tuple[list[Assigned], Encoded]]:
    """Yield batches and their ids, in order; while one is stored the next are encoded.

    Raises:
        TextError: A document cannot be encoded; those before it were yielded.
    """
    ended = threading.Event()

    def encode(batch: list[Assigned]) -> tuple[list[Assigned], Encoded, TextError | None]:
        texts = [one.document.text for one in batch]
        where = [one.document.where for one in batch]
        encoded, failed = encode_documents(job.tokenizer, texts, job.wanted.needs_ends, where, ended)
        return batch[: len(encoded.ids)], encoded, failed

    for batch, encoded, failed in run_in_order(encode, _batches(documents, job.threads), job.threads, ended):
        yield batch, encoded
        if failed is not None:
            raise failed


def _batches(documents: Iterable[Assigned], threads: int) -> Iterator[list[Assigned]]:
    """Yield documents in batches that grow with what was read, so that all threads share even a few.

    Raises:
        Exception: A document cannot be read; those before it were yielded.
    """
    batch: list[Assigned] = []
    size, read, most = 0, 0, 1
    try:
        for one in documents:
            batch.append(one)
            size += operator.length_hint(one.document.text, 1)
            if size >= _BATCH_CHARACTERS or len(batch) >= most:
                yield batch
                read += len(batch)
                most = min(_BATCH_DOCUMENTS, 1 + read // (2 * threads))
                batch, size = [], 0
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _finished_before(job: Job, append: bool) -> Manifest | None:
    """Return the store's manifest when documents are to be added to it."""
    if not (job.folder / MANIFEST_NAME).exists():
        return None
    manifest = read_manifest(job.folder)
    if not append:
        raise TextError(
            f"{job.folder} holds a store already. Give append=True to add documents to it as new shards, "
            "or another out."
        )
    if (told := difference(job.settings, manifest.details.get("settings", {}))) is not None:
        raise TextError(f"{job.folder}: {told}. Append with the same arguments, or give another out.")
    return manifest


def _publish(job: Job, written: Mapping[str, Written]) -> None:
    """Write the tokenizer's file and, last, the manifest: from now on the folder is a store."""
    files = _write_tokenizer(job)
    shards = {name: tuple(part.shards) for name, part in written.items()}
    digest = xxhash.xxh3_128(json.dumps(job.settings, sort_keys=True).encode())
    for entry in (entry for entries in shards.values() for entry in entries):
        digest.update(f"{entry.name} {entry.xxh3};".encode())
    details = {
        "settings": job.settings,
        "tokenizer": {
            "name": job.tokenizer.name,
            **job.settings["tokenizer"],
            "file": files[0].name if files else None,
        },
        "splits": {name: part.counts for name, part in written.items()},
    }
    write_manifest(
        job.folder,
        Manifest("tokens", digest.hexdigest(), shards, files=files, details=details),
    )


def _write_tokenizer(job: Job) -> tuple[FileEntry, ...]:
    if job.tokenizer.file is None:
        return ()
    name, content = job.tokenizer.file
    path = f"{_TOKENIZER}/{name}"
    disk.write_bytes(job.folder / path, content)
    return (FileEntry.of(job.folder, path),)
