"""Worked examples, by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headrace.errors import StoreError, TextError
from headrace.text import MLM, DynamicStride, Tokens, Windows, document_mask

Everything = Callable[..., dict[str, Any]]
TEN = [list(range(10))]
ALL = ("input_ids", "labels", "attention_mask", "segment_ids", "position_ids")
E = 99


def test_ten_tokens_padded(everything: Everything) -> None:
    batch = everything(Windows(TEN, 4, min_remainder=2, pad_id=0, outputs=("input_ids", "attention_mask")))
    assert batch["input_ids"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 0]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]]


def test_ten_tokens_with_a_larger_remainder_drop_two() -> None:
    windows = Windows(TEN, 4, min_remainder=3)
    assert len(windows) == 2
    assert windows.summary().tokens_left_out == 2


def test_no_window_of_seen_tokens_only(everything: Everything) -> None:
    batch = everything(Windows(TEN, 4, 2, outputs=("start",)))
    assert batch["start"].tolist() == [0, 2, 4, 6]
    assert len(Windows([list(range(4096))], 1024, 256)) == 13


def test_min_remainder_counts_new_tokens(everything: Everything) -> None:
    eleven = [list(range(11))]
    assert everything(Windows(eleven, 4, 2, outputs=("start",)))["start"].tolist() == [0, 2, 4, 6, 8]
    assert len(Windows(eleven, 4, 2, min_remainder=1)) == 5
    assert len(Windows(eleven, 4, 2, min_remainder=2)) == 4


def test_shift_ends_with_the_text(everything: Everything) -> None:
    batch = everything(Windows([*TEN, [7, 8]], 4, tail="shift", pad_id=0))
    assert batch["input_ids"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [6, 7, 8, 9], [7, 8, 0, 0]]


def test_drop_leaves_short_documents_out_and_counts_them() -> None:
    summary = Windows([*TEN, [7, 8], []], 4, tail="drop").summary()
    assert (summary.windows, summary.tokens_left_out, summary.documents_left_out) == (2, 4, 1)


def test_every_target_once_without_overlap(everything: Everything) -> None:
    labels = everything(Windows(TEN, 4))["labels"]
    assert labels[labels != -100].tolist() == list(range(1, 10))


def test_labels_for_models_that_shift_inside(everything: Everything) -> None:
    with pytest.warns(UserWarning, match="stride=3 scores them"):
        windows = Windows(TEN, 4, labels="same")
    assert everything(windows)["labels"].tolist() == [
        [-100, 1, 2, 3],
        [-100, 5, 6, 7],
        [-100, 9, -100, -100],
    ]
    assert windows.summary().unscored_targets == 2
    overlapping = everything(Windows(TEN, 4, 3, labels="same", overlap_labels=False))["labels"]
    assert sorted(overlapping[overlapping != -100].tolist()) == list(range(1, 10))


def test_three_documents_in_one_row(everything: Everything) -> None:
    documents = [[11, 12, E], [21, 22, 23, E], [31]]
    for pack in ("concat", "best_fit"):
        batch = everything(Windows(documents, 8, pack=pack, eos=False, outputs=ALL))
        assert batch["input_ids"].tolist() == [[11, 12, E, 21, 22, 23, E, 31]]
        assert batch["segment_ids"].tolist() == [[1, 1, 1, 2, 2, 2, 2, 3]]
        assert batch["position_ids"].tolist() == [[0, 1, 2, 0, 1, 2, 3, 0]]
        assert batch["labels"].tolist() == [[12, E, -100, 22, 23, E, -100, -100]]
        assert int(document_mask(batch["segment_ids"]).sum()) == 17
        assert int(document_mask(np.ones_like(batch["segment_ids"])).sum()) == 36


def test_a_change_of_one_document_leaves_the_next_as_it_is(everything: Everything) -> None:
    one, other = (
        everything(Windows([first, [21, 22, 23, E], [31]], 8, pack="concat", eos=False, outputs=ALL))
        for first in ([11, 12, E], [E, 0, 5])
    )
    for name in ALL:
        np.testing.assert_array_equal(one[name][:, 3:], other[name][:, 3:])


def test_end_tokens(everything: Everything) -> None:
    batch = everything(Windows([[1, 2], [3, E], [4]], 7, pack="concat", eos=E, outputs=ALL))
    assert batch["input_ids"].tolist() == [[1, 2, E, 3, E, 4, E]]
    assert batch["segment_ids"].tolist() == [[1, 1, 1, 2, 2, 3, 3]]
    assert batch["labels"].tolist() == [[2, E, -100, E, -100, E, -100]]
    assert everything(Windows([[1, 2]], 4, eos=E, pad_id=0))["input_ids"].tolist() == [[1, 2, E, 0]]
    assert everything(Windows([[1, 2]], 4, pad_id=0))["input_ids"].tolist() == [[1, 2, 0, 0]]


def test_a_token_that_equals_the_padding_stays_live(everything: Everything) -> None:
    batch = everything(Windows([[0, 5, 0]], 5, pad_id=0, outputs=ALL))
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 0, 0]]
    assert batch["segment_ids"].tolist() == [[1, 1, 1, 0, 0]]
    assert batch["labels"].tolist() == [[5, 0, -100, -100, -100]]


def test_an_end_token_in_the_middle_splits_nothing(everything: Everything) -> None:
    batch = everything(Windows([[1, E, 2]], 4, pack="concat", eos=E, outputs=ALL))
    assert batch["segment_ids"].tolist() == [[1, 1, 1, 1]]
    assert batch["labels"].tolist() == [[E, 2, E, -100]]


def test_padding_takes_the_pad_token_then_the_end_token_then_zero() -> None:
    def padding(**special: int) -> int:
        return Windows(Tokens.from_documents([[1]], vocab_size=100, **special), 2).pad_id

    assert padding(eos=7, pad=8) == 8
    assert padding(eos=7) == 7
    assert padding() == 0
    assert Windows([[1]], 2, pad_id=3).pad_id == 3


def test_bool_mask_and_row_outputs(everything: Everything) -> None:
    windows = Windows(TEN, 4, outputs=("attention_mask", "document", "start", "length"), mask_dtype="bool")
    batch = everything(windows)
    assert batch["attention_mask"].dtype == np.bool_
    assert batch["length"].tolist() == [4, 4, 2]
    assert list(batch) == ["attention_mask", "document", "start", "length"]


@pytest.mark.parametrize("dtype", [bool, np.bool_, np.dtype(np.bool_)])
def test_the_mask_s_dtype_is_named_in_any_of_numpys_ways(dtype: Any) -> None:
    named, other = (
        Windows(TEN, 4, outputs=("attention_mask",), mask_dtype=each, pad_id=0) for each in ("bool", dtype)
    )
    assert other.fingerprint == named.fingerprint
    assert next(iter(other.loader(batch_size=3)))["attention_mask"].dtype == np.bool_


def test_columns_travel_with_the_tokens(everything: Everything) -> None:
    tokens = Tokens.from_arrays(
        np.array([1, 2, 3, 4, 5], np.uint8),
        [0, 3, 5],
        columns={
            "types": np.array([0, 1, 1, 2, 2], np.uint8),
            "weights": np.array([0.5, 1, 2, 3, 4]),
            "label_mask": np.array([0, 0, 1, 1, 0], bool),
        },
    )
    batch = everything(
        Windows(tokens, 4, eos=9, pad_id=0, outputs=("input_ids", "labels", "types", "weights"))
    )
    assert batch["input_ids"].tolist() == [[1, 2, 3, 9], [4, 5, 9, 0]]
    assert batch["types"].tolist() == [[0, 1, 1, 1], [2, 2, 2, 0]]
    assert batch["weights"].dtype == np.float32
    assert batch["weights"].tolist() == [[0.5, 1, 2, 2], [3, 4, 4, 0]]
    assert batch["labels"].tolist() == [[-100, 3, 9, -100], [-100, -100, -100, -100]]
    same = everything(Windows(tokens, 4, 3, labels="same"))
    assert same["labels"].tolist() == [[-100, -100, 3, -100], [-100, -100, -100, -100]]


def test_spans_become_relative_to_the_window(everything: Everything) -> None:
    windows = Windows([*TEN, [1, 2], [3, 4]], 4, 2, spans=[[3, 5], [0, 0], [-1, -1]])
    batch = everything(windows)
    assert batch["start_positions"].tolist() == [-1, 1, -1, -1, 0, -1]
    assert batch["end_positions"].tolist() == [-1, 3, -1, -1, 0, -1]
    assert windows.roles["start_positions"] == "targets"


@pytest.mark.parametrize("span", [[-5, 2], [-1, 2], [2, -1], [2, 1], [0, 3], [-2, -2]])
def test_a_span_is_two_tokens_of_its_document_or_none(span: list[int]) -> None:
    with pytest.raises(
        TextError, match="both ends are token numbers in it, the last one included, or both -1"
    ):
        Windows([[1, 2, 3], []], 4, spans=[span, [-1, -1]])


def test_no_documents_have_no_spans(everything: Everything) -> None:
    assert everything(Windows([], 4, spans=[]))["start_positions"].shape == (0,)


def test_several_lengths_are_buckets() -> None:
    windows = Windows(TEN, [4, 8], outputs=("input_ids", "length"), pad_id=0)
    space = windows.at(0, 0)
    assert len(space) == 3 + 2
    keys = np.zeros(2, np.uint64)
    assert space.gather(np.array([1, 2]), keys)["input_ids"].tolist() == [[4, 5, 6, 7], [8, 9, 0, 0]]
    assert space.gather(np.array([3, 4]), keys)["input_ids"].shape == (2, 8)
    mixed = space.gather(np.array([4, 0]), keys)
    assert mixed["input_ids"].tolist() == [[8, 9, 0, 0, 0, 0, 0, 0], [0, 1, 2, 3, 0, 0, 0, 0]]
    assert space.gather(np.array([], np.int64), keys[:0])["input_ids"].shape == (0, 4)
    assert windows.summary().padding == 2 + 6


def test_a_token_that_one_of_several_lengths_holds_is_not_left_out() -> None:
    both = Windows(TEN, [4, 8]).summary()
    assert (both.tokens_left_out, both.tokens_in_rows, both.repetition) == (0, 20, 2.0)
    some = Windows([[1, 2, 3], [1]], [2, 4], tail="drop").summary()
    assert (some.tokens_left_out, some.tokens_in_rows, some.repetition) == (2, 2, 1.0)
    assert some.documents_left_out == 1


def test_plan_compares_choices() -> None:
    plan = Windows(TEN, 4).plan([4, 8], [2, 4, 8])
    assert [(row.window, row.stride, row.samples) for row in plan] == [
        (4, 2, 4),
        (4, 4, 3),
        (8, 2, 2),
        (8, 4, 2),
        (8, 8, 2),
    ]
    assert plan[0].repetition == 1.6
    assert plan[1].padding == 2 / 12
    assert len(str(plan).splitlines()) == 6


def test_summary_adds_up() -> None:
    summary = Windows(TEN, 4, 2, positions="document").summary()
    assert (summary.tokens_in_rows, summary.repetition, summary.max_position) == (16, 1.6, 9)
    assert (summary.live_labels, summary.rows_without_label) == (15, 0)
    assert Windows([[1], [2, 3]], 4).summary().rows_without_label == 1
    assert "tokens left out" in str(summary)


def test_how_a_number_is_written_makes_no_other_windows() -> None:
    tokens = Tokens.from_documents([[1, 2, 3, 4, 5]], vocab_size=9, mask=8)
    whole, other = (
        [
            {"window": number(4), "stride": number(3), "min_remainder": number(2), "offset": number(1)},
            {"window": 4, "eos": number(7), "pad_id": number(8)},
            {"window": 4, "stride": DynamicStride("edges", mean, number(1), maximum)},
            {"window": 4, "objective": MLM(share, mask_id=number(8))},
        ]
        for number, mean, maximum, share in (
            (int, 2, None, 0.25),
            (np.int64, np.float64(2), np.uint8(4), np.float32(0.25)),
        )
    )
    for left, right in zip(whole, other, strict=True):
        assert Windows(tokens, **left).fingerprint == Windows(tokens, **right).fingerprint  # type: ignore[arg-type]


def test_what_masks_is_part_of_the_fingerprint() -> None:
    one = replace(Tokens.from_documents([[1, 2, 3]], vocab_size=9, mask=8), digest="the same tokens")
    found = {
        Windows(tokens, 4, objective=MLM()).fingerprint
        for tokens in (one, one.with_special(mask=7), one.with_special(vocab_size=10))
    }
    assert len(found) == 3
    assert Windows(one, 4).fingerprint == Windows(one.with_special(mask=7), 4).fingerprint
    with pytest.raises(TextError, match=r"'masc' is unknown; .* Did you mean 'mask'"):
        one.with_special(masc=7)


def test_the_same_windows_have_the_same_fingerprint() -> None:
    one = Windows(TEN, 4)
    assert one.fingerprint == Windows(TEN, 4).fingerprint
    assert len({w.fingerprint for w in (one, Windows(TEN, 4, 2), Windows([list(range(11))], 4))}) == 3


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"stride": 0}, r"in \[1, 4\]"),
        ({"stride": 5}, "would skip tokens"),
        ({"window": 0}, r"in \[1, 2147483647\]"),
        ({"window": "1024"}, "window='1024'"),
        ({"stride": "2"}, "stride='2'"),
        ({"window": []}, "at least one length"),
        ({"window": 1 << 31}, r"in \[1, 2147483647\]"),
        ({"stride": 2, "min_remainder": 3}, "at most 2"),
        ({"pack": "concat"}, "eos=False"),
        ({"pack": "concatenate", "eos": 1}, "Did you mean 'concat'"),
        ({"pack": "best_fit", "eos": 1, "stride": 2}, "stride=2"),
        ({"pack": "best_fit", "eos": 1, "offset": 1}, "offset=1"),
        ({"pack": "best_fit", "eos": 1, "offset": "random"}, "offset='random'"),
        ({"pack": "best_fit", "eos": 1, "align": "sentence"}, "align='sentence'"),
        ({"tail": "padd"}, "Did you mean 'pad'"),
        ({"labels": "shifted"}, "'next', 'same'"),
        ({"outputs": ("input_id",)}, "Did you mean 'input_ids'"),
        ({"outputs": "input_ids"}, "a tuple of names"),
        ({"outputs": ("labels", "labels")}, "twice"),
        ({"offset": 4}, r"in \[0, 3\]"),
        ({"align": "sentence"}, "sentences=True"),
        ({"objective": MLM(1.5)}, r"\[0, 1\]"),
        ({"objective": MLM(mask_id=3)}, "vocab_size"),
        ({"objective": MLM(), "outputs": ("input_ids",)}, "must name both"),
        ({"separate_documents": True, "pack": "concat", "eos": 1}, "pack=False"),
        ({"stride": DynamicStride("edge", mean=2)}, "Did you mean 'edges'"),
        ({"stride": DynamicStride("edges", mean=5)}, "between minimum and maximum"),
        ({"stride": DynamicStride("edges", mean=2), "offset": 1}, "offset=0"),
        ({"window": [4, 4]}, "each once"),
        ({"window": [4, 8], "pack": "best_fit", "eos": 1}, "one length"),
        ({"spans": [[0, 1], [0, 1]]}, r"\(1, 2\)"),
        ({"spans": [[0, 10]]}, "10 tokens"),
        ({"spans": [[0, 1]], "pack": "concat", "eos": 1}, "pack=False"),
        ({"eos": -1}, "at least 0"),
        ({"eos": True}, "token id"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_advice(arguments: dict[str, Any], advice: str) -> None:
    with pytest.raises(TextError, match=advice):
        len(Windows(TEN, **{"window": 4, **arguments}))


def test_what_is_looked_at_is_short() -> None:
    assert repr(Windows(TEN, 4, 2)) == "Windows(4 × 4, stride=2, pack=False)"
    assert repr(Windows(TEN, [4, 8])) == "Windows(5 × [4, 8], stride=[4, 8], pack=False)"
    tokens = Tokens.from_documents([[1, 2], [3]], vocab_size=9, eos=8)
    assert repr(tokens) == "Tokens(2 documents, 3 tokens, uint8, vocab_size=9, eos=8)"
    kept = Tokens.from_arrays(np.arange(3), [0, 3], columns={"types": np.zeros(3, np.uint8)})
    assert repr(kept) == "Tokens(1 documents, 3 tokens, int64, columns=['types'])"


def test_sentences_that_are_not_known_are_asked_for_at_once() -> None:
    with pytest.raises(TextError, match="sentences=True"):
        Windows(TEN, 4, align="sentence")


def test_an_end_token_beyond_the_vocabulary_can_be_declared() -> None:
    tokens = Tokens.from_documents([[1, 255], [3]], vocab_size=256)
    with pytest.raises(TextError, match=r"eos=256 .*with_special\(vocab_size=257\)"):
        Windows(tokens, 8, pack="concat", eos=256)
    windows = Windows(tokens.with_special(vocab_size=257), 8, pack="concat", eos=256, pad_id=0)
    assert next(iter(windows.loader(batch_size=1)))["input_ids"].tolist() == [[1, 255, 256, 3, 256, 0, 0, 0]]


def test_a_folder_that_is_not_there_is_to_be_made_by_tokenize() -> None:
    with pytest.raises(StoreError, match=r"no/store: no such folder\. Make a token store with tokenize"):
        Windows("no/store", 4)


def test_ids_outside_the_vocabulary_are_refused() -> None:
    with pytest.raises(TextError, match="id 5 at token 2 is outside the vocabulary of 5 ids"):
        Tokens.from_documents([[1, 2], [5]], vocab_size=5)
    with pytest.raises(TextError, match="negative"):
        Tokens.from_documents([[-1]])
    with pytest.raises(TextError, match="eos=9 is outside"):
        Windows(Tokens.from_documents([[1]], vocab_size=5), 4, eos=9)


def test_a_window_number_beyond_the_last_is_refused() -> None:
    with pytest.raises(TextError, match="3 windows"):
        Windows(TEN, 4).at(0, 0).gather(np.array([3]), np.zeros(1, np.uint64))


@pytest.mark.parametrize(
    ("offsets", "found"),
    [([0, 2], "from 0 to the 3"), ([1, 3], "from 0 to"), ([0, 2, 1, 3], "fall from 2 to 1")],
)
def test_offsets_that_do_not_fit_are_refused(offsets: list[int], found: str) -> None:
    with pytest.raises(TextError, match=found):
        Tokens.from_arrays(np.zeros(3, np.uint8), offsets)
