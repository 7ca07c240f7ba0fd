"""Columns beside the ids that a function gives in one order here and in another there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.dataset.splits import load_from_disk
from headrace.text import tokenize

TEXTS = ["word " * (n % 5) for n in range(60)]


def in_any_order(text: str) -> dict[str, Any]:
    """Return two columns, in an order that differs from text to text."""
    ids = list(text.encode())
    columns = {"a": [id_ + 1 for id_ in ids], "input_ids": ids, "b": [id_ / 2 for id_ in ids]}
    names = ["a", "input_ids", "b"] if len(text) % 2 else ["b", "a", "input_ids"]
    return {name: columns[name] for name in names}


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_the_order_in_which_a_function_names_columns_is_no_difference(tmp_path: Path, threads: int) -> None:
    for folder, count in ((tmp_path / "many", threads), (tmp_path / "one", 1)):
        tokenize(TEXTS, in_any_order, folder, vocab_size=256, shard_bytes=7, threads=count)
        tokenize(TEXTS[::-1], in_any_order, folder, vocab_size=256, shard_bytes=7, threads=count, append=True)
    store = load_from_disk(tmp_path / "many")["train"]
    ids = [list(text.encode()) for text in TEXTS + TEXTS[::-1]]
    assert store["input_ids"] == ids
    assert store["a"] == [[id_ + 1 for id_ in row] for row in ids]
    assert store["b"] == [[id_ / 2 for id_ in row] for row in ids]
    files = [
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.arrow")}
        for name in ("one", "many")
    ]
    assert files[0] == files[1]
    assert len(files[0]) > 1
