from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import CorpusError
from headrace.fit.vocabulary import Vocabulary
from headrace.loading.space import EpochSpace, SampleSpace
from headrace.word2vec import CBOW, Corpus, SkipGram, batchify

NAMES = ["centers", "contexts_negatives", "masks", "labels"]
LETTERS = st.lists(st.lists(st.sampled_from("abcdefghij"), max_size=9), min_size=1, max_size=8)


def vocabulary_of(sentences: list[list[str]], **rules: object) -> Vocabulary:
    return Vocabulary.fit([word for sentence in sentences for word in sentence], **rules)  # type: ignore[arg-type]


def whole_epoch(space: SkipGram | CBOW, seed: int = 0, epoch: int = 0) -> dict[str, np.ndarray]:
    samples = space.at(seed, epoch)
    places = np.arange(len(samples))
    return samples.gather(places, places.astype(np.uint64))


def rows_of(batch: dict[str, np.ndarray]) -> list[tuple[int, list[int], list[int]]]:
    """Centre, contexts and negatives of each row, read back from masks and labels."""
    return [
        (
            int(center[0]),
            filled[(mask == 1) & (label == 1)].tolist(),
            filled[(mask == 1) & (label == 0)].tolist(),
        )
        for center, filled, mask, label in zip(*(batch[name] for name in NAMES), strict=True)
    ]


def test_a_space_and_an_epoch_keep_the_protocol() -> None:
    space = SkipGram([["a", "b"]], Vocabulary.fit(["a", "b", "c"]), exhausted="mask")
    assert isinstance(space, SampleSpace)
    assert isinstance(space.at(0, 0), EpochSpace)


@settings(deadline=None, max_examples=60)
@given(LETTERS, st.integers(1, 3), st.integers(0, 3), st.sampled_from(["pair", "center"]), st.booleans())
def test_laws_of_a_row(sentences: list[list[str]], window: int, negatives: int, per: str, cbow: bool) -> None:
    kinds = CBOW if cbow else SkipGram
    vocabulary = vocabulary_of([*sentences, ["filler"]])
    corpus = [*sentences, ["filler"]]
    space = kinds(corpus, vocabulary, window, negatives, per, subsample=None, exhausted="mask")  # type: ignore[arg-type]
    batch = whole_epoch(space)
    assert list(batch) == NAMES
    assert {array.dtype for array in batch.values()} == {np.dtype(np.int64)}
    kept = [vocabulary[sentence] for sentence in corpus if len(sentence) > 1]
    homes = [(sentence, place) for sentence in kept for place in range(len(sentence))]
    rows = rows_of(batch)
    assert len(rows) == len(homes)
    for (center, contexts, noise), (sentence, place) in zip(rows, homes, strict=True):
        assert center == sentence[place]
        assert contexts in [
            [*sentence[max(0, place - size) : place], *sentence[place + 1 : place + size + 1]]
            for size in range(1, window + 1)
        ]
        assert len(noise) in {0, negatives * (len(contexts) if per == "pair" else 1)}
        assert not set(noise) & {0, 1, *contexts, *([center] if cbow else [])}
    expected = batchify(rows)
    for name, array in zip(NAMES, expected, strict=True):
        width = array.shape[1]
        np.testing.assert_array_equal(batch[name][:, :width], array)
        assert not batch[name][:, width:].any()


@settings(deadline=None, max_examples=40)
@given(LETTERS, st.integers(0, 3), st.integers(1, 7))
def test_bits_do_not_depend_on_the_batch(sentences: list[list[str]], epoch: int, size: int) -> None:
    space = SkipGram(
        [*sentences, list("klmnopqrs")],
        vocabulary_of([*sentences, list("klmnopqrs")]),
        window=2,
        subsample=0.05,
        width="max",
        exhausted="mask",
    )
    samples = space.at(3, epoch)
    places = np.arange(len(samples))[::-1].copy()
    keys = np.arange(len(samples), dtype=np.uint64)
    whole = samples.gather(places, keys)
    assert whole["masks"].shape[1] == 2 * 2 * (1 + 5)
    again = space.at(3, epoch)
    for begin in range(0, len(samples), size):
        part = again.gather(places[begin : begin + size], keys[begin : begin + size])
        for name in NAMES:
            np.testing.assert_array_equal(part[name], whole[name][begin : begin + size])


def test_no_rows_have_the_names_and_dtypes_of_some() -> None:
    samples = SkipGram([["a", "b"]], Vocabulary.fit(["a", "b"]), exhausted="mask").at(0, 0)
    batch = samples.gather(np.empty(0, np.int64), np.empty(0, np.uint64))
    assert [(name, len(array), array.dtype) for name, array in batch.items()] == [
        (name, 0, np.dtype(np.int64)) for name in NAMES
    ]


@pytest.mark.parametrize(
    ("kind", "negatives_per", "columns"),
    [(SkipGram, "pair", 2 * 3 * (1 + 4)), (SkipGram, "center", 2 * 3 + 4), (CBOW, "center", 2 * 3 + 4)],
)
def test_fixed_width(kind: type[SkipGram], negatives_per: str, columns: int) -> None:
    words = [*"abcdefghijkl"]
    space = kind(
        [words],
        Vocabulary.fit(words),
        3,
        4,
        negatives_per,
        subsample=None,
        width="max",  # type: ignore[arg-type]
    )
    assert whole_epoch(space)["masks"].shape == (12, columns)


def test_defaults_of_negatives_per() -> None:
    assert SkipGram([["a", "b"]], Vocabulary.fit(["a", "b"])).settings.negatives_per == "pair"
    assert CBOW([["a", "b"]], Vocabulary.fit(["a", "b"])).settings.negatives_per == "center"


def test_unknown_is_removed_before_windows_are_cut() -> None:
    vocabulary = Vocabulary.fit(["a", "a", "b", "b", "rare", "c", "c"], min_count=2)
    space = SkipGram([["a", "rare", "rare", "b"], ["rare", "c", "rare"]], vocabulary, 1, 0, subsample=None)
    a, b = vocabulary["a"], vocabulary["b"]
    assert rows_of(whole_epoch(space)) == [(a, [b], []), (b, [a], [])]
    assert space.counts.tolist() == [0, 0, 1, 1, 1]


def test_the_corpus_own_unk_is_no_word() -> None:
    vocabulary = Vocabulary.fit(["a", "b", "<unk>", "<unk>", "<unk>"])
    assert vocabulary["<unk>"] == 2  # the most frequent value, as text files write it
    space = SkipGram([["a", "<unk>", "b"]], vocabulary, 1, 0, subsample=None)
    a, b = vocabulary["a"], vocabulary["b"]
    assert rows_of(whole_epoch(space)) == [(a, [b], []), (b, [a], [])]


@pytest.mark.parametrize(
    "rules", [{"missing": True}, {"unseen": "hash", "unknown_buckets": 3}], ids=["missing", "hash"]
)
def test_missing_and_hash_buckets_are_no_words(rules: dict[str, object]) -> None:
    vocabulary = Vocabulary.fit(["a", "b"], **rules)  # type: ignore[arg-type]
    ids = np.arange(len(vocabulary), dtype=np.uint8)
    space = SkipGram(Corpus.from_arrays(ids, [0, len(ids)]), vocabulary, 1, 0, subsample=None)
    a, b = vocabulary["a"], vocabulary["b"]
    assert rows_of(whole_epoch(space)) == [(a, [b], []), (b, [a], [])]


def test_noise_counts_are_those_of_the_corpus_after_removal() -> None:
    vocabulary = Vocabulary.fit(["a"] * 5 + ["b"] * 5 + ["c"] * 5)
    space = SkipGram([["a"] * 16 + ["b", "z", "z"]], vocabulary, subsample=0.01)
    assert space.counts.tolist() == [0, 0, 16, 1, 0]
    assert space.noise.probabilities == pytest.approx([0, 0, 8 / 9, 1 / 9, 0], abs=1e-9)
    a = np.sqrt(0.01 / (16 / 17))
    b = np.sqrt(0.01 / (1 / 17))
    assert space.keep_probabilities == pytest.approx([0, 0, a, b, 0])


def test_all_words_are_contexts_an_error_names_the_centre() -> None:
    space = SkipGram([["a", "b"]], Vocabulary.fit(["a", "b"]), subsample=None)
    samples = space.at(0, 0)
    with pytest.raises(
        CorpusError, match=r"centre 'a' at epoch position 7: .*\['b'\].*exhausted='mask'"
    ) as caught:
        CBOW([["a", "b"]], space.vocabulary, subsample=None).at(0, 0).gather(
            np.array([0]), np.array([7], np.uint64)
        )
    assert "smaller window" in str(caught.value)
    assert rows_of(samples.gather(np.array([0]), np.array([0], np.uint64)))[0][2] == [2] * 5  # the centre


def test_all_words_are_contexts_masked_on_request() -> None:
    vocabulary = Vocabulary.fit(["a", "b", "c"])
    space = CBOW([["a", "b"], ["a", "b", "c"]], vocabulary, 1, 4, subsample=None, exhausted="mask")
    rows = rows_of(whole_epoch(space))
    a, b, c = vocabulary[["a", "b", "c"]]
    assert rows == [
        (a, [b], [c] * 4),
        (b, [a], [c] * 4),
        (a, [b], [c] * 4),
        (b, [a, c], []),
        (c, [b], [a] * 4),
    ]


def test_one_rare_word_is_found_however_rare() -> None:
    counts = [10**6] * 4 + [1]
    ids = np.repeat(np.arange(2, 7, dtype=np.uint8), counts)
    borders = np.append(np.arange(0, len(ids), 1000), [len(ids)])
    sentence = np.array([2, 3, 4, 5], np.uint8)
    corpus = Corpus.from_arrays(np.concatenate([ids, sentence]), [*borders, len(ids) + 4])
    vocabulary = Vocabulary.fit(["a"] * 5 + ["b"] * 4 + ["c"] * 3 + ["d"] * 2 + ["e"])
    samples = CBOW(corpus, vocabulary, 4, 5, subsample=None).at(0, 0)
    last = np.arange(len(samples) - 4, len(samples))
    keys = np.arange(64, dtype=np.uint64)
    rows = rows_of(samples.gather(np.tile(last, 16), keys))
    whole = [noise for _, contexts, noise in rows if len(contexts) == 3]
    assert whole == [[6] * 5] * len(whole)
    assert len(whole) > 20


def test_no_word_of_the_vocabulary_in_the_corpus() -> None:
    with pytest.raises(CorpusError, match="no word of the vocabulary occurs"):
        SkipGram([["x", "y"]], Vocabulary.fit(["a"]))


def test_sentences_of_one_token_give_an_epoch_of_nothing() -> None:
    space = SkipGram([["a"], ["b"], []], Vocabulary.fit(["a", "b"]), subsample=None)
    assert len(space.at(0, 0)) == 0
    assert space.lengths(0, 0).tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("window", 0, "at least 1"),
        ("window", 1.5, "an integer"),
        ("window", True, "an integer"),
        ("negatives", -1, "at least 0"),
        ("negatives_per", "word", "'pair' or 'center'"),
        ("width", "fixed", "'batch' or 'max'"),
        ("exhausted", "loop", "'error' or 'mask'"),
        ("subsample", 0, "above 0, or None"),
        ("subsample", "1e-4", "above 0, or None"),
        ("subsample", True, "above 0, or None"),
        ("power", float("nan"), "finite"),
        ("power", "3/4", "finite"),
        ("power", None, "finite"),
    ],
)
def test_impossible_settings(name: str, value: object, message: str) -> None:
    with pytest.raises(CorpusError, match=f"{name} is .*{message}"):
        SkipGram([["a", "b"]], Vocabulary.fit(["a", "b"]), **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 5, ["a", "b"], {"a": 2}, "ab"])
def test_what_is_no_vocabulary(wrong: object) -> None:
    with pytest.raises(CorpusError, match=r"vocabulary: found a .*, expected a Vocabulary"):
        SkipGram([["a", "b"]], wrong)  # type: ignore[arg-type]


def test_fingerprint_is_of_everything_that_changes_a_sample() -> None:
    vocabulary = Vocabulary.fit([*"abcdefgh"])
    corpus = [[*"abcd"], [*"efgh"]]
    base = SkipGram(corpus, vocabulary)
    assert SkipGram(corpus, vocabulary, scratch="somewhere").fingerprint == base.fingerprint
    others = [
        SkipGram(corpus[::-1], vocabulary),
        SkipGram(corpus, Vocabulary.fit([*"abcdefghi"])),
        SkipGram(corpus, vocabulary, window=4),
        SkipGram(corpus, vocabulary, negatives=4),
        SkipGram(corpus, vocabulary, negatives_per="center"),
        SkipGram(corpus, vocabulary, subsample=None),
        SkipGram(corpus, vocabulary, power=1.0),
        SkipGram(corpus, vocabulary, width="max"),
        SkipGram(corpus, vocabulary, exhausted="mask"),
        CBOW(corpus, vocabulary, negatives_per="pair"),
    ]
    assert len({space.fingerprint for space in [base, *others]}) == len(others) + 1


def test_an_epoch_in_a_scratch_file_is_the_same(tmp_path: Path) -> None:
    corpus = [[*"abcdefgh"] * 3] * 50
    vocabulary = vocabulary_of(corpus)
    held, mapped = (SkipGram(corpus, vocabulary, subsample=0.05, scratch=place) for place in (None, tmp_path))
    np.testing.assert_array_equal(held.at(1, 2).kept, mapped.at(1, 2).kept)
    assert isinstance(mapped.at(1, 2).kept, np.memmap)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("size", "dtype"), [(32_766, np.uint16), (32_767, np.uint32)])
def test_width_of_kept_tokens_follows_the_vocabulary(size: int, dtype: type) -> None:
    vocabulary = Vocabulary.fit(np.arange(size))  # and PAD and UNKNOWN
    ids = np.arange(2, size + 2, dtype=np.uint16)
    space = SkipGram(Corpus.from_arrays(ids, [0, len(ids)]), vocabulary, subsample=None)
    samples = space.at(0, 0)
    assert samples.kept.dtype == dtype
    np.testing.assert_array_equal(samples.words, ids)
    assert samples.offsets.tolist() == [0, size]
    top = samples.gather(np.array([size - 1]), np.zeros(1, np.uint64))
    assert top["centers"].tolist() == [[size + 1]]


def test_an_epoch_that_keeps_more_than_is_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = [[*"abcdefgh"] * 3] * 50
    space = SkipGram(corpus, vocabulary_of(corpus), subsample=0.05)
    expected = space.at(1, 2).kept
    monkeypatch.setattr("headrace.word2vec.space._likely_room", lambda counts, keep: 10)
    np.testing.assert_array_equal(space.at(1, 2).kept, expected)


def test_epochs_and_seeds_draw_anew() -> None:
    corpus = [[*"abcdefghijklmnop"] * 4] * 20
    space = SkipGram(corpus, vocabulary_of(corpus), subsample=0.02)
    kept = [space.at(*when).words.tolist() for when in [(0, 0), (0, 1), (1, 0), (0, 0)]]
    assert kept[0] == kept[3]
    assert len({tuple(row) for row in kept}) == 3
