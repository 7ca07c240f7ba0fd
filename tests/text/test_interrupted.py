"""What an interrupted run left, damaged or of another run: an error that says what to do, nothing mixed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import TextError
from headrace.text import Tokens, tokenize

TEXTS = [f"document number {n}" for n in range(40)]


class StoppedError(Exception):
    pass


def numbers(k: int) -> Callable[[str], list[int]]:
    return lambda text: [k] * len(text)


@pytest.fixture
def unfinished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("headrace.text.tokenizing._BATCH_DOCUMENTS", 2)

    def stopped() -> Iterator[str]:
        yield from TEXTS[:30]
        raise StoppedError

    with pytest.raises(StoppedError):
        tokenize(stopped(), numbers(3), tmp_path / "store", vocab_size=9, shard_bytes=60)
    return tmp_path / "store"


def go_on(store: Path, function: Any = None, **more: Any) -> Any:
    return tokenize(TEXTS, function or numbers(3), store, vocab_size=9, shard_bytes=60, **more)


def test_the_same_function_made_again_goes_on(unfinished: Path) -> None:
    go_on(unfinished)
    tokens = Tokens.open(unfinished)
    assert [set(tokens.document(n).tolist()) for n in range(len(tokens))] == [{3}] * len(TEXTS)


@pytest.mark.parametrize("other", [numbers(4), lambda text: [3] * len(text), lambda text: [4] * len(text)])
def test_another_function_does_not_go_on(unfinished: Path, other: Any) -> None:
    with pytest.raises(TextError, match=r"unfinished run with other arguments: tokenizer: .* is .* there"):
        go_on(unfinished, other)


def test_another_function_does_not_append(tmp_path: Path) -> None:
    tokenize(TEXTS, numbers(3), tmp_path / "store", vocab_size=9)
    with pytest.raises(TextError, match=r"tokenizer: digest is .* what it reads; .*__fingerprint__\(\)"):
        tokenize(TEXTS, numbers(4), tmp_path / "store", vocab_size=9, append=True)
    assert len(tokenize(TEXTS, numbers(3), tmp_path / "store", vocab_size=9, append=True)) == 2 * len(TEXTS)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"5", b"\xff", b"{", b'{"settings": {}, "written": 5}', b"[" * 100_000]
)
def test_a_damaged_account_of_it_is_named(unfinished: Path, content: bytes) -> None:
    (unfinished / "tokenize.json").write_bytes(content)
    with pytest.raises(TextError, match=r"tokenize\.json: damaged, .* Remove the folder"):
        go_on(unfinished)


@pytest.mark.parametrize("change", ["another name", "another split", "a shard without a name"])
def test_an_account_with_other_names_is_damaged(unfinished: Path, change: str) -> None:
    path = unfinished / "tokenize.json"
    content = json.loads(path.read_bytes())
    if change == "another name":
        content["written"]["train"]["other"] = 1
    elif change == "another split":
        content["written"]["other"] = content["written"]["train"]
    else:
        del content["written"]["train"]["shards"][0]["name"]
    path.write_text(json.dumps(content))
    with pytest.raises(TextError, match="damaged"):
        go_on(unfinished)


@pytest.mark.parametrize("length", [None, 5])
def test_a_finished_shard_that_is_lost_is_named_before_anything_is_done(
    unfinished: Path, length: int | None
) -> None:
    shard = unfinished / "train" / "00001.arrow"
    content = shard.read_bytes()
    if length is None:
        shard.unlink()
    else:
        shard.write_bytes(content[:length])
    with pytest.raises(TextError, match=r"00001\.arrow: the interrupted run finished this shard"):
        go_on(unfinished)
    shard.write_bytes(content)
    assert len(go_on(unfinished)) == len(TEXTS)


@pytest.mark.parametrize("appended", [0, 1])
def test_a_run_that_was_stopped_with_its_manifest_in_place_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, appended: int
) -> None:
    from headrace.text import tokenizing

    publish = tokenizing.write_manifest

    def then_stopped(*given: Any) -> None:
        publish(*given)
        raise StoppedError

    if appended:
        go_on(tmp_path)
    monkeypatch.setattr(tokenizing, "write_manifest", then_stopped)
    with pytest.raises(StoppedError):
        go_on(tmp_path, append=bool(appended))
    monkeypatch.undo()
    assert len(Tokens.open(tmp_path)) == (1 + appended) * len(TEXTS)
    with pytest.raises(TextError, match="holds a store already"):
        go_on(tmp_path)
    assert len(go_on(tmp_path, append=True)) == (2 + appended) * len(TEXTS)
    assert not (tmp_path / "tokenize.json").exists()
