"""Tokenizers of ``tokenizers`` that the user made and goes on using: taken as they are, left as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import TextError
from headrace.text import tokenize
from headrace.text.tokenizer import as_tokenizer

tokenizers = pytest.importorskip("tokenizers")


def words(*others: str) -> Any:
    texts = ["[UNK]", "a", "b", "<", "x", ">", *others]
    model = tokenizers.models.WordLevel({text: n for n, text in enumerate(texts)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("."), "isolated")
    tokenizer.add_special_tokens(["<x>"])
    return tokenizer


class AtWork:
    """A tokenizer that encodes in another thread, where whoever sets something waits, with Python stopped."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        assert name not in ("no_truncation", "no_padding", "enable_truncation", "enable_padding")
        return getattr(self.tokenizer, name)


def test_nothing_is_set_on_a_tokenizer_that_may_be_at_work(tmp_path: Path) -> None:
    assert tokenize(["ab", "b"], AtWork(words()), tmp_path / "s")["input_ids"] == [[1, 2], [2]]


@pytest.mark.parametrize("cuts", [False, True])
def test_special_tokens_are_split_where_the_tokenizer_is_told_to(tmp_path: Path, cuts: bool) -> None:
    tokenizer = words()
    tokenizer.encode_special_tokens = True
    if cuts:
        tokenizer.enable_truncation(1)
        tokenizer.enable_padding(length=9)
    assert tokenize(["<x>a"], tokenizer, tmp_path / "s")["input_ids"] == [[3, 4, 5, 1]]
    assert tokenizer.encode_special_tokens
    assert (tokenizer.truncation is not None) is (tokenizer.padding is not None) is cuts


def test_ids_with_special_tokens_split_and_whole_are_not_mixed(tmp_path: Path) -> None:
    tokenizer = words()
    assert tokenize(["<x>"], tokenizer, tmp_path / "s")["input_ids"] == [[6]]
    tokenizer.encode_special_tokens = True
    with pytest.raises(TextError, match="tokenizer: digest is"):
        tokenize(["<x>"], tokenizer, tmp_path / "s", append=True)


class Letters:
    def pre_tokenize(self, text: Any) -> None:
        text.split(lambda _, part: [part[n : n + 1] for n in range(len(str(part)))])


@pytest.mark.parametrize("cuts", [False, True])
def test_a_tokenizer_with_a_part_in_python_is_refused(tmp_path: Path, cuts: bool) -> None:
    tokenizer = words()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.PreTokenizer.custom(Letters())
    if cuts:
        tokenizer.enable_truncation(1)
    with pytest.raises(TextError, match=r"cannot write it to a file \(Custom PreTokenizer.*Give a function"):
        tokenize(["ab"], tokenizer, tmp_path / "s")
    if not cuts:
        by_function = lambda text: tokenizer.encode(text, add_special_tokens=False).ids  # noqa: E731
        assert tokenize(["ab"], by_function, tmp_path / "s", vocab_size=7)["input_ids"] == [[1, 2]]


@pytest.mark.parametrize("model", ["BPE", "Unigram"])
def test_whole_texts_are_not_remembered(model: str) -> None:
    resized: list[int] = []

    class Model:
        def __getattr__(self, name: str) -> Any:
            return resized.append if name == "_resize_cache" else getattr(tokenizer.model, name)

    class Whole:
        model = Model()

        def __getattr__(self, name: str) -> Any:
            return getattr(tokenizer, name)

    kind = tokenizers.models
    tokenizer = tokenizers.Tokenizer(
        kind.BPE({"a": 0}, []) if model == "BPE" else kind.Unigram([("a", -1.0)], 0)
    )
    assert as_tokenizer(Whole()).encode(["a"], False).ids[0].tolist() == [0]
    assert not resized
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    as_tokenizer(Whole())
    assert len(resized) == 1


def test_dropout_is_warned_of(tmp_path: Path) -> None:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0, "aa": 1}, [("a", "a")], dropout=0.5))
    with pytest.warns(UserWarning, match=r"draws its ids \(dropout=0\.5\): another run gives others"):
        tokenize(["aa"], tokenizer, tmp_path / "s")
    tokenizer.model.dropout = None
    tokenize(["aa"], tokenizer, tmp_path / "other")
