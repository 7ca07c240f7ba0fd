"""A token store on disk, seen as ``Tokens``: the same bytes, no copy but of offsets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import list_borders, numbers_of
from headrace.dataset.manifest import Manifest, read_manifest
from headrace.dataset.shard import open_shard
from headrace.errors import TextError, did_you_mean
from headrace.text.settings import as_path
from headrace.text.tokens import Sentences, Special, Tokens, Values

IDS = "input_ids"
SENTENCES = "sentence_starts"
METADATA = b"headrace.tokens"
"""Key of a shard's schema under which the special tokens stand, so that every view of it has them."""


def open_tokens(folder: str | Path, split: str | None = None) -> Tokens:
    """Open a split of a token store; ids stay on disk until they are read.

    Args:
        folder: What ``tokenize`` wrote.
        split: Which split; None where there is only one.

    Raises:
        StoreError: The folder is no store, or a shard is missing or damaged.
        TextError: It holds no tokens, or no such split.
    """
    path = as_path("folder", folder)
    manifest = read_manifest(path)
    name = _split_of(manifest, split, path)
    batches = [open_shard(path / entry.name) for entry in manifest.splits[name]]
    return tokens_of_batches(
        batches,
        digest=f"{manifest.fingerprint}-{name}",
        folder=path,
        split=name,
        details=_details(manifest, name),
    )


def _details(manifest: Manifest, split: str) -> dict[str, Any]:
    return {**manifest.details["splits"][split], "tokenizer": manifest.details["tokenizer"]}


def _split_of(manifest: Manifest, split: str | None, folder: Path) -> str:
    if manifest.kind != "tokens":
        raise TextError(f"{folder} holds {manifest.kind}, not tokens. Make a token store with tokenize.")
    names = list(manifest.splits)
    if split is None and len(names) == 1:
        return names[0]
    if split not in names:
        found = "no split was named" if split is None else f"there is no split {split!r}"
        raise TextError(
            f"{folder}: {found}; it has {', '.join(names)}. Take one with Tokens.open(folder, split)."
            + did_you_mean(str(split), names)
        )
    return split


def tokens_of_batches(
    batches: Iterable[pa.RecordBatch],
    *,
    digest: str | None = None,
    folder: Path | None = None,
    split: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> Tokens:
    """Return the column ``input_ids`` of record batches as ``Tokens``, other columns of its shape with it.

    Args:
        batches: One a shard; at least one.
        digest: Stands for the data.
        folder: The store's folder.
        split: The store's split.
        details: What the manifest says.

    Raises:
        TextError: There is no such column, or it is no list of integers.
    """
    shards = _with_rows(list(batches))
    ids = [_ragged(batch, IDS) for batch in shards]
    starts = np.cumsum([0, *(values.size for _, values in ids)])
    offsets = [borders[:-1] + start for (borders, _), start in zip(ids, starts, strict=False)]
    return Tokens(
        values=_one_dtype(tuple(values for _, values in ids)),
        offsets=np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
        special=special_of(shards[0].schema),
        columns=_parallel_columns(shards, ids),
        sentences=_sentences(shards),
        digest=digest,
        folder=folder,
        split=split,
        details=details or {},
    )


def _with_rows(shards: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the shards that have rows: one without need not know of the others' columns."""
    return [shard for shard in shards if shard.num_rows] or shards[:1]


def tokens_of_dataset(dataset: Any) -> Tokens:
    """Return a ``Dataset`` or an Arrow table with a column ``input_ids`` as ``Tokens``.

    Raises:
        TextError: It has no such column, or is a stream.
    """
    if not hasattr(dataset, "__len__"):
        raise TextError(
            f"tokens: {type(dataset).__name__} is a stream, and windows are cut from documents at any place. "
            "Give a dataset that is not streamed, or a list of lists of ids."
        )
    names = list(dataset.column_names)
    if IDS not in names:
        raise TextError(
            f"tokens: the dataset has the columns {names}, and ids are read from '{IDS}'. "
            "Rename the one that holds them."
        )
    table = _table_of(dataset)
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    return tokens_of_batches(batches, digest=getattr(dataset, "fingerprint", None), **_place_of(dataset))


def _table_of(dataset: Any) -> pa.Table:
    if isinstance(dataset, pa.Table):
        return dataset
    table: pa.Table = dataset.to_arrow() if hasattr(dataset, "to_arrow") else dataset.with_format("arrow")[:]
    return table


def _place_of(dataset: Any) -> dict[str, Any]:
    """Return folder, split and details of a dataset that is a whole split of a token store as it is now."""
    place: tuple[Path, str] | None = getattr(dataset, "place", None)
    if place is None:
        return {}
    folder, split = place
    manifest = read_manifest(folder)
    if manifest.kind != "tokens" or f"{manifest.fingerprint}-{split}" != dataset.fingerprint:
        return {}
    return {"folder": folder, "split": split, "details": _details(manifest, split)}


def special_metadata(special: Special) -> dict[bytes, bytes]:
    """Return what goes into a shard's schema."""
    return {METADATA: json.dumps(vars(special)).encode()}


def special_of(schema: pa.Schema) -> Special:
    """Return the special tokens that a schema declares; none where it says nothing."""
    declared = (schema.metadata or {}).get(METADATA)
    return Special() if declared is None else Special(**json.loads(declared))


def _ragged(batch: pa.RecordBatch, name: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return offsets and values of a column of lists of numbers."""
    if name not in batch.schema.names:
        raise TextError(f"tokens: there is no column '{name}', only {batch.schema.names}.")
    column = batch.column(name)
    if not _is_list_of_numbers(column.type):
        raise TextError(f"tokens: column '{name}' is {column.type}, expected a list of integers in each row.")
    offsets, values = list_borders(column)
    if values.null_count:
        raise TextError(f"tokens: column '{name}' has null among its numbers; a token is always an id.")
    return offsets, numbers_of(values)


def _is_list_of_numbers(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    return bool(pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type))


def _one_dtype(shards: Values) -> Values:
    dtypes = {shard.dtype.name for shard in shards}
    if len(dtypes) > 1 or not all(shard.dtype.kind in "iu" for shard in shards):
        raise TextError(f"tokens: shards hold {sorted(dtypes)}; ids are integers of one dtype in all shards.")
    return shards


def _parallel_columns(
    shards: list[pa.RecordBatch], ids: list[tuple[NDArray[np.int64], NDArray[Any]]]
) -> dict[str, Values]:
    """Return the columns that have one number for each token of each document."""
    names = [
        field.name
        for field in shards[0].schema
        if field.name not in (IDS, SENTENCES) and _is_list_of_numbers(field.type)
    ]
    columns = {name: [_ragged(batch, name) for batch in shards] for name in names}
    parallel = {
        name: tuple(values for _, values in parts)
        for name, parts in columns.items()
        if all(np.array_equal(part[0], own[0]) for part, own in zip(parts, ids, strict=True))
    }
    return {name: values for name, values in parallel.items() if not _says_nothing(name, values)}


def _says_nothing(name: str, values: Values) -> bool:
    """Whether a column is an attention mask of ones, as tokenizers of transformers add one."""
    return name == "attention_mask" and all(bool(np.all(shard == 1)) for shard in values)


def _sentences(shards: list[pa.RecordBatch]) -> Sentences | None:
    if SENTENCES not in shards[0].schema.names:
        return None
    return tuple(_ragged(batch, SENTENCES) for batch in shards)
