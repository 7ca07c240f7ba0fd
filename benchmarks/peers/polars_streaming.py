"""Polars' streaming engine: one scan counts, one encodes and sinks; memory is bounded by morsels."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from peers.job import FIRST, MAX_HISTORY, MIN_COUNT, MISSING, SPLIT, UNKNOWN, VOCABULARY
from peers.polars_memory import (
    CSV_SCHEMA,
    JSON_SCHEMA,
    cut,
    encode_lists,
    encode_sets,
    good,
    labels,
    numbers,
    rank,
)

NUMBERS = pl.List(pl.Int64)
IDS = pl.List(pl.UInt32)


def scan(source: Path) -> pl.LazyFrame:
    """Return the good rows of the log."""
    if source.suffix == ".jsonl":
        frame = pl.scan_ndjson(source, schema=JSON_SCHEMA)
    else:
        history = cut("history").map_batches(numbers, NUMBERS, is_elementwise=True)
        frame = pl.scan_csv(source, schema=CSV_SCHEMA).with_columns(history, cut("tags"))
    return frame.filter(good())


def counts(train: pl.LazyFrame) -> dict[str, pl.LazyFrame]:
    """Return the queries that count each vocabulary's values."""
    columns = {name: train.select(value=name) for name in VOCABULARY if name != "creative_id"}
    history = train.select(value=pl.col("history").explode(empty_as_null=False))
    columns["creative"] = pl.concat([train.select(value="creative_id"), history])
    columns["tags"] = train.select(value=pl.col("tags").list.unique().explode(empty_as_null=False))
    return {
        name: values.drop_nulls().group_by("value").agg(count=pl.len()) for name, values in columns.items()
    }


def encoded(frame: pl.LazyFrame, tables: dict[str, pl.DataFrame], until: int) -> pl.LazyFrame:
    """Return the query that makes numbers of one split's columns."""
    for name, vocabulary in VOCABULARY.items():
        found = (
            tables[vocabulary].lazy().select(pl.col("value").alias(name), pl.col("id").alias(f"{name}_id"))
        )
        frame = frame.join(found, on=name, how="left", maintain_order="left")
    ids = [
        pl.when(pl.col(name).is_null())
        .then(MISSING)
        .otherwise(pl.col(f"{name}_id").fill_null(UNKNOWN))
        .alias(name)
        for name in VOCABULARY
    ]
    history = pl.col("history").list.tail(MAX_HISTORY)
    history = history.map_batches(
        lambda lists: encode_lists(lists, tables["creative"]), IDS, is_elementwise=True
    )
    tags = pl.col("tags").list.unique()
    tags = tags.map_batches(lambda lists: encode_sets(lists, tables["tags"]), IDS, is_elementwise=True)
    price = pl.col("price").cast(pl.Float64).log1p().cast(pl.Float32)
    return frame.select(*ids, price, history, tags, *labels(until))


def build(source: Path, out: Path) -> dict[str, int]:
    """Count in one scan, encode in a second one."""
    log = scan(source)
    queries = counts(log.filter(pl.col("ts") < SPLIT))
    end = log.select(pl.max_horizontal(pl.col("ts").max(), pl.col("conv_ts").max()))
    *counted, log_end = pl.collect_all([*queries.values(), end], engine="streaming")
    tables = {name: rank(table, MIN_COUNT[name]) for name, table in zip(queries, counted, strict=True)}
    parts = {"train": (pl.col("ts") < SPLIT, SPLIT), "valid": (pl.col("ts") >= SPLIT, log_end.item())}
    sinks = [
        encoded(log.filter(chosen), tables, until).sink_ipc(out / f"{split}.arrow", lazy=True)
        for split, (chosen, until) in parts.items()
    ]
    pl.collect_all(sinks, engine="streaming")
    for name, table in tables.items():
        table.write_ipc(out / f"vocabulary-{name}.arrow", compression="uncompressed")
    return {name: table.height + FIRST for name, table in tables.items()}
