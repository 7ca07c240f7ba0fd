"""Files and objects of tokenizers that are damaged: an error that says so, none from inside a library."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import TextError
from headrace.text import Tokens, tokenize

tiktoken = pytest.importorskip("tiktoken")
tokenizers = pytest.importorskip("tokenizers")

BYTES = "".join(f"{base64.b64encode(bytes([n])).decode()} {n}\n" for n in range(256))


def without(byte: int) -> str:
    return "".join(line for line in BYTES.splitlines(keepends=True) if not line.endswith(f" {byte}\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "byte 0x00 has no rank"),
        (without(0x68), "byte 0x68 has no rank"),
        (BYTES + "aGVsbG8= 5\n", "5 stands twice"),
        (BYTES + "aA== 300\n", "b'h' stands twice"),
        (BYTES + "aGVsbG8= 100257\n", "100257 stands twice"),
        (BYTES + "aGVsbG8= -5\n", "rank -5 is no id"),
        (BYTES + f"aGVsbG8= {1 << 32}\n", "rank 4294967296 is no id"),
        (BYTES + "aGVsbG8= 1.5\n", r":257: found b'aGVsbG8= 1.5'"),
    ],
)
def test_ranks_that_cannot_be_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "cl100k_base.tiktoken"
    path.write_text(content)
    with pytest.raises(TextError, match=message):
        tokenize(["hello"], path, tmp_path / "store")
    assert not (tmp_path / "store").exists()


def printable() -> dict[str, int]:
    """GPT-2's character for each byte, with its rank in a tokenizer without merges."""
    plain = [n for n in range(256) if chr(n).isprintable() and n not in (32, 160, 173)]
    return {chr(n): n for n in plain} | {
        chr(256 + n): byte for n, byte in enumerate(sorted({*range(256)} - {*plain}))
    }


@pytest.mark.parametrize(
    ("vocabulary", "merges", "message"),
    [
        (None, b"#\n", "vocab.json: No such file"),
        (b"{", b"#\n", "not those of a GPT-2 tokenizer"),
        (b"[1]", b"#\n", "not those of a GPT-2 tokenizer"),
        ('{"中": 0}'.encode(), b"#\n", "not those of a GPT-2 tokenizer"),
        (b'{"a": "x"}', b"#\n", "not those of a GPT-2 tokenizer"),
        (b"[" * 100_000, b"#\n", "not those of a GPT-2 tokenizer"),
        (b'{"a": 0}', b"#\n\xff\n", "not those of a GPT-2 tokenizer"),
        (b"{}", b"", "byte 0x00 has no rank"),
        (json.dumps(printable()).encode(), b"#\na b\n", "do not belong together"),
    ],
)
def test_gpt2_files_that_cannot_be_are_refused(
    tmp_path: Path, vocabulary: bytes | None, merges: bytes, message: str
) -> None:
    (tmp_path / "merges.txt").write_bytes(merges)
    if vocabulary is not None:
        (tmp_path / "vocab.json").write_bytes(vocabulary)
    with pytest.raises(TextError, match=message):
        tokenize(["hello"], tmp_path, tmp_path / "store")


def words(unknown: str = "[UNK]") -> dict[str, Any]:
    model = {"type": "WordLevel", "vocab": {"hello": 0, "[UNK]": 1}, "unk_token": unknown}
    empty = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    return {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": model,
        **empty,
    }


@pytest.mark.parametrize("config", ["[1]", '"x"', "5", "[" * 100_000, "{", '{"eos_token": 5}'])
def test_a_configuration_that_names_nothing_is_none(tmp_path: Path, config: str) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(words()))
    (tmp_path / "tokenizer_config.json").write_text(config)
    tokenize(["hello you"], tmp_path, tmp_path / "store")
    assert Tokens.open(tmp_path / "store").document(0).tolist() == [0, 1]


@pytest.mark.parametrize("more", [{}, {"words": True}])
def test_what_a_library_cannot_encode_is_named(tmp_path: Path, more: dict[str, Any]) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(words("nowhere")))
    with pytest.raises(TextError, match=r"^document 1: the tokenizer .* cannot encode it .*Missing \[UNK\]"):
        tokenize(["hello", "hello you"], tmp_path, tmp_path / "store", **more)
    assert not (tmp_path / "store" / "headrace.json").exists()


def test_a_library_that_panics_is_an_error_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    half = tiktoken.Encoding("half", pat_str=r"\S+", mergeable_ranks={b"h": 0}, special_tokens={})
    with pytest.raises(TextError, match=r"^document 1: the tokenizer half cannot encode it \(PanicException"):
        tokenize(["h", "hello"], half, tmp_path / "store")
    assert capfd.readouterr()


def test_a_run_that_is_stopped_is_no_failure_of_the_tokenizer(tmp_path: Path) -> None:
    def stopped(text: str) -> list[int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tokenize(["h"], stopped, tmp_path / "store", vocab_size=5)


@pytest.mark.parametrize("name", ["a/b", "../x", "", ".", "..", "mine", "a\\b", "gpt2"])
def test_a_tokenizer_of_any_name_is_kept_and_decodes_its_store(tmp_path: Path, name: str) -> None:
    from headrace.text.rendering import render_store

    ranks = {bytes([n]): n for n in range(256)} | {b"he": 256}
    own = tiktoken.Encoding(
        name, pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 300}
    )
    tokenize(["hello 你"], own, tmp_path / "store")
    (row,) = render_store(tmp_path / "store", window=16, pack="concat", numbers=1)
    assert "".join(piece.text for piece in row.pieces) == "hello 你<|endoftext|>"


@pytest.mark.parametrize(
    "name",
    ["plans", "tokenizer", "headrace.json", "tokenize.json", 1, None, "", "..", ".x", "a/b", "a\\b", "a\0",
     "a ", "x" * 300],
)  # fmt: skip
def test_what_cannot_name_a_split_is_refused(tmp_path: Path, name: Any) -> None:
    with pytest.raises(TextError, match="cannot name a split"):
        tokenize(["a"], lambda text: [1], tmp_path / "store", {name: 0.5}, vocab_size=5)
    assert not (tmp_path / "store").exists()
