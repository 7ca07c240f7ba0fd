"""pandas: the whole file in memory, lists exploded once, ids by ``map``, lists cut again by their lengths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
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

LISTS = ("history", "tags")


def read(source: Path) -> pd.DataFrame:
    """Read the log, leave bad rows out, cut the lists of CSV."""
    if source.suffix == ".jsonl":
        log = pd.read_json(source, lines=True, dtype=False, convert_dates=False)[list(COLUMNS)]
    else:
        log = pd.read_csv(
            source,
            dtype=dict.fromkeys(("price", "device", *LISTS), str),
            na_values=[""],
            keep_default_na=False,
        )
    log = log[log["price"] != "n/a"].reset_index(drop=True)
    log["price"] = log["price"].astype(float)
    if source.suffix == ".csv":
        log["history"] = [
            list(map(int, text.split("|"))) if text else [] for text in log["history"].fillna("")
        ]
        log["tags"] = [text.split("|") if text else [] for text in log["tags"].fillna("")]
    log["tags"] = [list(set(tags)) for tags in log["tags"]]
    return log


def flat(lists: pd.Series) -> pd.Series:
    """Return all elements; an empty list gives none."""
    return pd.Series([value for values in lists for value in values])


def ranked(values: pd.Series, min_count: int) -> pd.Series:
    """Return the id of each value of a vocabulary: by falling count, ties by text."""
    counts = values.value_counts()
    table = counts[counts >= min_count].rename("count").rename_axis("value").reset_index()
    whole = pd.api.types.is_numeric_dtype(table["value"])
    table["text"] = table["value"].astype("int64").astype(str) if whole else table["value"]
    table = table.sort_values(["count", "text"], ascending=[False, True])
    return pd.Series(np.arange(FIRST, FIRST + len(table), dtype=np.uint32), index=table["value"].to_numpy())


def ids_of(values: pd.Series, table: pd.Series) -> np.ndarray:
    """Return the id of each value."""
    ids = values.map(table).fillna(UNKNOWN)
    return ids.where(values.notna(), MISSING).to_numpy(np.uint32)


def encode_lists(lists: pd.Series, table: pd.Series) -> pa.Array:
    """Return lists of ids."""
    offsets = np.concatenate([[0], np.cumsum(lists.str.len())]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids_of(flat(lists), table)))


def encode_sets(lists: pd.Series, table: pd.Series) -> pa.Array:
    """Return lists of the smallest ids, ascending."""
    ids = encode_lists(lists, table)
    return pa.array([sorted(values)[:MAX_TAGS] for values in ids.to_pylist()], pa.list_(pa.uint32()))


def encode(part: pd.DataFrame, tables: dict[str, pd.Series], until: int) -> pa.Table:
    """Return one split's columns as numbers."""
    delay = part["conv_ts"] - part["ts"]
    converted = delay.between(0, DAY) & (part["conv_ts"] <= until)
    known = (part["click"] == 1) & (part["ts"] <= until - DAY)
    return pa.table(
        {
            **{name: ids_of(part[name], tables[vocabulary]) for name, vocabulary in VOCABULARY.items()},
            "price": pa.array(np.log1p(part["price"]).astype(np.float32), from_pandas=True),
            "history": encode_lists(
                pd.Series([values[-MAX_HISTORY:] for values in part["history"]]), tables["creative"]
            ),
            "tags": encode_sets(part["tags"], tables["tags"]),
            "click": part["click"].to_numpy(np.float32),
            "convert": pa.array(converted.to_numpy(np.float32), mask=~known.to_numpy()),
        }
    )


def build(source: Path, out: Path) -> dict[str, int]:
    """Read, count, encode, write."""
    log = read(source)
    train = log[log["ts"] < SPLIT]
    seen = {name: train[name] for name in VOCABULARY if name != "creative_id"}
    seen |= {
        "creative": pd.concat([train["creative_id"], flat(train["history"])]),
        "tags": flat(train["tags"]),
    }
    tables = {name: ranked(values, MIN_COUNT[name]) for name, values in seen.items()}
    log_end = int(max(log["ts"].max(), log["conv_ts"].max()))
    parts = {"train": (train, SPLIT), "valid": (log[log["ts"] >= SPLIT], log_end)}
    for split, (part, until) in parts.items():
        table = encode(part, tables, until)
        with pa.ipc.new_file(out / f"{split}.arrow", table.schema) as file:
            file.write_table(table)
    for name, values in tables.items():
        values.rename("id").rename_axis("value").reset_index().to_parquet(out / f"vocabulary-{name}.parquet")
    return {name: len(values) + FIRST for name, values in tables.items()}
