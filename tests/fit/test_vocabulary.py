"""Vocabularies against plain Python's Counter, and the counts case by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import StoreError, VocabularyError
from headrace.fit.saved import index_path
from headrace.fit.vocabulary import Vocabulary

LETTERS = list("AEBCAABCDABAB")


def test_counts_case() -> None:
    vocabulary = Vocabulary.fit(LETTERS, min_count=2)
    assert vocabulary.token_freqs == [("A", 5), ("B", 4), ("C", 2)]
    assert vocabulary[["A", "B", "C"]] == [2, 3, 4]
    assert vocabulary.counts.tolist() == [0, 2, 5, 4, 2]
    assert vocabulary.counts.sum() == 13
    assert vocabulary.encode(LETTERS).tolist() == [2, 1, 3, 4, 2, 2, 3, 4, 1, 2, 3, 2, 3]


def test_counts_case_after_a_reload(tmp_path: Path) -> None:
    Vocabulary.fit(LETTERS, min_count=2).save(tmp_path / "letters.arrow")
    vocabulary = Vocabulary.load(tmp_path / "letters.arrow")
    assert vocabulary.token_freqs == [("A", 5), ("B", 4), ("C", 2)]
    assert vocabulary.encode(LETTERS).tolist() == [2, 1, 3, 4, 2, 2, 3, 4, 1, 2, 3, 2, 3]
    assert vocabulary.counts.sum() == 13


def test_saved_table_holds_value_id_and_count_in_one_row(tmp_path: Path) -> None:
    Vocabulary.fit([*LETTERS, None], min_count=2, missing=True).save(tmp_path / "letters.arrow")
    table = pa.ipc.open_file(tmp_path / "letters.arrow").read_all()
    assert table.to_pylist() == [
        {"value": None, "id": 0, "count": 0, "kind": "pad"},
        {"value": None, "id": 1, "count": 2, "kind": "unknown"},
        {"value": None, "id": 2, "count": 1, "kind": "missing"},
        {"value": "A", "id": 3, "count": 5, "kind": "value"},
        {"value": "B", "id": 4, "count": 4, "kind": "value"},
        {"value": "C", "id": 5, "count": 2, "kind": "value"},
    ]


def test_the_order_of_rows_does_not_change_ids() -> None:
    ties = ["b", "a", "é", "Z", "10", "9", "b", "a"]
    expected = ["a", "b", "10", "9", "Z", "é"]  # counts 2, 2, then bytes 0x31 < 0x39 < 0x5A < 0xC3
    for turned in range(len(ties)):
        shuffled = ties[turned:] + ties[:turned][::-1]
        assert [value for value, _ in Vocabulary.fit(shuffled).token_freqs] == expected


values = st.lists(
    st.one_of(st.integers(0, 30).map(str), st.text("abé\0 ", max_size=3), st.none()), max_size=80
)


@given(
    values=values, min_count=st.integers(1, 3), max_size=st.integers(0, 8) | st.none(), missing=st.booleans()
)
@settings(deadline=None, max_examples=150)
def test_fit_is_what_a_counter_gives(
    values: list[str | None], min_count: int, max_size: int | None, missing: bool
) -> None:
    vocabulary = Vocabulary.fit(values, min_count=min_count, max_size=max_size, missing=missing)
    counted = Counter(value for value in values if value is not None)
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0].encode()))
    kept = [item for item in ranked if item[1] >= min_count][:max_size]
    assert vocabulary.token_freqs == kept
    assert vocabulary.counts.sum() == len(values)
    first = 3 if missing else 2
    ids = {value: first + place for place, (value, _) in enumerate(kept)}
    expected = [(2 if missing else 1) if value is None else ids.get(value, 1) for value in values]
    assert vocabulary.encode(values).tolist() == expected


@given(values=values)
@settings(deadline=None, max_examples=60)
def test_decode_undoes_encode(values: list[str | None]) -> None:
    present = [value for value in values if value is not None]
    vocabulary = Vocabulary.fit(present)
    assert vocabulary.decode(vocabulary.encode(present)) == present


def test_values_outside_share_buckets_by_their_xxh64() -> None:
    vocabulary = Vocabulary.fit(["a", "a", "b", "c"], min_count=2, unseen="hash", unknown_buckets=4)
    assert len(vocabulary) == 7  # PAD, UNKNOWN, a, four buckets
    assert vocabulary.encode(["a", "b", "zebra"]).tolist() == [
        2,
        3 + xxhash.xxh64_intdigest(b"b") % 4,
        3 + xxhash.xxh64_intdigest(b"zebra") % 4,
    ]
    assert vocabulary.counts.sum() == 4
    assert vocabulary.counts[1] == 0


def test_unseen_error_names_the_value_and_the_nearest() -> None:
    vocabulary = Vocabulary.fit(["click", "buy"], unseen="error")
    with pytest.raises(VocabularyError, match=r"'clik' is not in the vocabulary.*Did you mean 'click'\?"):
        vocabulary.encode(["click", "clik"])


def test_decode_refuses_an_id_outside_the_table() -> None:
    with pytest.raises(VocabularyError, match="id 9 at index 1: the vocabulary has ids 0 to 2"):
        Vocabulary.fit(["a"]).decode([0, 9])
    for wrong in ([1.5], ["a"], "a", None, [True], np.array([1.0])):
        with pytest.raises(TypeError, match="ids are"):
            Vocabulary.fit(["a"]).decode(wrong)


def test_numbers_and_texts_are_one_id() -> None:
    vocabulary = Vocabulary.fit([1001, "1001", 1001.0, "007", 7, 2**64 - 1, True, 1.5])
    assert vocabulary["1001"] == vocabulary[1001]
    assert vocabulary.token_freqs[0] == ("1001", 3)
    assert vocabulary["007"] != vocabulary[7]
    assert "18446744073709551615" in vocabulary
    assert "true" in vocabulary
    assert vocabulary[1.5] == vocabulary["1.5"]


def test_reserved_tokens_have_names() -> None:
    vocabulary = Vocabulary.fit(["a"], missing=True, unseen="hash", unknown_buckets=1)
    assert vocabulary.to_tokens([0, 1, 2, 3, 4]) == ["<pad>", "<unk>", "<missing>", "a", "<bucket 0>"]
    assert vocabulary.to_tokens(0) == "<pad>"
    assert (vocabulary.pad, vocabulary.unk, vocabulary.missing) == (0, 1, 2)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"min_count": 0}, "min_count is 0"),
        ({"max_size": -1}, "max_size is -1"),
        ({"unseen": "hash"}, "needs unknown_buckets"),
        ({"unknown_buckets": 3}, "needs unknown_buckets"),
        ({"unseen": "hash", "unknown_buckets": "3"}, "unknown_buckets is '3'; it must be an integer"),
        ({"unseen": "drop"}, "unseen is 'drop'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings_: dict[str, object], message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.fit(["a"], **settings_)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("abc", "are one text, 'abc'; give a list of texts"),
        (b"abc", "are one text, b'abc'; give a list of texts"),
        ({"a": 3}, "are a dict; give a list of texts"),  # counts, which would count for nothing
        (3, "are a int; give a list of texts"),
        (np.array(3), "are a int; give a list of texts"),
        ([b"a", b"\xff"], r"index 1: b'\\xff' is not valid UTF-8"),
        (pa.array([b"\xff"]), r"index 0: b'\\xff' is not valid UTF-8"),
        (pa.array([1], pa.timestamp("s")), "index 0: .* is a datetime; an id is a text"),
        (pa.array([{"a": 1}]), "index 0: .* is a dict; an id is a text"),
    ],
    ids=["text", "bytes", "dict", "int", "array", "bad bytes", "bad binary", "times", "structs"],
)
def test_what_is_no_list_of_texts(values: Any, message: str) -> None:
    vocabulary = Vocabulary.fit(["a"])
    for use in (Vocabulary.fit, vocabulary.encode):
        with pytest.raises(VocabularyError, match=message):
            use(values)


@pytest.mark.parametrize(
    "values",
    [
        [[1, 2], [3, 4]],
        np.array([[1, 2], [3, 4]]),
        np.array([[1, 2], [3, 4]], np.float32),
        pa.array([[1, 2], None, [3, 4]]),
        pa.array([[1, 2], [3, 4]], pa.list_(pa.uint8(), 2)),
        pa.array([[1, 2], [3, 4]], pa.list_view(pa.int64())),
        pa.array([["1", "2"], ["3", "4"]], pa.large_list_view(pa.string())),
    ],
    ids=lambda values: str(getattr(values, "type", type(values).__name__)),
)
def test_one_level_of_lists_is_flattened(values: Any) -> None:
    assert Vocabulary.fit([4, 3, 2, 1]).encode(values).tolist() == [2, 3, 4, 5]


def test_a_float_has_the_shortest_text_of_its_width() -> None:
    """As a float32 column of Parquet has it in a build."""
    vocabulary = Vocabulary.fit(["0.1"])
    for values in (
        [0.1],
        np.array([0.1]),
        np.array([0.1], np.float32),
        [np.float16(0.1)],
        pa.array([0.1], pa.float32()),
        pa.array([0.1]),
    ):
        assert vocabulary.encode(values).tolist() == [2]


@given(place=st.integers(0, 10_000), bit=st.integers(0, 7), which=st.booleans())
@settings(deadline=None, max_examples=150)
def test_a_flipped_bit_never_crashes_a_look_up(
    tmp_path_factory: pytest.TempPathFactory, place: int, bit: int, which: bool
) -> None:
    path = tmp_path_factory.mktemp("vocabulary") / "v.arrow"
    Vocabulary.fit([*map(str, range(20)), "some", "text", "é"]).save(path)
    damaged = index_path(path) if which else path
    content = bytearray(damaged.read_bytes())
    content[place % len(content)] ^= 1 << bit
    damaged.write_bytes(content)
    try:
        vocabulary = Vocabulary.load(path)
        vocabulary.encode(["3", "some", "nothing", 5])
    except StoreError:
        return
    assert len(np.asarray(vocabulary.counts)) == len(vocabulary)


def test_a_column_whose_name_is_no_utf8_is_a_damaged_file(tmp_path: Path) -> None:
    Vocabulary.fit(["a"]).save(tmp_path / "v.arrow")
    content = (tmp_path / "v.arrow").read_bytes()
    assert b"value" in content
    (tmp_path / "v.arrow").write_bytes(content.replace(b"value", b"val\xf6e"))
    with pytest.raises(StoreError, match="not a readable Arrow file"):
        Vocabulary.load(tmp_path / "v.arrow")
