"""Real files, whole: every field as Python's csv or plain splitting gives it."""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import io
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headrace.sources import Column, Reader

TSV: dict[str, Any] = {"format": "tsv", "quote": ""}
ROWS_WITHOUT_HEADER = {"header": False}
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("open_bandit", "**/*.csv*", {}),
    ("taobao_userbehavior", "UserBehavior.csv", ROWS_WITHOUT_HEADER),
    ("taobao_userbehavior", "UserBehavior_hour.csv.gz", ROWS_WITHOUT_HEADER),
    ("ml-100k", "*.inter", TSV),
    ("ml-100k", "*.item", TSV),
    ("ml-100k", "*.user", TSV),
    ("tencent2020_small", "*.csv", {}),
    ("criteo_tiny", "*.csv", {}),
    ("avazu_tiny", "*.csv", {}),
    ("fuxictr_tiny", "csv/*.csv", {}),
    ("deepctr_samples", "[acm]*_sample.txt", {}),
    ("amazon_din_sample", "sample_data.txt", {"delimiter": ";", "header": False}),
]


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    return (
        gzip.decompress(data)
        if path.suffix == ".gz"
        else bz2.decompress(data)
        if path.suffix == ".bz2"
        else data
    )


def by_csv(text: str, options: dict[str, Any]) -> list[list[str]]:
    quoting: Any = csv.QUOTE_NONE if options.get("quote") == "" else csv.QUOTE_MINIMAL
    delimiter = "\t" if options.get("format") == "tsv" else options.get("delimiter", ",")
    return [
        row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting) if row
    ]


@pytest.mark.parametrize(("folder", "pattern", "options"), CASES, ids=lambda value: str(value)[:30])
def test_delimited(
    read: Callable[..., Any], shared_data: Path, folder: str, pattern: str, options: dict[str, Any]
) -> None:
    files = sorted((shared_data / folder).glob(pattern))
    assert files
    for file in files:
        rows = by_csv(unpacked(file).decode(), options)
        named = options.get("header", True)
        names = rows.pop(0) if named else [f"c{i}" for i in range(len(rows[0]))]
        wanted = [Column(name, "text") for name in names]
        declared = {} if named else {"columns": names}
        found = read(str(file), wanted, 1 << 16, missing_values=(), **options, **declared)
        good = [row for row in rows if len(row) == len(names)]
        assert [list(row) for row in zip(*found.columns.values(), strict=True)] == good, file.name
        assert len(found.bad) == len(rows) - len(good)


def test_ragged_rows_of_ali_ccp(read: Callable[..., Any], shared_data: Path) -> None:
    file = shared_data / "aliccp_esmm_small" / "small.txt"
    found = read(str(file), [Column("text", "text")], format="text")
    assert [line.split(",") for line in found.columns["text"]] == [
        line.split(",") for line in file.read_text().splitlines()
    ]


def test_missing_values_of_tencent(read: Callable[..., Any], shared_data: Path) -> None:
    file = shared_data / "tencent2020_small" / "ad.csv"
    wanted = [Column("product_id", "text"), Column("industry", "text")]
    found = read(str(file), wanted, missing_values=("\\N",))
    assert found.columns["product_id"].count(None) == 1175
    assert found.columns["industry"].count(None) == 179


@pytest.mark.parametrize(
    "name", ["gutenberg", "hongloumeng", "tinyshakespeare", "timemachine", "gensim_corpora"]
)
def test_text_files(read: Callable[..., Any], shared_data: Path, name: str) -> None:
    for file in sorted((shared_data / name).glob("*.*")):
        if file.is_dir() or file.name == "lee.cor":
            continue
        text = unpacked(file).decode("utf-8-sig")
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        found = read(str(file), [Column("text", "text")], 1 << 16, format="text")
        assert found.columns["text"] == (lines if lines[-1] else lines[:-1]), file.name


def test_latin1_text(read: Callable[..., Any], shared_data: Path) -> None:
    file = shared_data / "gensim_corpora" / "lee.cor"
    found = read(str(file), [Column("text", "text")], format="text", encoding="latin-1")
    assert found.columns["text"] == file.read_bytes().decode("latin-1").removesuffix("\n").split("\n")
    assert not found.bad


def as_jsonl(shared_data: Path) -> tuple[bytes, list[dict[str, Any]]]:
    """The clicks of Tencent and the fields of Criteo as one log of JSON Lines."""
    rows: list[dict[str, Any]] = []
    for row in csv.DictReader(io.StringIO((shared_data / "criteo_tiny" / "train.tiny.csv").read_text())):
        numbers = {name: int(row[name]) if row[name] else None for name in ("I1", "I2", "I12")}
        ids = [value for name, value in row.items() if name.startswith("C") and value]
        rows.append(
            {"Id": int(row["Id"]), "C": {"1": row["C1"]}, **numbers, "ids": ids, "few": [numbers["I2"]] * 3}
        )
    return "".join(json.dumps(row) + "\n" for row in rows).encode(), rows


def test_jsonl_of_real_values_through_threads(opened: Callable[..., Reader], shared_data: Path) -> None:
    content, rows = as_jsonl(shared_data)
    wanted = [
        Column("Id", "text"), Column("C.1", "text"), Column("I1", "number"), Column("I12", "number"),
        Column("ids", "texts"), Column("few", "numbers"),
    ]  # fmt: skip
    reader = opened(content, wanted, format="jsonl")
    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(reader.parse, reader.blocks(20_000)))
    assert len(batches) > 20
    columns = {path: [v for b in batches for v in b.columns[path].to_pylist()] for path in batches[0].columns}
    assert columns["Id"] == [row["Id"] for row in rows]
    assert columns["C.1"] == [row["C"]["1"] for row in rows]
    assert columns["I1"] == [row["I1"] for row in rows]
    assert columns["I12"] == [row["I12"] for row in rows]
    assert columns["ids"] == [row["ids"] for row in rows]
    assert columns["few"] == [row["few"] for row in rows]


def test_raw_rows_are_the_file(read: Callable[..., Any], shared_data: Path) -> None:
    content, _ = as_jsonl(shared_data)
    found = read(content, [Column("Id", "text")], 10_000, format="jsonl")
    joined = b"".join(line + b"\n" for line in found.raw)
    assert hashlib.sha256(joined).digest() == hashlib.sha256(content).digest()
