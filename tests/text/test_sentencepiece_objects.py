"""Objects of ``sentencepiece`` with options of their own."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import TextError
from headrace.text import tokenize
from headrace.text.tokenizer import as_tokenizer

sentencepiece = pytest.importorskip("sentencepiece")


@pytest.fixture(scope="module")
def model() -> bytes:
    written = io.BytesIO()
    lines = iter([f"hello world {n} good day to all {n * 7}" for n in range(300)])
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=written, vocab_size=60, minloglevel=2
    )
    return written.getvalue()


@pytest.mark.parametrize(
    "option", [{}, {"reverse": True}, {"add_bos": True, "add_eos": True}, {"num_threads": 2}]
)
def test_ids_are_those_of_the_object_without_what_stands_at_both_ends(
    tmp_path: Path, model: bytes, option: dict[str, Any]
) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model, **option)
    texts = ["hello good world", "", "all"]
    store = tokenize(texts, processor, tmp_path / "s")
    assert store["input_ids"] == processor.encode(texts, out_type=int, add_bos=False, add_eos=False)


@pytest.mark.filterwarnings("ignore:.*draws its ids")
@pytest.mark.parametrize("option", ["reverse", "emit_unk_piece", "enable_sampling"])
def test_ids_of_other_options_are_not_mixed(tmp_path: Path, model: bytes, option: str) -> None:
    plain, other = (
        sentencepiece.SentencePieceProcessor(model_proto=model, **more) for more in ({}, {option: True})
    )
    tokenize(["hello"], plain, tmp_path / "s")
    with pytest.raises(TextError, match="tokenizer: digest is"):
        tokenize(["hello"], other, tmp_path / "s", append=True)


def test_sampling_is_warned_of(tmp_path: Path, model: bytes) -> None:
    drawing = sentencepiece.SentencePieceProcessor(model_proto=model, enable_sampling=True)
    with pytest.warns(UserWarning, match=r"draws its ids \(enable_sampling=True\): another run gives others"):
        tokenize(["hello"], drawing, tmp_path / "s")


def test_an_object_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TextError, match="a SentencePieceProcessor without a model"):
        tokenize(["hello"], sentencepiece.SentencePieceProcessor(), tmp_path / "s")
    with pytest.raises(TextError, match="without a model"):
        as_tokenizer(sentencepiece.SentencePieceProcessor())
