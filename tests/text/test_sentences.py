"""Where sentences and words start."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.text.sentences import first_tokens, sentence_starts, word_starts


def sentences(text: str) -> list[str]:
    starts = [*sentence_starts(text).tolist(), len(text)]
    return [text[a:b].strip() for a, b in pairwise(starts)]


@pytest.mark.parametrize(
    "right",
    [
        ["Mr. Li paid $3.50.", "He left."],
        ['"What?" he said.', "“Go!”", "They went... slowly."],
        ["J. R. Smith is here.", "So am I.", "It is late."],
        ["The U.S. is big.", "E.g. this.", "See fig. 3 of vol. 2."],
        ["CHAPTER I", "It was so."],
        ["¿Qué?", "¡Sí!", "Él dijo."],
        ["他说：“你好！”", "然后走了。", "真的吗？！", "是。"],
        ["３．１４是数。", "此开卷第一回也．", "作者自云。"],
        ["OK.", "然后走。", "Then he left.", "好！", "Yes."],
        ["（他走了。）", "「好。」", "她笑了……"],
    ],
)
def test_by_hand(right: list[str]) -> None:
    wide = all(ord(s[-1]) > 127 for s in right)
    separator = "" if wide else " "
    text = separator.join(right) if right[0] != "CHAPTER I" else "\n\n".join(right)
    assert sentences(text) == right


def test_a_line_of_chinese_ends_a_sentence_and_a_line_of_english_does_not() -> None:
    assert sentences("第一回\n　　甄士隐") == ["第一回", "甄士隐"]
    assert sentences("one line\nand Another") == ["one line\nand Another"]


def test_a_closing_mark_belongs_to_its_sentence_in_mixed_text() -> None:
    assert sentences("He said.」Next…」And") == ["He said.」", "Next…」", "And"]
    assert sentences("「Hello!」She left.") == ["「Hello!」", "She left."]
    assert sentences('He said "No."Then') == ['He said "No."Then']


@pytest.mark.parametrize("run", [".", "!?", "…", '."', "\n ", "。", ". (", "．9", "_ ", "a'", "?」"])
def test_a_long_run_takes_no_longer_than_its_length(run: str) -> None:
    for count in (3, 300_000):  # with a step for each pair of signs the second would take hours
        assert sentence_starts("A" + run * count + "b").size >= 1
        assert word_starts("A" + run * count + "b").size >= 1


@given(st.text(alphabet='aB.。!？ \n“”"1', max_size=40))
@settings(max_examples=200, deadline=None)
def test_starts_ascend_and_are_never_white_space(text: str) -> None:
    starts = sentence_starts(text).tolist()
    assert starts == sorted(set(starts))
    assert all(not text[start].isspace() for start in starts)
    assert (len(starts) > 0) == bool(text.strip())


def test_words() -> None:
    text = "don't stop, 你好 x2_y"
    starts = [*word_starts(text).tolist(), len(text)]
    words = [text[a:b].strip() for a, b in pairwise(starts)]
    assert words == ["don't", "stop", ",", "你", "好", "x2_y"]


def test_the_token_that_holds_a_place_is_the_first_that_ends_after_it() -> None:
    ends = np.array([5, 6, 7, 7, 8])
    assert first_tokens(ends, np.array([0, 4, 5, 6, 7, 8])).tolist() == [0, 1, 2, 4]


def test_real_books_have_sentences_of_plausible_length(shared_data: Path) -> None:
    text = (shared_data / "hongloumeng" / "hongloumeng_first80.txt").read_text(encoding="utf-8")
    lengths = np.diff(sentence_starts(text))
    assert 15 < np.median(lengths) < 40
    assert np.quantile(lengths, 0.99) < 200
