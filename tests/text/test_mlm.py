"""Masked tokens: drawn by token number, never by place in a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headrace.errors import TextError
from headrace.text import MLM, Tokens, Windows

Everything = Callable[..., dict[str, Any]]
MASK, EOS = 1000, 1001
IDS = (np.arange(40_000) * 7919 % 997).astype(np.uint16)


def tokens(**more: Any) -> Tokens:
    return Tokens.from_arrays(IDS, [0, 30_000, 40_000], vocab_size=1002, mask=MASK, eos=EOS, **more)


Hidden = dict[int, tuple[int, int]]


def hidden(everything: Everything, windows: Windows, seed: int = 0, epoch: int = 0) -> Hidden:
    """Return token number -> (what the model sees, what it must say)."""
    batch = everything(windows, seed, epoch)
    numbers = (np.where(batch["document"] == 0, 0, 30_000) + batch["start"])[:, None] + np.arange(128)
    live = batch["labels"] != -100
    found = zip(numbers[live], batch["input_ids"][live], batch["labels"][live], strict=True)
    return {int(number): (int(seen), int(label)) for number, seen, label in found}


NAMES = ("input_ids", "labels", "document", "start", "attention_mask")


def test_shares_are_those_of_the_paper(everything: Everything) -> None:
    chosen = hidden(everything, Windows(tokens(), 128, objective=MLM(0.15), outputs=NAMES))
    assert abs(len(chosen) / 40_000 - 0.15) < 0.01
    masked = sum(seen == MASK for seen, _ in chosen.values()) / len(chosen)
    same = sum(seen == label for seen, label in chosen.values()) / len(chosen)
    assert abs(masked - 0.8) < 0.02
    assert abs(same - 0.1) < 0.02
    assert all(label == IDS[number] for number, (_, label) in chosen.items())


def test_what_is_not_chosen_stays(everything: Everything) -> None:
    batch = everything(Windows(tokens(), 128, objective=MLM(0.3), outputs=NAMES))
    plain = everything(Windows(tokens(), 128, outputs=NAMES))
    kept = batch["labels"] == -100
    np.testing.assert_array_equal(batch["input_ids"][kept], plain["input_ids"][kept])


def test_two_windows_of_a_token_hide_it_alike(everything: Everything) -> None:
    apart = hidden(everything, Windows(tokens(), 128, objective=MLM(), outputs=NAMES))
    overlapping = hidden(everything, Windows(tokens(), 128, 96, objective=MLM(), outputs=NAMES))
    assert apart == overlapping


def test_every_epoch_and_seed_hides_others(everything: Everything) -> None:
    windows = Windows(tokens(), 128, objective=MLM(), outputs=NAMES)
    first, epoch, seed = (hidden(everything, windows, *at) for at in ((0, 0), (0, 1), (1, 0)))
    assert first == hidden(everything, windows)
    for other in (epoch, seed):
        shared = len(first.keys() & other.keys()) / len(first)
        assert 0.10 < shared < 0.20


def test_added_end_tokens_and_padding_are_never_chosen(everything: Everything) -> None:
    windows = Windows(tokens(), 128, pack="concat", objective=MLM(1.0), outputs=NAMES, pad_id=0)
    batch = everything(windows)
    assert EOS not in batch["labels"]
    assert (batch["labels"][batch["attention_mask"] == 0] == -100).all()
    assert (batch["labels"] != -100).sum() == 40_000


def test_whole_words_are_hidden_whole(everything: Everything) -> None:
    word_starts = (np.arange(40_000) % 3 == 0).astype(np.uint8)
    words = tokens(columns={"word_starts": word_starts})
    objective = MLM(0.15, whole_word=True)
    chosen = hidden(everything, Windows(words, 128, 100, objective=objective, outputs=NAMES))
    starts = {number - number % 3 for number in chosen}
    assert set(chosen) == {start + k for start in starts for k in range(3)} & set(range(40_000))
    assert abs(len(chosen) / 40_000 - 0.15) < 0.01
    with pytest.raises(TextError, match="words=True"):
        Windows(tokens(), 128, objective=objective)


def test_a_small_stride_is_warned_about() -> None:
    with pytest.warns(UserWarning, match="at least 64 evens it out"):
        Windows(tokens(), 128, 63, objective=MLM())
    with pytest.warns(UserWarning, match="at least 3 evens it out"):
        Windows(tokens(), 5, 2, objective=MLM())
    Windows(tokens(), 5, 3, objective=MLM())


def test_random_ids_have_32_bits() -> None:
    Windows(tokens().with_special(vocab_size=1 << 32), 8, objective=MLM())
    with pytest.raises(TextError, match="at most 4294967296 ids"):
        Windows(tokens().with_special(vocab_size=(1 << 32) + 1), 8, objective=MLM())


def test_a_label_mask_and_the_first_window_rule_hold_for_masked_tokens(everything: Everything) -> None:
    masked = tokens(columns={"label_mask": (np.arange(40_000) % 2).astype(np.uint8)})
    chosen = hidden(everything, Windows(masked, 128, objective=MLM(0.5), outputs=NAMES))
    assert all(number % 2 for number in chosen)
    windows = Windows(tokens(), 128, 64, objective=MLM(0.5), outputs=NAMES, overlap_labels=False)
    batch = everything(windows)
    assert (batch["labels"] != -100).sum() == len(hidden(everything, windows))
