"""A token store on disk, seen as ``Tokens``: the same bytes, no copy but of offsets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace import disk
from headrace.arrays import list_borders, numbers_of
from headrace.dataset.manifest import Manifest, read_manifest
from headrace.dataset.shard import open_shard
from headrace.errors import StoreError, TextError, did_you_mean
from headrace.text.special import Special
from headrace.text.tokens import Sentences, Tokens, Values

IDS = "input_ids"
MEANT = ("label_mask", "word_starts")
"""Columns whose name says that they are parallel to the tokens."""
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
    path = disk.as_path("folder", folder, TextError)
    if not path.exists():
        raise StoreError(f"{path}: no such folder. Make a token store with tokenize(docs, tokenizer, out).")
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
    table = table_of(dataset)
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    return tokens_of_batches(batches, digest=getattr(dataset, "fingerprint", None), **_place_of(dataset))


def table_of(dataset: Any) -> pa.Table:
    """Return a ``Dataset``, a table or a record batch as a table."""
    if isinstance(dataset, pa.Table):
        return dataset
    if isinstance(dataset, pa.RecordBatch):
        return pa.Table.from_batches([dataset])
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
    """Return the special tokens that a schema declares; none where it says nothing.

    Raises:
        TextError: What it says is not what headrace writes.
    """
    declared = (schema.metadata or {}).get(METADATA)
    if declared is None:
        return Special()
    try:
        return Special(**json.loads(declared))
    except (ValueError, TypeError, RecursionError):
        raise TextError(
            f"tokens: the schema's metadata {METADATA.decode()!r} is {declared[:60]!r}, which declares no "
            "special tokens. Take it out with replace_schema_metadata(None)."
        ) from None


def _ragged(batch: pa.RecordBatch, name: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return offsets and values of a column of lists of numbers; booleans as uint8."""
    if name not in batch.schema.names:
        raise TextError(f"tokens: there is no column '{name}', only {batch.schema.names}.")
    column = batch.column(name)
    is_ids = name == IDS
    if not _is_list_of_numbers(column.type) or (is_ids and _holds(column.type, pa.types.is_boolean)):
        wanted = "integers" if is_ids else "numbers"
        raise TextError(f"tokens: column '{name}' is {column.type}, expected a list of {wanted} in each row.")
    offsets, values = list_borders(plain_lists(column))
    if values.null_count:
        raise TextError(f"tokens: column '{name}' has null among its numbers; every token has one.")
    return offsets, numbers_of(values)


def plain_lists(column: pa.Array) -> pa.Array:
    """Return lists of numbers of whatever kind as lists that kernels read.

    Of fixed length, views, of booleans (as uint8), of half floats (as float32), of nothing (as int64).
    """
    kind = column.type
    if pa.types.is_null(kind):
        return pa.ListArray.from_arrays(np.zeros(len(column) + 1, np.int32), pa.array([], pa.int64()))
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        column = _joined_lists(column)
    casts = (
        (pa.types.is_boolean, pa.uint8()),
        (pa.types.is_float16, pa.float32()),
        (pa.types.is_null, pa.int64()),
    )
    wanted = next((number for check, number in casts if _holds(kind, check)), None)
    return column if wanted is None else column.cast(pa.large_list(wanted))


def _joined_lists(column: pa.Array) -> pa.Array:
    """Return lists that do not lie one after the other, or have no offsets, as lists; null ones empty."""
    import pyarrow.compute as pc  # slow to import, and rarely needed

    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return pa.LargeListArray.from_arrays(pa.array(offsets), column.flatten())


def _is_list_of_numbers(kind: pa.DataType) -> bool:
    types = pa.types
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_null)
    return bool(types.is_null(kind) or any(_holds(kind, check) for check in checks))


def _holds(kind: pa.DataType, check: Callable[[pa.DataType], bool]) -> bool:
    """Whether a type is one of lists, and what they hold passes a check."""
    types = pa.types
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    views = (types.is_list_view, types.is_large_list_view)
    return any(is_list(kind) for is_list in (*lists, *views)) and bool(check(kind.value_type))


def _one_dtype(shards: Values) -> Values:
    dtypes = {shard.dtype.name for shard in shards}
    if len(dtypes) > 1 or not all(shard.dtype.kind in "iu" for shard in shards):
        raise TextError(f"tokens: shards hold {sorted(dtypes)}; ids are integers of one dtype in all shards.")
    return shards


def _parallel_columns(
    shards: list[pa.RecordBatch], ids: list[tuple[NDArray[np.int64], NDArray[Any]]]
) -> dict[str, Values]:
    """Return the columns that have one number for each token of each document.

    Raises:
        TextError: A column is meant to be one of these, by its name, and is not.
    """
    names = [
        field.name
        for field in shards[0].schema
        if field.name in MEANT or (field.name not in (IDS, SENTENCES) and _is_list_of_numbers(field.type))
    ]
    parallel = {}
    for name in names:
        parts = [_ragged(batch, name) for batch in shards]
        differing = _first_differing(parts, ids)
        if differing is None:
            parallel[name] = tuple(values for _, values in parts)
        elif name in MEANT:
            raise TextError(
                f"tokens: column '{name}' has not one value for each token of document {differing}. "
                "Mend it, call it otherwise, or leave it out."
            )
    return {name: values for name, values in parallel.items() if not _says_nothing(name, values)}


def _first_differing(
    parts: list[tuple[NDArray[np.int64], NDArray[Any]]], ids: list[tuple[NDArray[np.int64], NDArray[Any]]]
) -> int | None:
    """Return the first document that has more or fewer values in a column than ids; None for none."""
    before = 0
    for (borders, _), (own, _) in zip(parts, ids, strict=True):
        if not np.array_equal(borders, own):
            return before + int(np.flatnonzero(np.diff(borders) != np.diff(own))[0])
        before += own.size - 1
    return None


def _says_nothing(name: str, values: Values) -> bool:
    """Whether a column is an attention mask of ones, as tokenizers of transformers add one."""
    return name == "attention_mask" and all(bool(np.all(shard == 1)) for shard in values)


def _sentences(shards: list[pa.RecordBatch]) -> Sentences | None:
    if SENTENCES not in shards[0].schema.names:
        return None
    return tuple(_ragged(batch, SENTENCES) for batch in shards)
