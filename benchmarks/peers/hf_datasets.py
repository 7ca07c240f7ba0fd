"""Hugging Face ``datasets``: ``load_dataset`` and batched ``map`` in two processes over Arrow tables.

Batches as Arrow and pyarrow's compute functions are ``datasets``' fastest way: with Python lists in place
of tables the same job takes several times as long.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, Features, List, Value, load_dataset

from peers.job import DAY, FIRST, MAX_HISTORY, MAX_TAGS, MIN_COUNT, MISSING, SPLIT, UNKNOWN, VOCABULARY

PROCESSES = 2
BATCH = 50_000
BAD = pa.array(["n/a", '"n\\/a"'])
"""A price that is no number; the JSON reader hands text beside numbers over as JSON."""
NUMBERS = ("ts", "user_id", "creative_id", "city", "click", "conv_ts")
TEXTS = ("slot", "device", "os", "price")
ENCODED = Features(
    {
        **{name: Value("uint32") for name in VOCABULARY},
        "price": Value("float32"),
        "history": List(Value("uint32")),
        "tags": List(Value("uint32")),
        "click": Value("float32"),
        "convert": Value("float32"),
    }
)


def load(source: Path, cache: Path) -> Dataset:
    """Read the log; prices and the lists of CSV come as text."""
    datasets.disable_progress_bars()
    kind = "json" if source.suffix == ".jsonl" else "csv"
    lists = {"history": List(Value("int64")), "tags": List(Value("string"))}
    types = {
        **{name: Value("int64") for name in NUMBERS},
        **{name: Value("string") for name in TEXTS},
        **lists,
    }
    if kind == "csv":  # its reader refuses missing values in columns of integers
        types |= dict.fromkeys(("city", "conv_ts", *lists), Value("string"))
    header = json_names(source) if kind == "json" else source.open().readline().strip().split(",")
    options: dict[str, Any] = {"keep_default_na": False, "na_values": [""]} if kind == "csv" else {}
    features = Features({name: types[name] for name in header})
    log = load_dataset(
        kind, data_files=str(source), features=features, split="train", cache_dir=str(cache), **options
    )
    return log.with_format("arrow")


def json_names(source: Path) -> list[str]:
    """Return the keys in the order of a line that has all of them."""
    with source.open() as file:
        for line in file:
            row = json.loads(line)
            if "device" in row:
                return list(row)
    raise ValueError(f"{source} has no row with a device")


def cleaned(table: pa.Table) -> pa.Table:
    """Return the good rows with their lists cut and their numbers as numbers."""
    table = table.filter(pc.invert(pc.is_in(table["price"], BAD))).combine_chunks()
    for name, kind in (("city", pa.int64()), ("conv_ts", pa.int64())):
        table = replaced(table, name, table[name].cast(kind))
    for name, kind in (("history", pa.int64()), ("tags", pa.string())):
        if pa.types.is_list(table[name].type):
            offsets, elements = flat(table[name])
        else:
            offsets, elements = without_empty(*flat(pc.split_pattern(table[name], "|")))
        lists = pa.LargeListArray.from_arrays(offsets, elements.cast(kind))
        table = replaced(table, name, lists)
    return table


def replaced(table: pa.Table, name: str, column: Any) -> pa.Table:
    """Return the table with another column in the place of one."""
    return table.set_column(table.column_names.index(name), name, column)


def flat(lists: Any) -> tuple[np.ndarray, pa.Array]:
    """Return offsets and elements of a column of lists; missing ones are empty."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    elements = pc.list_flatten(lists)
    elements = elements.combine_chunks() if isinstance(elements, pa.ChunkedArray) else elements
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), elements


def without_empty(offsets: np.ndarray, elements: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Leave out the empty text that is all there is of an empty list."""
    kept = pc.not_equal(elements, "")
    counts = np.concatenate([[0], np.cumsum(kept.to_numpy(zero_copy_only=False), dtype=np.int64)])
    return counts[offsets], elements.filter(kept)


def distinct(offsets: np.ndarray, elements: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Return the row of each different element of the rows, and the element."""
    coded = elements.dictionary_encode()
    rows = np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))
    keys = np.unique(rows << 32 | coded.indices.to_numpy())
    return keys >> 32, coded.dictionary.take(pa.array(keys & 0xFFFF_FFFF))


def fit(log: Dataset) -> tuple[dict[str, pa.Array], int]:
    """Return the values of each vocabulary in the order of their ids, and the log's last time."""
    counts: dict[str, list[pa.StructArray]] = {name: [] for name in MIN_COUNT}
    log_end = 0
    for batch in log.iter(BATCH):
        batch = cleaned(batch)
        log_end = max(log_end, pc.max(batch["ts"]).as_py(), pc.max(batch["conv_ts"]).as_py() or 0)
        train = batch.filter(pc.less(batch["ts"], SPLIT))
        for name, vocabulary in VOCABULARY.items():
            counts[vocabulary].append(pc.value_counts(pc.drop_null(train[name])))
        counts["creative"].append(pc.value_counts(flat(train["history"])[1]))
        counts["tags"].append(pc.value_counts(distinct(*flat(train["tags"]))[1]))
    return {name: ranked(counts[name], MIN_COUNT[name]) for name in counts}, log_end


def ranked(counted: list[pa.StructArray], min_count: int) -> pa.Array:
    """Return the values of a vocabulary by falling count, ties by text."""
    values = pa.chunked_array([one.field("values") for one in counted])
    numbers = pa.chunked_array([one.field("counts") for one in counted])
    table = pa.table({"value": values, "n": numbers}).group_by("value").aggregate([("n", "sum")])
    table = table.filter(pc.greater_equal(table["n_sum"], min_count))
    table = table.append_column("text", table["value"].cast(pa.string()))
    return table.sort_by([("n_sum", "descending"), ("text", "ascending")])["value"].combine_chunks()


def ids_of(values: Any, table: pa.Array) -> Any:
    """Return the id of each value that is not missing."""
    return pc.fill_null(pc.add(pc.index_in(values, value_set=table), FIRST), UNKNOWN).cast(pa.uint32())


def encode(table: pa.Table, tables: dict[str, pa.Array], log_end: int) -> pa.Table:
    """Return a batch's columns as numbers, its bad rows left out."""
    table = cleaned(table)
    columns = {"train": pc.less(table["ts"], SPLIT)}
    for name, vocabulary in VOCABULARY.items():
        known = ids_of(table[name], tables[vocabulary])
        columns[name] = pc.if_else(pc.is_null(table[name]), pa.scalar(MISSING, pa.uint32()), known)
    price = table["price"].cast(pa.float64())
    columns["price"] = pc.log1p(price).cast(pa.float32())
    columns["history"] = encoded_history(table["history"], tables["creative"])
    columns["tags"] = encoded_tags(table["tags"], tables["tags"])
    columns["click"] = table["click"].cast(pa.float32())
    columns["convert"] = converted(table, log_end)
    return pa.table(columns)


def encoded_history(lists: Any, table: pa.Array) -> pa.Array:
    """Return the ids of the last elements of each list."""
    offsets, elements = flat(lists)
    lengths = np.diff(offsets)
    places = np.arange(len(elements)) - np.repeat(offsets[:-1], lengths)
    kept = elements.filter(pa.array(places >= np.repeat(lengths - MAX_HISTORY, lengths)))
    return as_lists(np.minimum(lengths, MAX_HISTORY), ids_of(kept, table))


def encoded_tags(lists: Any, table: pa.Array) -> pa.Array:
    """Return the smallest ids of the different elements of each list, ascending."""
    offsets, elements = flat(lists)
    rows, values = distinct(offsets, elements)
    keys = np.sort(rows << 32 | ids_of(values, table).to_numpy())
    lengths = np.bincount(rows, minlength=len(offsets) - 1)
    places = np.arange(len(keys)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    ids = (keys[places < MAX_TAGS] & 0xFFFF_FFFF).astype(np.uint32)
    return as_lists(np.minimum(lengths, MAX_TAGS), pa.array(ids))


def as_lists(lengths: np.ndarray, elements: pa.Array) -> pa.Array:
    """Cut elements into lists."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), elements)


def converted(table: pa.Table, log_end: int) -> Any:
    """Return whether each click converted within its day, null where that is not known yet."""
    until = pc.if_else(pc.less(table["ts"], SPLIT), SPLIT, log_end)
    delay = pc.subtract(table["conv_ts"], table["ts"])
    within = pc.and_(pc.greater_equal(delay, 0), pc.less_equal(delay, DAY))
    happened = pc.fill_null(pc.and_(within, pc.less_equal(table["conv_ts"], until)), False)
    known = pc.and_(pc.equal(table["click"], 1), pc.less_equal(table["ts"], pc.subtract(until, DAY)))
    return pc.if_else(known, happened.cast(pa.float32()), pa.scalar(None, pa.float32()))


def build(source: Path, out: Path) -> dict[str, int]:
    """Load, count, map, cut in two, save."""
    log = load(source, out / "cache")
    tables, log_end = fit(log)
    encoded = log.map(
        encode,
        batched=True,
        batch_size=BATCH,
        num_proc=PROCESSES,
        fn_kwargs={"tables": tables, "log_end": log_end},
        remove_columns=log.column_names,
        features=Features({"train": Value("bool"), **ENCODED}),
    )
    train_rows = pc.sum(encoded.data["train"]).as_py()  # in order of time: train first
    parts = {"train": range(train_rows), "valid": range(train_rows, len(encoded))}
    for split, rows in parts.items():
        encoded.select(rows).remove_columns("train").save_to_disk(str(out / split))
    for name, table in tables.items():
        (out / f"vocabulary-{name}.json").write_text(json.dumps(table.to_pylist()))
    return {name: len(table) + FIRST for name, table in tables.items()}
