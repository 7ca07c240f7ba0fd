"""The error of a run names the first document that is wrong, whatever is wrong and however many threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from headrace.engine.local import run_in_order
from headrace.errors import HeadraceError, TextError
from headrace.text import tokenize
from headrace.text.tokenizer import Encoded, as_tokenizer, encode_documents

THREADS = pytest.mark.parametrize("threads", [1, 2, 8])
FAULTS = ["cannot be read", "raises", "id outside", "other columns", "no ids", "a column too long"]
MESSAGES = {
    "cannot be read": "found no text",
    "raises": "failed on",
    "id outside": "is outside the vocabulary",
    "other columns": "gave the columns",
    "no ids": "expected a flat list",
    "a column too long": "expected one number a token",
}


def encode(text: str) -> Any:
    fault = text.partition(": ")[2]
    if fault == "raises":
        raise KeyError(text)
    given = {
        "id outside": {"input_ids": [1000], "w": [1]},
        "other columns": {"input_ids": [1], "v": [1]},
        "no ids": [[1], [2]],
        "a column too long": {"input_ids": [1], "w": [1, 2]},
    }
    return given.get(fault, {"input_ids": [1], "w": [1]})


def wrong_from(first: int, faults: list[str]) -> Iterator[str | None]:
    """Yield documents, of which from one on each has a fault."""
    for number in count():
        fault = faults[(number - first) % len(faults)] if number >= first else ""
        yield None if fault == "cannot be read" else f"{number}: {fault}"


def finished(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*.arrow")}


@THREADS
@pytest.mark.parametrize("first", [3, 120])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_first_wrong_document_is_named_and_none_from_it_on_is_kept(
    tmp_path: Path, fault: str, first: int, threads: int
) -> None:
    start = FAULTS.index(fault)
    documents = wrong_from(first, FAULTS[start:] + FAULTS[:start])
    with pytest.raises(TextError, match=f"^document {first}: .*{MESSAGES[fault]}"):
        tokenize(documents, encode, tmp_path / "s", vocab_size=9, threads=threads, shard_bytes=20)
    assert len(finished(tmp_path / "s")) <= first // 20


@THREADS
def test_what_a_generator_raises_comes_after_the_documents_before_it(tmp_path: Path, threads: int) -> None:
    def broken(wrong: int) -> Iterator[str]:
        for number in range(100):
            yield f"{number}: raises" if number == wrong else str(number)
        raise RuntimeError("broken")

    with pytest.raises(TextError, match="document 99: encode failed"):
        tokenize(broken(99), encode, tmp_path / "s", vocab_size=9, threads=threads)
    with pytest.raises(RuntimeError, match="broken"):
        tokenize(broken(100), encode, tmp_path / "s", vocab_size=9, threads=threads, shard_bytes=10)
    assert len(finished(tmp_path / "s")) == 10


@THREADS
@pytest.mark.parametrize("more", [{}, {"words": True}])
def test_what_a_library_cannot_encode_waits_for_the_documents_before_it(
    tmp_path: Path, threads: int, more: dict[str, Any]
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 500}, unk_token="nowhere"))
    documents = ["a"] * 300 + ["b", "c"]
    with pytest.raises(TextError, match="document 300: id 500 does not fit"):
        tokenize(documents, tokenizer, tmp_path / "s", threads=threads, dtype="uint8", **more)
    documents[300] = "a"
    with pytest.raises(TextError, match="document 301: the tokenizer tokenizer cannot encode it"):
        tokenize(documents, tokenizer, tmp_path / "t", threads=threads, shard_bytes=20, **more)
    assert len(finished(tmp_path / "t")) == 301 * 2 // 20


def test_a_function_is_called_once_for_each_document_though_one_fails(tmp_path: Path) -> None:
    called: list[str] = []

    def fails(text: str) -> list[int]:
        called.append(text)
        if text == "50":
            raise TypeError("here")
        return [1]

    fails.fingerprint = "same"  # type: ignore[attr-defined]
    with pytest.raises(TextError, match=r"document 50: .*fails failed on '50': TypeError") as found:
        tokenize(map(str, count()), fails, tmp_path / "s", vocab_size=9, threads=1)
    assert isinstance(found.value.__cause__, TypeError)
    assert called[:51] == [*map(str, range(51))]
    assert len(set(called)) == len(called)


def test_documents_that_nobody_wants_any_more_are_not_encoded() -> None:
    ended = threading.Event()
    called: list[str] = []

    def is_stopped(text: str) -> list[int]:
        called.append(text)
        if text == "2":
            ended.set()
        return [1]

    texts = [*map(str, range(9))]
    encoded, failed = encode_documents(as_tokenizer(is_stopped), texts, False, texts, ended)
    assert called == ["0", "1", "2"]
    assert (len(encoded.ids), failed) == (3, None)


def test_a_task_that_is_still_at_work_learns_that_its_result_is_not_wanted() -> None:
    ended, begun = threading.Event(), threading.Event()
    learnt: list[bool] = []

    def work(number: int) -> None:
        if number == 0:
            begun.wait(timeout=300)
            raise HeadraceError("first")
        begun.set()
        learnt.append(ended.wait(timeout=300))

    with pytest.raises(HeadraceError, match="first"):
        list(run_in_order(work, range(2), 2, ended))
    assert learnt == [True]


def test_a_library_that_fails_on_a_batch_alone_is_asked_document_by_document() -> None:
    class Alone:
        kind, name = "tokenizers", "alone"

        def encode(self, texts: Any, with_ends: bool) -> Encoded:
            documents = list(texts)
            if len(documents) > 1:
                raise MemoryError
            return as_tokenizer(lambda text: list(text.encode())).encode(documents, with_ends)

    tokenizer: Any = Alone()
    encoded, failed = encode_documents(tokenizer, ["ab", "c"], False, ["0", "1"], threading.Event())
    assert [ids.tolist() for ids in encoded.ids] == [[97, 98], [99]]
    assert failed is None
