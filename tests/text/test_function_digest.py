"""Which functions are the same: in another process, after a change of a constant, a closure, a state."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.errors import TextError
from headrace.text.function_digest import digest_of

SOURCE = '''
import functools
LIMIT = {limit}
TABLE = {table}

def helper(word):
    """{docstring}"""
    # {comment}
    return {helper}

def plain(text):
    return [helper(word) for word in text.split()][:LIMIT]

def made(k, words=("a", "b")):
    def inner(text, *, more={default}):
        return [TABLE.get(word, k + more) for word in text]
    return inner

class Word:
    size = {size}
    def __init__(self, table):
        self.table = table
        self.itself = self
    def one(self, word):
        return {method}
    def __call__(self, text):
        return [self.one(word) for word in text]

def functions():
    one = Word({{"x", "y", "z"}})
    return [plain, made({cell}), functools.partial(made(1), more={partial}), one, one.one,
            lambda text: [{constant}], {{"a": {entry}}}.get, lambda text: plain(text)]
'''
VALUES: dict[str, Any] = {
    "limit": 5, "table": {"a": 1}, "docstring": "x", "comment": "x", "helper": "len(word)", "default": 2,
    "size": 3, "method": "self.size", "cell": 4, "partial": 5, "constant": 6, "entry": 7,
}  # fmt: skip
CHANGES: dict[str, tuple[Any, set[int]]] = {
    "limit": (6, {0, 7}),
    "table": ({"a": 2}, {1, 2}),
    "helper": ("len(word) + 1", {0, 7}),
    "default": (3, {1, 2}),
    "size": (4, {3, 4}),
    "method": ("self.size + 1", {3, 4}),
    "cell": (5, {1}),
    "partial": (6, {2}),
    "constant": (7, {5}),
    "entry": (8, {6}),
    "comment": ("y", set()),
}
"""A change, and which of the functions it changes."""


def digests(**changes: Any) -> list[str]:
    room: dict[str, Any] = {"__name__": "room"}
    exec(SOURCE.format(**{**VALUES, **changes}), room)
    return [digest_of(function) for function in room["functions"]()]


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_is_read_changes_the_digest(name: str) -> None:
    value, changed = CHANGES[name]
    before, after = digests(), digests(**{name: value})
    assert {n for n in range(len(before)) if before[n] != after[n]} == changed
    assert len(set(before)) == len(before)


def test_digests_are_the_same_in_other_processes(tmp_path: Path) -> None:
    script = SOURCE.format(**VALUES) + (
        "\nfrom headrace.text.function_digest import digest_of\n"
        "print(*map(digest_of, functions()), sep='\\n')\n"
    )
    (tmp_path / "script.py").write_text(script)
    found = {
        subprocess.run(
            [sys.executable, str(tmp_path / "script.py")],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_arrays_count_by_their_content() -> None:
    def of(table: Any) -> Callable[[str], Any]:
        return lambda text: table

    same = digest_of(of(np.arange(3)))
    assert digest_of(of(np.arange(3))) == same
    others = (
        np.arange(4),
        np.arange(3.0),
        np.array([1, None]),
        np.int64(3),
        [0, 1, 2],
        {0: 1},
        object(),
        None,
    )
    assert len({same, *(digest_of(of(other)) for other in others)}) == len(others) + 1


def test_known_tokenizers_count_by_their_content(shared_data: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")

    def made(word: str) -> Any:
        own = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: 0}, unk_token=word))
        return lambda text: own.encode(text).ids

    assert digest_of(made("a")) == digest_of(made("a"))
    assert digest_of(made("a")) != digest_of(made("b"))


def test_what_is_nested_without_end_is_an_error() -> None:
    deep: Any = None
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(
        TextError, match=r"nested too deep to be compared. Give it a method __fingerprint__\(\)"
    ):
        digest_of(lambda text: deep)
    while deep:  # or its end would be as deep
        deep = deep.pop()


class Told:
    def __init__(self, version: int) -> None:
        self.version, self.calls = version, 0

    def __fingerprint__(self) -> str:
        return f"told {self.version}"

    def __call__(self, text: str) -> list[int]:
        self.calls += 1
        return [self.version]


def test_what_says_what_it_is_is_believed() -> None:
    one, other = Told(1), Told(2)
    before = digest_of(functools.partial(one))
    one("x")
    assert digest_of(functools.partial(one)) == before
    assert digest_of(functools.partial(other)) != before
