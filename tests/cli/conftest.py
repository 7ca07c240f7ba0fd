"""A store with every kind of feature and label, small enough to decode by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from headrace.cli.app import app

SPEC = """
name = "small"
source = { files = "rows.jsonl", max_bad_fraction = 0.5 }
time = { column = "ts" }
id = { column = "request" }
weight = { column = "w" }

[split]
by = "time"
train = { until = 2025-06-02 }
test = { from = 2025-06-02 }

[features.color]
kind = "categorical"
min_count = 2

[features.shop]
kind = "categorical"
unseen = "hash"
unknown_buckets = 4

[features.shape]
kind = "categorical"
missing = "pad"

[features.history]
kind = "sequence"
vocabulary = "page"
max_length = 3

[features.tags]
kind = "set"
max_length = 3

[features.interest]
kind = "weighted_set"
max_length = 3

[features.price]
kind = "numeric"
transform = "log1p"
missing = -1.0

[features.size]
kind = "numeric"
transform = "standardize"

[features.share]
kind = "numeric"
transform = "minmax"

[features.age]
kind = "numeric"
transform = "bucketize"
buckets = 2

[features.hour]
kind = "time"
column = "ts"
part = "hour"

[features.device]
kind = "hashed"
buckets = 10

[features.color_x_shop]
kind = "cross"
columns = ["color", "shop"]
buckets = 10

[features.image]
kind = "vector"
dim = 2

[vocabularies.page]

[labels.click]
kind = "binary"
weight = "w"

[labels.action]
kind = "class"
values = ["view", "buy"]
"""

DAY_1 = 1748736000  # 2025-06-01T00:00:00Z
ROWS: list[dict[str, Any]] = [
    {
        "request": "r0", "ts": DAY_1 + 3600, "w": 0.5, "color": "red", "shop": "A", "shape": "round",
        "history": ["p1", "p2"], "tags": ["t2", "t1"], "interest": {"k1": 0.5, "k2": 2}, "price": 0,
        "size": 10, "share": 1, "age": 20, "device": "d1", "image": [1.5, -2], "click": 1, "action": "buy",
    },
    {
        "request": "r1", "ts": DAY_1 + 7200, "w": 1, "color": "red", "shop": "A", "shape": None,
        "history": ["p1", None], "tags": [], "interest": {}, "price": None,
        "size": 20, "share": 3, "age": 40, "device": None, "image": None, "click": None, "action": "hold",
    },
    {"request": "bad", "ts": DAY_1, "w": 1, "price": "cheap"},
    {
        "request": "r2", "ts": DAY_1 + 86_400, "w": 2, "color": "blue", "shop": "Z", "shape": "flat",
        "history": None, "tags": None, "interest": None, "price": 6.5,
        "size": 30, "share": 2, "age": None, "device": "d2", "image": [0, 0], "click": 0, "action": "view",
    },
]  # fmt: skip


def write(folder: Path, rows: list[dict[str, Any]] = ROWS, spec: str = SPEC) -> Path:
    """Write rows and spec below a folder; return the spec's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "small.toml").write_text(spec)
    return folder / "small.toml"


@pytest.fixture
def small_spec(tmp_path: Path) -> Path:
    """A spec and its raw file, not built."""
    return write(tmp_path)


@pytest.fixture(scope="session")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the spec ``small.toml`` and its raw file ``rows.jsonl``."""
    folder = tmp_path_factory.mktemp("raw")
    write(folder)
    return folder


@pytest.fixture(scope="session")
def run() -> Callable[..., Result]:
    """Run the command line in this process."""
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, [str(one) for one in arguments], catch_exceptions=False)


@pytest.fixture(scope="session")
def built(raw: Path, run: Callable[..., Result]) -> Result:
    """What ``headrace build`` printed for the store at ``store``."""
    return run("build", raw / "small.toml", "--out", raw / "store")


@pytest.fixture(scope="session")
def store(raw: Path, built: Result) -> Path:
    """The built store; no test changes it."""
    assert built.exit_code == 0, built.output
    return raw / "store"
