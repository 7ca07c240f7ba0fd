"""Generates ad logs: Zipf ids, histories, sets, missing values, conversions, a few bad rows.

    python benchmarks/ad_logs.py --rows 2000000 --out benchmarks/work

writes ``ads.jsonl``, ``ads.csv`` and the specs beside them. The same seed gives
the same bytes. A row, as JSON:

    {"ts": 1748736000, "user_id": 81238, "creative_id": 1832, "slot": "s3", "device": "a91f03bc",
     "city": 17, "os": "ios", "price": 3.25, "history": [17, 204, ...], "tags": ["t5", "t92"],
     "click": 1, "conv_ts": 1748739617}
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

USERS = 500_000
CREATIVES = 200_000
TAGS = 2_000
START = 1_748_736_000  # 2025-06-01T00:00:00Z
DAYS = 10
LONGEST_HISTORY = 80
BAD_SHARE = 0.0005
_CHUNK = 50_000

SPEC = """
name = "ads"

[source]
files = "{file}"
{options}
[time]
column = "ts"

[split]
by = "time"
train = {{ until = "2025-06-09" }}
valid = {{ from = "2025-06-09" }}

[vocabularies.creative]
min_count = 2

[features.user_id]
kind = "categorical"
min_count = 2

[features.creative_id]
kind = "categorical"
vocabulary = "creative"

[features.slot]
kind = "categorical"

[features.device]
kind = "categorical"

[features.city]
kind = "categorical"

[features.os]
kind = "categorical"

[features.price]
kind = "numeric"
transform = "log1p"

[features.history]
kind = "sequence"
vocabulary = "creative"
max_length = 50

[features.tags]
kind = "set"
max_length = 8

[labels.click]
kind = "binary"

[labels.convert]
kind = "attribution"
click_time = "ts"
convert_time = "conv_ts"
window = "1d"
given = "click"
"""


def zipf(random: np.random.Generator, size: int, values: int, exponent: float) -> np.ndarray:
    """Draw ranks 0 .. values - 1 with weight ``1 / (rank + 1) ** exponent``."""
    weights = 1.0 / np.arange(1, values + 1) ** exponent
    cumulative = np.cumsum(weights)
    return np.searchsorted(cumulative, random.random(size) * cumulative[-1], side="right").astype(np.int64)


class Row(NamedTuple):
    """One impression."""

    ts: int
    user: int
    creative: int
    slot: int
    device: int
    city: int
    os: int
    price: float
    missing: list[bool]
    """Of city, price and device."""
    click: bool
    converted: bool
    delay: int
    bad: bool
    history: list[str]
    tags: list[str]


class Rows:
    """The columns of one chunk of rows."""

    def __init__(self, seed: int, first: int, size: int, total: int) -> None:
        random = np.random.default_rng([seed, first])
        step = DAYS * 86_400 / total
        self.ts = (START + (first + np.arange(size)) * step).astype(np.int64)
        self.user = zipf(random, size, USERS, 1.05) * 7919 % 100_000_007
        self.creative = zipf(random, size, CREATIVES, 1.1) * 6101 % 10_000_019
        self.slot = zipf(random, size, 12, 0.8)
        self.device = zipf(random, size, 3_000, 1.1) * 2_654_435_761 % (1 << 32)
        self.city = zipf(random, size, 400, 1.0)
        self.os = zipf(random, size, 4, 1.0)
        self.price = np.round(random.gamma(2.0, 3.0, size), 2)
        self.missing = random.random((size, 3)) < 0.05
        self.lengths = np.minimum(random.geometric(1 / 40, size) - 1, LONGEST_HISTORY)
        self.history = zipf(random, int(self.lengths.sum()), CREATIVES, 1.1) * 6101 % 10_000_019
        self.tag_counts = random.integers(0, 11, size)
        self.tags = zipf(random, int(self.tag_counts.sum()), TAGS, 1.0)
        self.click = random.random(size) < 0.05
        self.converted = self.click & (random.random(size) < 0.2)
        self.delay = random.integers(1, 2 * 86_400, size)
        self.bad = random.random(size) < BAD_SHARE

    def __iter__(self) -> Iterator[Row]:
        history = self.history.astype("U").tolist()
        tags = [f"t{tag}" for tag in self.tags.tolist()]
        ends, tag_ends = np.cumsum(self.lengths).tolist(), np.cumsum(self.tag_counts).tolist()
        columns = (
            self.ts.tolist(),
            self.user.tolist(),
            self.creative.tolist(),
            self.slot.tolist(),
            self.device.tolist(),
            self.city.tolist(),
            self.os.tolist(),
            self.price.tolist(),
            self.missing.tolist(),
            self.click.tolist(),
            self.converted.tolist(),
            self.delay.tolist(),
            self.bad.tolist(),
        )
        start = tag_start = 0
        for row, end, tag_end in zip(zip(*columns, strict=True), ends, tag_ends, strict=True):
            yield Row(*row, history[start:end], tags[tag_start:tag_end])
            start, tag_start = end, tag_end


_OS = ("android", "ios", "harmony", "other")


def json_line(row: Row) -> str:
    """Write one row as JSON."""
    city = "null" if row.missing[0] else row.city
    price = "null" if row.missing[1] else '"n/a"' if row.bad else repr(row.price)
    device = "" if row.missing[2] else f'"device":"{row.device:08x}",'
    tags = ",".join(f'"{tag}"' for tag in row.tags)
    return (
        f'{{"ts":{row.ts},"user_id":{row.user},"creative_id":{row.creative},"slot":"s{row.slot}",{device}'
        f'"city":{city},"os":"{_OS[row.os]}","price":{price},"history":[{",".join(row.history)}],'
        f'"tags":[{tags}],"click":{int(row.click)},'
        f'"conv_ts":{row.ts + row.delay if row.converted else "null"}}}\n'
    )


CSV_HEADER = "ts,user_id,creative_id,slot,device,city,os,price,history,tags,click,conv_ts\n"


def csv_line(row: Row) -> str:
    """Write one row as CSV, lists between ``|``."""
    city = "" if row.missing[0] else row.city
    price = "" if row.missing[1] else "n/a" if row.bad else repr(row.price)
    device = "" if row.missing[2] else f"{row.device:08x}"
    return (
        f"{row.ts},{row.user},{row.creative},s{row.slot},{device},{city},{_OS[row.os]},{price},"
        f"{'|'.join(row.history)},{'|'.join(row.tags)},{int(row.click)},"
        f"{row.ts + row.delay if row.converted else ''}\n"
    )


def generate(out: Path, rows: int, seed: int = 1, formats: tuple[str, ...] = ("jsonl", "csv")) -> None:
    """Write the logs and their specs into ``out``; what is there already, of the same size, is kept."""
    out.mkdir(parents=True, exist_ok=True)
    marker = out / f"{'-'.join(formats)}-{rows}-{seed}.done"
    if marker.exists():
        return
    files = {kind: (out / f"ads.{kind}").open("w") for kind in formats}
    if "csv" in files:
        files["csv"].write(CSV_HEADER)
    for first in range(0, rows, _CHUNK):
        for row in Rows(seed, first, min(_CHUNK, rows - first), rows):
            if "jsonl" in files:
                files["jsonl"].write(json_line(row))
            if "csv" in files:
                files["csv"].write(csv_line(row))
    for kind, file in files.items():
        file.close()
        text = SPEC.format(file=f"ads.{kind}", options="")
        if kind == "csv":
            text = text.replace('kind = "sequence"\n', 'kind = "sequence"\nseparator = "|"\n')
            text = text.replace('kind = "set"\n', 'kind = "set"\nseparator = "|"\n')
        (out / f"{kind}.toml").write_text(text)
    marker.touch()


def main() -> None:
    """Generate from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "work")
    arguments = parser.parse_args()
    generate(arguments.out, arguments.rows, arguments.seed)


if __name__ == "__main__":
    main()
