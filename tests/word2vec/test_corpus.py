from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.arrays import numbers_of
from headrace.dataset.dataset import Dataset
from headrace.errors import CorpusError
from headrace.fit.vocabulary import Vocabulary
from headrace.text import Tokens, tokenize
from headrace.word2vec import Corpus
from headrace.word2vec.corpus import as_corpus

SENTENCES = [["a", "b", "a"], [], ["c", "a"], ["z"]]
VOCABULARY = Vocabulary.fit(["a", "a", "a", "b", "b", "c"])
IDS = [[2, 3, 2], [], [4, 2], [1]]


def ids_of(corpus: Corpus) -> list[list[int]]:
    return [
        shard.ids[begin:end].tolist()
        for shard in corpus.shards
        for begin, end in zip(shard.offsets[:-1], shard.offsets[1:], strict=True)
    ]


@pytest.mark.parametrize(
    "source",
    [
        SENTENCES,
        iter(SENTENCES),
        [tuple(row) for row in SENTENCES],
        IDS,
        [np.array(row, np.int32) for row in IDS],
        pa.array(SENTENCES),
        pa.array(SENTENCES, pa.large_list(pa.large_string())),
        pa.chunked_array([SENTENCES[:1], SENTENCES[1:]]),
        pa.array(IDS, pa.list_(pa.uint16())),
        pa.array([[9], *IDS], pa.list_(pa.int64()))[1:],
        pa.chunked_array([IDS[:2], IDS[2:]], pa.list_(pa.uint32())),
        Dataset.from_arrow(pa.table({"input_ids": IDS})),
        Corpus.from_arrays(np.array([2, 3, 2, 4, 2, 1], np.uint8), [0, 3, 3, 5, 6]),
    ],
)
def test_every_form_of_a_corpus_is_the_same(source: object) -> None:
    corpus = as_corpus(source, VOCABULARY)
    assert ids_of(corpus) == IDS
    assert (corpus.num_tokens, corpus.num_sentences) == (6, 4)
    assert corpus.lengths.tolist() == [3, 0, 2, 1]
    assert corpus.counts(5).tolist() == [0, 1, 3, 1, 1]


def test_a_selection_of_a_dataset() -> None:
    dataset = Dataset.from_arrow(pa.table({"input_ids": IDS})).select([3, 0])
    assert ids_of(as_corpus(dataset, VOCABULARY)) == [[1], [2, 3, 2]]


def test_a_token_store_on_disk_is_cut_at_sentences(tmp_path: Path) -> None:
    texts = ["The cat sat. Dogs ran!", "Was it so? It was. Nobody saw them."]
    vocabulary = Vocabulary.fit(re.findall(r"\w+", " ".join(texts)))

    def words(text: str) -> dict[str, list[object]]:
        matches = list(re.finditer(r"\w+", text))
        return {
            "input_ids": vocabulary[[match.group() for match in matches]],
            "offsets": [match.span() for match in matches],
        }

    store = tokenize(texts, words, tmp_path / "store", sentences=True, vocab_size=len(vocabulary))
    expected = [["The", "cat", "sat"], ["Dogs", "ran"], ["Was", "it", "so"], ["It", "was"]]
    expected.append(["Nobody", "saw", "them"])
    for source in (store, Tokens.open(tmp_path / "store")):
        corpus = as_corpus(source, vocabulary)
        assert ids_of(corpus) == vocabulary[expected]
    on_disk = numbers_of(store.to_arrow().column("input_ids").chunk(0).values)
    assert np.shares_memory(on_disk, as_corpus(store, vocabulary).shards[0].ids)


def test_another_column_and_its_nearest_name() -> None:
    table = Dataset.from_arrow(pa.table({"words": SENTENCES}))
    assert ids_of(as_corpus(table, VOCABULARY, column="words")) == IDS
    with pytest.raises(CorpusError, match=r"no column 'wrods'. Did you mean 'words'"):
        as_corpus(table, VOCABULARY, column="wrods")


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6), st.data())
def test_token_store_is_cut_at_documents_and_sentences(
    documents: list[list[int]], data: st.DataObject
) -> None:
    flat = [token for document in documents for token in document]
    offsets = np.cumsum([0, *map(len, documents)])
    cut = data.draw(st.integers(0, len(documents)))
    starts = sorted(data.draw(st.sets(st.integers(0, max(len(flat) - 1, 0))))) if flat else []
    values = np.array(flat, np.uint16)
    store = SimpleNamespace(
        values=(values[: offsets[cut]], values[offsets[cut] :]),
        offsets=offsets,
        sentence_starts=np.array(starts, np.int64),
        fingerprint="f00d",
    )
    corpus = Corpus.from_tokens(store)
    borders = sorted({*offsets.tolist(), *starts})
    expected = [flat[begin:end] for begin, end in pairwise(borders)]
    assert [row for row in ids_of(corpus) if row] == expected
    assert corpus.fingerprint == "f00d"


def test_memory_map_stays_a_memory_map(tmp_path: Path) -> None:
    np.arange(6, dtype=np.uint32).tofile(tmp_path / "ids")
    ids = np.memmap(tmp_path / "ids", np.uint32, mode="r")
    corpus = Corpus.from_arrays(ids, [0, 6])
    assert np.shares_memory(corpus.shards[0].ids, ids)
    assert corpus.counts(6).tolist() == [1] * 6


def test_fingerprint_is_of_ids_and_borders() -> None:
    ids = np.array([2, 3, 2, 4], np.uint16)
    halves = [Corpus.from_arrays(ids[:2], [0, 2]), Corpus.from_arrays(ids[2:], [0, 2])]
    same = [
        Corpus.from_arrays(ids, [0, 2, 4]),
        Corpus.from_arrays(np.array([7, 2, 3, 2, 4], np.int64), [1, 3, 5]),
        Corpus((*halves[0].shards, *halves[1].shards)),
    ]
    assert len({corpus.fingerprint for corpus in same}) == 1
    others = [Corpus.from_arrays(ids, [0, 1, 4]), Corpus.from_arrays(ids[::-1].copy(), [0, 2, 4])]
    assert len({corpus.fingerprint for corpus in [same[0], *others]}) == 3


@pytest.mark.parametrize(
    ("ids", "offsets", "message"),
    [
        (np.array([1.5]), [0, 1], "row of integers"),
        (np.array([[1]]), [0, 1], "row of integers"),
        (np.array([1, 2]), [0, 3], "offsets run from"),
        (np.array([1, 2]), [-1, 2], "offsets run from"),
        (np.array([1, 2]), [0, 2, 1], "offsets run from"),
        (np.array([1, 2]), [], "offsets run from"),
        (np.array([True]), [0, 1], "ids are bool"),
        (None, [0, 1], "ids are object"),
        ([[1], [1, 2]], [0, 2], "ids are no array"),
        (np.array([1, 2]), [0.5, 2], "offsets are float64"),
        (np.array([1, 2]), None, "offsets are object"),
        (np.array([1, 2]), ["a"], "offsets are <U1"),
    ],
)
def test_arrays_that_do_not_fit(ids: np.ndarray, offsets: list[int], message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        Corpus.from_arrays(ids, offsets)


def test_lists_are_arrays_too() -> None:
    assert Corpus.from_arrays([1, 2, 1], [0, 1, 3]).counts(3).tolist() == [0, 2, 1]  # type: ignore[arg-type]


@pytest.mark.parametrize("nothing", [[], [[]], [[], []]])
def test_nothing_is_a_corpus_too(nothing: list[list[str]]) -> None:
    assert as_corpus(nothing, VOCABULARY).num_tokens == 0


@pytest.mark.parametrize("wrong", [5, -1, 2**40])
def test_id_outside_the_vocabulary_is_named_with_its_token_number(wrong: int) -> None:
    corpus = Corpus(
        (
            *Corpus.from_arrays(np.array([1, 2]), [0, 2]).shards,
            *Corpus.from_arrays(np.array([3, wrong]), [0, 2]).shards,
        )
    )
    with pytest.raises(CorpusError, match="token 3 of the corpus has id"):
        corpus.counts(5)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (["one text"], "sentence 0 is one text"),
        ([["a"], [1]], "lists of words, or of word ids"),
        ([1, 2], "column of int64"),
        (None, "the corpus is a NoneType"),
        (5, "the corpus is a int"),
        ([[2**70]], "lists of words, or of word ids"),
        (pa.array(["one text"]), "column of string"),
        (pa.array([[1, None]]), "1 word ids of the corpus are null"),
    ],
)
def test_what_is_no_corpus(source: object, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        as_corpus(source, VOCABULARY)
