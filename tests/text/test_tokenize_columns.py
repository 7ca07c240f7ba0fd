"""Columns beside the ids that a function gives in one order here and in another there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.dataset.splits import load_from_disk
from headrace.errors import TextError
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


def with_column(values: Any) -> Any:
    def function(text: str) -> dict[str, Any]:
        ids = list(text.encode())
        ends = [(place, place + 1) for place in range(len(ids))]
        columns = {name: np.full(len(ids), 1, dtype) for name, dtype in values.items()}
        return {"input_ids": ids, "offsets": ends, **columns}

    function.fingerprint = "same"  # type: ignore[attr-defined]
    return function


@pytest.mark.parametrize("dtype", ["bool", ">i4", "float16", "float64"])
@pytest.mark.parametrize("words", [False, True])
def test_documents_that_are_added_bring_the_columns_that_are_there(
    tmp_path: Path, dtype: str, words: bool
) -> None:
    def add(values: Any, **more: Any) -> Any:
        return tokenize(["", "ab", "c"], with_column(values), tmp_path, vocab_size=256, words=words, **more)

    add({"w": dtype})
    assert len(add({"w": dtype}, append=True)) == 6
    for other in ({}, {"w": "int16"}, {"w": dtype, "v": dtype}, {"v": dtype}):
        with pytest.raises(TextError, match=r"^document 1: the tokenizer gave the columns .*, and before w"):
            add(other, append=True)
    assert len(add({"w": dtype}, append=True)) == 9


def test_word_starts_that_a_function_gives_are_a_column_as_any_other(tmp_path: Path) -> None:
    def add(values: Any, **more: Any) -> Any:
        return tokenize(["ab"], with_column(values), tmp_path, vocab_size=256, words=True, **more)

    add({"word_starts": "int64"})
    assert add({"word_starts": "int64"}, append=True)["word_starts"] == [[1, 1], [1, 1]]
    with pytest.raises(
        TextError, match=r"document 0: .* word_starts \(int8\), and before word_starts \(int64\)"
    ):
        add({"word_starts": "int8"}, append=True)
