"""A line at a time: ``json.loads`` or ``csv``, dictionaries and lists; the script that one writes first."""

from __future__ import annotations

import csv
import json
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from peers.job import DAY, FIRST, MAX_HISTORY, MAX_TAGS, MIN_COUNT, MISSING, SPLIT, UNKNOWN, VOCABULARY

BATCH = 100_000
TYPES = {
    **dict.fromkeys(VOCABULARY, pa.uint32()),
    "price": pa.float32(),
    "history": pa.list_(pa.uint32()),
    "tags": pa.list_(pa.uint32()),
    "click": pa.float32(),
    "convert": pa.float32(),
}


def rows(source: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows whose price is a number or missing."""
    with source.open(newline="") as file:
        parsed = map(json.loads, file) if source.suffix == ".jsonl" else map(from_csv, csv.DictReader(file))
        for row in parsed:
            if not isinstance(row["price"], str):
                row["tags"] = set(row["tags"])
                yield row


def from_csv(row: dict[str, Any]) -> dict[str, Any]:
    """Give the fields of CSV the types that JSON has; a price that is no number stays text."""
    for name in ("ts", "user_id", "creative_id", "click"):
        row[name] = int(row[name])
    for name in ("city", "conv_ts"):
        row[name] = int(row[name]) if row[name] else None
    row["device"] = row["device"] or None
    row["history"] = list(map(int, row["history"].split("|"))) if row["history"] else []
    row["tags"] = row["tags"].split("|") if row["tags"] else []
    if row["price"] != "n/a":
        row["price"] = float(row["price"]) if row["price"] else None
    return row


def ids(counts: Counter[Any], min_count: int) -> dict[Any, int]:
    """Return the id of each value: by falling count, ties by text."""
    counts.pop(None, None)
    kept = [value for value, count in counts.items() if count >= min_count]
    kept.sort(key=lambda value: (-counts[value], str(value)))
    return {value: number for number, value in enumerate(kept, FIRST)}


Kept = list[dict[str, Any]]


def fit(source: Path) -> tuple[dict[str, dict[Any, int]], Kept, int]:
    """Return the vocabularies of the train rows, the rows themselves, and the log's last time."""
    counts: dict[str, Counter[Any]] = {name: Counter() for name in MIN_COUNT}
    kept, log_end = [], 0
    for row in rows(source):
        log_end = max(log_end, row["ts"], row["conv_ts"] or 0)
        if row["ts"] < SPLIT:
            for name, vocabulary in VOCABULARY.items():
                counts[vocabulary][row.get(name)] += 1
            counts["creative"].update(row["history"])
            counts["tags"].update(row["tags"])
        row["history"] = array("q", row["history"][-MAX_HISTORY:])
        kept.append(row)
    return {name: ids(counts[name], MIN_COUNT[name]) for name in counts}, kept, log_end


def encode(row: dict[str, Any], tables: dict[str, dict[Any, int]], until: int) -> tuple[Any, ...]:
    """Return one row's columns as numbers."""
    one = []
    for name, vocabulary in VOCABULARY.items():
        value = row.get(name)
        one.append(MISSING if value is None else tables[vocabulary].get(value, UNKNOWN))
    creative, tag = tables["creative"], tables["tags"]
    price = None if row["price"] is None else math.log1p(row["price"])
    history = [creative.get(value, UNKNOWN) for value in row["history"]]
    tags = sorted([tag.get(value, UNKNOWN) for value in row["tags"]])[:MAX_TAGS]
    return (*one, price, history, tags, row["click"], converted(row, until))


def converted(row: dict[str, Any], until: int) -> int | None:
    """Return whether the click converted within its day, None where that is not known at ``until``."""
    if row["click"] != 1 or row["ts"] > until - DAY:
        return None
    time = row["conv_ts"]
    return int(time is not None and 0 <= time - row["ts"] <= DAY and time <= until)


class Writer:
    """Writes rows as Arrow, a batch at a time."""

    def __init__(self, path: Path) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.file = pa.ipc.new_file(path, pa.schema(TYPES))

    def add(self, row: tuple[Any, ...]) -> None:
        self.rows.append(row)
        if len(self.rows) == BATCH:
            self.flush()

    def flush(self) -> None:
        columns: Iterable[Any] = zip(*self.rows, strict=True) if self.rows else ([] for _ in TYPES)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, TYPES.values(), strict=True)]
        self.file.write_batch(pa.record_batch(arrays, list(TYPES)))
        self.rows = []

    def close(self) -> None:
        self.flush()
        self.file.close()


def build(source: Path, out: Path) -> dict[str, int]:
    """Read and count, then encode and write."""
    tables, kept, log_end = fit(source)
    writers = {split: Writer(out / f"{split}.arrow") for split in ("train", "valid")}
    for row in kept:
        split, until = ("train", SPLIT) if row["ts"] < SPLIT else ("valid", log_end)
        writers[split].add(encode(row, tables, until))
    for writer in writers.values():
        writer.close()
    for name, table in tables.items():
        (out / f"vocabulary-{name}.json").write_text(json.dumps(list(table)))
    return {name: len(table) + FIRST for name, table in tables.items()}
