"""Polars with the whole file in memory: lists flattened once, joined once, cut by their offsets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from peers.job import (
    COLUMNS,
    DAY,
    FIRST,
    MAX_HISTORY,
    MAX_TAGS,
    MIN_COUNT,
    MISSING,
    SPLIT,
    UNKNOWN,
    VOCABULARY,
)

NUMBERS = dict.fromkeys(("ts", "user_id", "creative_id", "city", "click", "conv_ts"), pl.Int64)
TEXTS = dict.fromkeys(("slot", "device", "os", "price"), pl.String)


def schema(lists: tuple[pl.DataType, pl.DataType]) -> dict[str, pl.DataType]:
    """Return the declared types in the order of the columns."""
    types = {**NUMBERS, **TEXTS, "history": lists[0], "tags": lists[1]}
    return {name: types[name] for name in COLUMNS}


JSON_SCHEMA = schema((pl.List(pl.Int64), pl.List(pl.String)))
CSV_SCHEMA = schema((pl.String(), pl.String()))


def read(source: Path) -> pl.DataFrame:
    """Read the log, leave bad rows out, and split the lists of CSV."""
    if source.suffix == ".jsonl":
        return pl.read_ndjson(source, schema=JSON_SCHEMA).filter(good())
    frame = pl.read_csv(source, schema=CSV_SCHEMA).filter(good()).with_columns(cut("history"), cut("tags"))
    return frame.with_columns(numbers(frame["history"]))


def good() -> pl.Expr:
    """Return which rows have a price that is a number, or none."""
    return pl.col("price").is_null() | (pl.col("price") != "n/a")


def cut(name: str) -> pl.Expr:
    """Return the expression that makes lists of CSV text; a missing list is null until it is encoded."""
    return pl.col(name).str.split("|")


def numbers(lists: pl.Series) -> pl.Series:
    """Return lists of numbers from lists of text, cast in one piece."""
    return as_lists(flat(lists).cast(pl.Int64), lists.list.len()).rename(lists.name)


def ranked(values: pl.Series, min_count: int) -> pl.DataFrame:
    """Return values and ids of a vocabulary: by falling count, ties by text."""
    counted = pl.DataFrame({"value": values.drop_nulls()}).group_by("value").agg(count=pl.len())
    return rank(counted, min_count)


def rank(counted: pl.DataFrame, min_count: int) -> pl.DataFrame:
    """Return values and ids of a vocabulary from its values and counts."""
    kept = counted.filter(pl.col("count") >= min_count).with_columns(text=pl.col("value").cast(pl.String))
    kept = kept.sort("count", "text", descending=[True, False]).select("value", "count")
    return kept.with_row_index("id", offset=FIRST)


def ids_of(values: pl.Series, vocabulary: pl.DataFrame) -> pl.Series:
    """Return the id of each value, in their order."""
    found = pl.DataFrame({"value": values}).join(vocabulary, on="value", how="left", maintain_order="left")
    known = pl.when(pl.col("value").is_null()).then(MISSING).otherwise(pl.col("id").fill_null(UNKNOWN))
    return found.select(known.cast(pl.UInt32)).to_series().rename(values.name)


def flat(lists: pl.Series) -> pl.Series:
    """Return all elements; an empty list gives none."""
    return lists.explode(empty_as_null=False, keep_nulls=False)


def as_lists(elements: pl.Series, lengths: pl.Series) -> pl.Series:
    """Cut elements into lists by their lengths: no group by."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths.fill_null(0).to_numpy(), out=offsets[1:])
    return pl.Series(pl.from_arrow(pa.LargeListArray.from_arrays(offsets, elements.to_arrow())))


def encode_lists(lists: pl.Series, vocabulary: pl.DataFrame) -> pl.Series:
    """Return lists of ids."""
    return as_lists(ids_of(flat(lists), vocabulary), lists.list.len()).rename(lists.name)


def encode_sets(lists: pl.Series, vocabulary: pl.DataFrame) -> pl.Series:
    """Return lists of the smallest ids, ascending; one sort of (row, id) beats ``list.sort``."""
    lengths = lists.list.len().fill_null(0)
    rows = np.repeat(np.arange(len(lists), dtype=np.int64) << 32, lengths.to_numpy())
    keys = pl.Series(rows + ids_of(flat(lists), vocabulary).to_numpy()).sort()
    ids = (keys & 0xFFFF_FFFF).cast(pl.UInt32)
    return as_lists(ids, lengths).list.head(MAX_TAGS).rename(lists.name)


def labels(until: int) -> list[pl.Expr]:
    """Return click and convert, null where it is not known at ``until``."""
    delay = pl.col("conv_ts") - pl.col("ts")
    converted = (delay.is_between(0, DAY) & (pl.col("conv_ts") <= until)).fill_null(False)
    known = (pl.col("click") == 1) & (pl.col("ts") <= until - DAY)
    return [
        pl.col("click").cast(pl.Float32),
        pl.when(known).then(converted.cast(pl.Float32)).alias("convert"),
    ]


def build(source: Path, out: Path) -> dict[str, int]:
    """Read, count, encode, write."""
    frame = read(source).with_columns(pl.col("tags").list.unique())
    train = frame.filter(pl.col("ts") < SPLIT)
    seen = {name: train[name] for name in VOCABULARY if name != "creative_id"}
    seen |= {
        "creative": pl.concat([train["creative_id"], flat(train["history"])]),
        "tags": flat(train["tags"]),
    }
    tables = {name: ranked(values, MIN_COUNT[name]) for name, values in seen.items()}
    log_end = max(frame["ts"].max(), frame["conv_ts"].max())
    parts = {"train": (train, SPLIT), "valid": (frame.filter(pl.col("ts") >= SPLIT), log_end)}
    for split, (part, until) in parts.items():
        encode(part, tables, until).write_ipc(out / f"{split}.arrow", compression="uncompressed")
    for name, table in tables.items():
        table.write_ipc(out / f"vocabulary-{name}.arrow", compression="uncompressed")
    return {name: table.height + FIRST for name, table in tables.items()}


def encode(part: pl.DataFrame, tables: dict[str, pl.DataFrame], until: int) -> pl.DataFrame:
    """Return one split's columns as numbers."""
    tags = encode_sets(part["tags"], tables["tags"])
    history = encode_lists(part["history"].list.tail(MAX_HISTORY), tables["creative"])
    price = part["price"].cast(pl.Float64).log1p().cast(pl.Float32)
    one = [ids_of(part[name], tables[vocabulary]) for name, vocabulary in VOCABULARY.items()]
    return pl.DataFrame([*one, price, history, tags, *part.select(labels(until)).get_columns()])
