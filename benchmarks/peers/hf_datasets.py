"""Hugging Face ``datasets``: ``load_dataset`` and batched ``map`` in two processes, rows as Python lists."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import datasets
from datasets import Dataset, Features, List, Value, load_dataset

from peers.job import DAY, FIRST, MAX_HISTORY, MAX_TAGS, MIN_COUNT, MISSING, SPLIT, UNKNOWN, VOCABULARY
from peers.per_line import ids

PROCESSES = 2
BATCH = 10_000
BAD = ("n/a", '"n\\/a"')
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
    return load_dataset(
        kind, data_files=str(source), features=features, split="train", cache_dir=str(cache), **options
    )


def json_names(source: Path) -> list[str]:
    """Return the keys in the order of a line that has all of them."""
    with source.open() as file:
        for line in file:
            row = json.loads(line)
            if "device" in row:
                return list(row)
    raise ValueError(f"{source} has no row with a device")


def lists_of(column: list[Any], kind: type) -> list[list[Any]]:
    """Return the lists of a column, cut from text where it is text."""
    cut = (value.split("|") if isinstance(value, str) else value or [] for value in column)
    return [[kind(value) for value in values] if kind is int else values for values in cut]


def fit(log: Dataset) -> tuple[dict[str, dict[Any, int]], int]:
    """Return the vocabularies of the train rows, and the log's last time."""
    counts: dict[str, Counter[Any]] = {name: Counter() for name in MIN_COUNT}
    log_end = 0
    for batch in log.iter(BATCH):
        log_end = max(log_end, *batch["ts"], *(int(time) for time in batch["conv_ts"] if time is not None))
        train = [
            row for row, time in enumerate(batch["ts"]) if time < SPLIT and batch["price"][row] not in BAD
        ]
        for name, vocabulary in VOCABULARY.items():
            column = batch[name]
            counts[vocabulary].update([column[row] for row in train])
        history, tags = lists_of(batch["history"], int), lists_of(batch["tags"], str)
        counts["creative"].update(chain.from_iterable(history[row] for row in train))
        counts["tags"].update(chain.from_iterable(set(tags[row]) for row in train))
    return {name: ids(counts[name], MIN_COUNT[name]) for name in counts}, log_end


def encode(
    batch: dict[str, list[Any]], tables: dict[str, dict[Any, int]], log_end: int
) -> dict[str, list[Any]]:
    """Return a batch's columns as numbers, its bad rows left out."""
    good = [row for row, price in enumerate(batch["price"]) if price not in BAD]
    batch = {name: [column[row] for row in good] for name, column in batch.items()}
    encoded: dict[str, list[Any]] = {"train": [time < SPLIT for time in batch["ts"]]}
    for name, vocabulary in VOCABULARY.items():
        table = {**tables[vocabulary], None: MISSING}
        encoded[name] = [table.get(value, UNKNOWN) for value in batch[name]]
    encoded["price"] = [None if price is None else math.log1p(float(price)) for price in batch["price"]]
    creative, tag = tables["creative"], tables["tags"]
    history = lists_of(batch["history"], int)
    encoded["history"] = [
        [creative.get(value, UNKNOWN) for value in values[-MAX_HISTORY:]] for values in history
    ]
    tags = lists_of(batch["tags"], str)
    encoded["tags"] = [
        sorted([tag.get(value, UNKNOWN) for value in set(values)])[:MAX_TAGS] for values in tags
    ]
    labels = zip(batch["click"], batch["ts"], batch["conv_ts"], strict=True)
    encoded["click"], encoded["convert"] = batch["click"], [converted(*row, log_end) for row in labels]
    return encoded


def converted(click: int, time: int, conversion: str | int | None, log_end: int) -> int | None:
    """Return whether the click converted within its day, None where that is not known yet."""
    until = SPLIT if time < SPLIT else log_end
    if click != 1 or time > until - DAY:
        return None
    return int(conversion is not None and 0 <= int(conversion) - time <= DAY and int(conversion) <= until)


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
    train_rows = sum(encoded.with_format("numpy")["train"])  # in order of time: train first
    parts = {"train": range(train_rows), "valid": range(train_rows, len(encoded))}
    for split, rows in parts.items():
        encoded.select(rows).remove_columns("train").save_to_disk(str(out / split))
    for name, table in tables.items():
        (out / f"vocabulary-{name}.json").write_text(json.dumps(list(table)))
    return {name: len(table) + FIRST for name, table in tables.items()}
