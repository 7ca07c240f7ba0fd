"""What a person sees of windows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.errors import TextError
from headrace.text import MLM, Tokens, Windows, tokenize
from headrace.text.rendering import decoder_of, render_store, render_windows, to_html, to_terminal

WORDS = ["<pad>", "the", "cat", "sat", "<b>on</b>", "a", "mat"]


def decode(ids: object) -> str:
    return "".join(f"{WORDS[number]} " for number in ids)  # type: ignore[attr-defined]


def test_borders_overlaps_padding_and_labels_are_shown() -> None:
    windows = Windows([[1, 2, 3, 4], [5, 6]], 5, 3, pack="concat", eos=False, pad_id=0)
    first, last = render_windows(windows, [0, 1], decode=decode)
    assert first.title == "window 0: document 0 from token 0, 5 of 5 tokens"
    assert [(p.text, p.look.segment, p.look.seen, p.look.live) for p in first.pieces] == [
        ("the cat sat ", 1, False, True),
        ("<b>on</b> ", 1, False, False),
        ("a ", 2, False, True),
    ]
    assert [(p.text, p.look.segment, p.look.seen, p.count) for p in last.pieces] == [
        ("<b>on</b> ", 1, True, 1),
        ("a ", 2, True, 1),
        ("mat ", 2, False, 1),
        ("", 0, False, 2),
    ]
    assert (
        last.title == "window 1: document 0 from token 3, 3 of 5 tokens, 2 of them in an earlier window too"
    )
    shown = to_terminal([first, last]).plain
    assert "the cat sat <b>on</b>  ┃ a " in shown
    assert "<b>on</b>  ┃ a mat [2 padding]" in shown
    page = to_html([first, last], title="<cats>")
    assert "&lt;b&gt;on&lt;/b&gt;" in page
    assert "<b>" not in page
    assert "<title>&lt;cats&gt;</title>" in page
    assert 'class="s2 border"' in page
    assert 'class="s0"' in page


def test_marks_are_of_their_own_tokens_alone() -> None:
    windows = Windows([[1, 2, 3, 4]], 3, 1, pad_id=0)
    shown = to_terminal(render_windows(windows, [1], decode=decode))
    assert not shown.style
    marks = {shown.plain[span.start : span.end]: str(span.style) for span in shown.spans}
    assert marks["cat sat "] == "cyan dim"
    assert marks["<b>on</b> "] == "cyan underline"


def test_text_does_not_command_the_terminal() -> None:
    (row,) = render_windows(Windows([[1]], 1), [0], decode=lambda ids: "\x1b[31m\n\x07")
    assert to_terminal([row]).plain.rstrip("\n").endswith("␛[31m⏎␇")


def test_a_page_has_no_control_characters() -> None:
    (row,) = render_windows(Windows([[1]], 1), [0], decode=lambda ids: "a\x00\x1b[31m\n\tb")
    assert ">a␀␛[31m\n\tb<" in to_html([row])


@pytest.mark.parametrize("wrong", [-1, True, None, "x", 1.5, [0.5], ["x"], [[0], [0, 1]]])
def test_what_is_no_number_of_a_window_is_refused(wrong: Any) -> None:
    with pytest.raises(TextError, match="numbers"):
        render_windows(Windows([[1, 2, 3]], 2, pad_id=0), wrong)


def test_windows_are_numbered_by_any_integers() -> None:
    windows = Windows([[1, 2, 3]], 2, pad_id=0)
    both = render_windows(windows, [0, 1])
    assert render_windows(windows, np.int64(2)) == both  # type: ignore[arg-type]
    assert render_windows(windows, np.array([0, 1])) == both  # type: ignore[arg-type]
    assert render_windows(windows, range(2)) == both
    assert render_windows(windows, []) == []


def test_no_windows_are_said_to_be_none() -> None:
    rows = render_windows(Windows([[]], 2, pad_id=0))
    assert to_terminal(rows).plain == "no windows\n"
    assert "<p>no windows</p>" in to_html(rows)


def test_a_shorter_window_among_longer_ones_is_as_wide_as_it_is() -> None:
    rows = render_windows(Windows([[1, 2, 3, 4]], [2, 8], pad_id=0), [0, 2])
    assert [row.title for row in rows] == [
        "window 0: document 0 from token 0, 2 of 2 tokens",
        "window 2: document 0 from token 0, 4 of 8 tokens",
    ]
    assert [sum(piece.count for piece in row.pieces) for row in rows] == [2, 8]


@pytest.mark.parametrize("wrong", [lambda ids: 1 / 0, lambda ids: 5, lambda ids: None])
def test_a_decoder_of_ones_own_is_checked(wrong: Any) -> None:
    with pytest.raises(TextError, match=r"decode (failed on|gave \w+ for) \[1, 2\]"):
        render_windows(Windows([[1, 2, 3]], 4), decode=wrong)


def test_more_than_a_person_reads_is_refused() -> None:
    windows = Windows([[1, 2], [3]], (1 << 31) - 1)
    with pytest.raises(TextError, match="2 windows of 2,147,483,647 tokens are more than a person reads"):
        render_windows(windows)


def test_hidden_tokens_are_marked() -> None:
    tokens = Tokens.from_documents([[1, 2, 3]], vocab_size=7, mask=0)
    (row,) = render_windows(Windows(tokens, 4, objective=MLM(1.0)), [0], decode=decode)
    assert any(piece.look.hidden for piece in row.pieces)


def test_windows_are_drawn_by_seed_and_shown_in_order() -> None:
    windows = Windows([list(range(100))], 4)
    titles = [row.title for row in render_windows(windows, 5, seed=1)]
    assert len(titles) == 5
    assert titles == [row.title for row in render_windows(windows, 5, seed=1)]
    assert titles != [row.title for row in render_windows(windows, 5, seed=2)]
    assert len(render_windows(windows, 99)) == 25
    with pytest.raises(TextError, match="window 25"):
        render_windows(windows, [25])


def test_a_store_decodes_itself(tmp_path: Path, shared_data: Path) -> None:
    pytest.importorskip("tiktoken")
    tokenize(["A whale 鲸.\nNext"], shared_data / "tokenizers" / "gpt2", tmp_path / "store")
    (row,) = render_windows(Windows(tmp_path / "store", 16))
    assert row.pieces[0].text + row.pieces[1].text == "A whale 鲸.\nNext"
    assert render_store(tmp_path / "store", window=16) == [row]
    with pytest.raises(TextError, match="Did you mean 'train'"):
        render_store(tmp_path / "store", "trian")
    assert "鲸.⏎Next" in to_terminal([row]).plain
    assert decoder_of(Tokens.from_documents([[1]]))([1, 2]) == "1 2 "


@pytest.mark.parametrize("kind", ["tiktoken", "tokenizers", "sentencepiece"])
def test_ids_beyond_the_tokenizer_are_shown_as_ids(tmp_path: Path, shared_data: Path, kind: str) -> None:
    pytest.importorskip(kind)
    tokenizer = {
        "tiktoken": shared_data / "tokenizers" / "gpt2",
        "tokenizers": shared_data / "tokenizers" / "claude2" / "tokenizer.json",
        "sentencepiece": tmp_path / "small.model",
    }[kind]
    if kind == "sentencepiece":
        import sentencepiece

        with (tmp_path / "small.model").open("wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(["one or two"] * 9), model_writer=file, vocab_size=12, minloglevel=5
            )
    tokenize(["one", "two"], tokenizer, tmp_path / "store", special={"eos": 99_998}, vocab_size=99_999)
    (row,) = render_store(tmp_path / "store", window=16, pack="concat")
    texts = [piece.text.strip() for piece in row.pieces if piece.look.segment]
    assert "".join(texts) == "one<99998>two<99998>"
