"""Tokenizing in several threads: the same bytes, all threads at work even on a few documents."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from headrace.text import tokenize
from headrace.text.tokenizer import as_tokenizer

TEXTS = [f"{n}: " + "word " * (n * 7 % 90) for n in range(700)]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*.arrow")}


@pytest.mark.parametrize("threads", [1, 3, 8])
@pytest.mark.parametrize("kind", ["function", "tokenizers", "tiktoken"])
def test_the_bytes_do_not_depend_on_threads(
    tmp_path: Path, shared_data: Path, kind: str, threads: int
) -> None:
    tokenizer: Any = {
        "function": lambda text: list(text.encode()),
        "tokenizers": shared_data / "tokenizers" / "claude2",
        "tiktoken": shared_data / "tokenizers" / "tiktoken" / "p50k_base.tiktoken",
    }[kind]
    how: dict[str, Any] = {"vocab_size": 256} if kind == "function" else {}
    store = tokenize(TEXTS, tokenizer, tmp_path / "store", threads=threads, shard_bytes=20_000, **how)
    alone = as_tokenizer(tokenizer)
    assert store["input_ids"] == [alone.encode([text], False).ids[0].tolist() for text in TEXTS]
    tokenize(TEXTS, tokenizer, tmp_path / "other", threads=2, shard_bytes=20_000, **how)
    assert files(tmp_path / "store") == files(tmp_path / "other")
    assert len(files(tmp_path / "store")) > 1


def test_a_few_documents_are_shared_by_all_threads(tmp_path: Path) -> None:
    together = threading.Barrier(4)

    def waits_for_three_others(text: str) -> list[int]:
        together.wait(timeout=300)
        return list(text.encode())

    tokenize(["a", "b", "c", "d"], waits_for_three_others, tmp_path / "s", vocab_size=256, threads=4)


def test_one_thread_calls_a_function_once_at_a_time_and_in_order(tmp_path: Path) -> None:
    free = threading.Lock()
    called: list[str] = []

    def keeps_a_state(text: str) -> list[int]:
        assert free.acquire(blocking=False)
        called.append(text)
        free.release()
        return list(text.encode())

    keeps_a_state.fingerprint = "same"  # type: ignore[attr-defined]
    tokenize(TEXTS, keeps_a_state, tmp_path / "s", vocab_size=256, threads=1)
    assert called == TEXTS


def test_the_first_wrong_document_is_named_whatever_thread_meets_it_first(tmp_path: Path) -> None:
    later_failed = threading.Event()

    def fails_twice(text: str) -> list[int]:
        if text == "1":
            later_failed.wait(timeout=300)
        if text == "2":
            later_failed.set()
        if text in ("1", "2"):
            raise KeyError(text)
        return [0]

    with pytest.raises(Exception, match="failed on '1'"):
        tokenize([str(n) for n in range(50)], fails_twice, tmp_path / "s", vocab_size=256, threads=4)


def hugging_face(model: Any, added: list[str]) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.add_tokens(added)
    return tokenizer


@pytest.mark.parametrize("added", [[], ["b"], ["<x>", "<y>"]])
@pytest.mark.parametrize("ids", [[], [0, 1, 2], [0, 1, 5], [3, 4, 5], [1, 2, 3]])
def test_the_vocabulary_reaches_to_its_largest_id(ids: list[int], added: list[str]) -> None:
    models = pytest.importorskip("tokenizers.models")
    vocabulary = dict(zip("abc", ids, strict=False))
    for model in (models.WordLevel(vocabulary, unk_token="a"), models.BPE(vocabulary, [])):
        tokenizer = hugging_face(model, added)
        every = tokenizer.get_vocab(with_added_tokens=True).values()
        assert as_tokenizer(tokenizer).special.vocab_size == max(every, default=-1) + 1
