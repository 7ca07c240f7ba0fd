from __future__ import annotations

import bz2
import collections
import gzip
import lzma
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import SourceError, VocabularyError
from headrace.word2vec import Corpus, read_corpus, read_sentences
from headrace.word2vec.reading import sentence_blocks, split_sentences

TEXT = " the cat\tsat \n\n a dog\nno newline at the end"
SENTENCES = [["the", "cat", "sat"], [], ["a", "dog"], ["no", "newline", "at", "the", "end"]]
PACKERS = {
    ".txt": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def split(text: str) -> list[list[str]]:
    lines = text.split("\n")
    return [line.split() for line in (lines[:-1] if lines[-1] == "" else lines)]


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="ab é \t\n字", max_size=40))
def test_same_words_as_str_split(text: str) -> None:
    assert split_sentences(text.encode()).to_pylist() == split(text)


@pytest.mark.parametrize("suffix", PACKERS)
def test_plain_or_compressed(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"corpus{suffix}"
    path.write_bytes(PACKERS[suffix](TEXT.encode()))
    assert read_sentences(path).to_pylist() == SENTENCES


def test_several_files_stand_in_byte_order_and_end_their_last_line(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("three four\n")
    (tmp_path / "a.txt").write_text("one\ntwo")
    (tmp_path / "none.txt").write_text("")
    expected = [["one"], ["two"], ["three", "four"]]
    assert read_sentences(f"{tmp_path}/*.txt").to_pylist() == expected
    assert read_sentences([tmp_path / "b.txt", tmp_path / "a.txt"]).to_pylist() == expected


@pytest.mark.parametrize("block_bytes", [1, 7, 50, 1 << 20])
def test_blocks_are_of_whole_lines_however_large(tmp_path: Path, block_bytes: int) -> None:
    path = tmp_path / "corpus.txt"
    text = "".join(f"line {number} {'long ' * (number % 9)}\n" for number in range(90)) + TEXT
    path.write_bytes(gzip.compress(text.encode()))
    blocks = [block.to_pylist() for block in sentence_blocks(path, block_bytes=block_bytes)]
    assert [row for block in blocks for row in block] == split(text)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_cut_off_file_is_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"corpus.txt{suffix}"
    path.write_bytes(PACKERS[suffix](np.arange(9000).tobytes())[:-9])
    with pytest.raises(SourceError, match=r"corpus.txt"):
        read_sentences(path)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"absent.txt"):
        read_sentences(tmp_path / "absent.txt")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig"])
def test_other_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "pounds.txt"
    path.write_bytes("£5 each\n£7\n".encode(encoding))
    assert read_sentences(path, encoding).to_pylist() == [["£5", "each"], ["£7"]]


def test_another_encoding_is_never_guessed(tmp_path: Path) -> None:
    path = tmp_path / "pounds.txt"
    path.write_bytes("£5 each\n".encode("latin-1"))
    with pytest.raises(SourceError, match=r"pounds.txt.*not valid utf-8.*encoding='latin-1'"):
        read_sentences(path)


def rows_of(corpus: Corpus) -> list[list[int]]:
    (shard,) = corpus.shards
    return [shard.ids[begin:end].tolist() for begin, end in pairwise(shard.offsets)]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "c", "<unk>", "é"]), max_size=6), max_size=9),
    st.integers(1, 3),
    st.sampled_from([None, 1, 2]),
)
def test_ids_are_by_falling_count_then_value(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[list[str]], min_count: int, max_size: int | None
) -> None:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("".join(" ".join(row) + "\n" for row in sentences), encoding="utf-8")
    corpus, vocabulary = read_corpus(path, min_count, max_size)
    counter = collections.Counter(word for row in sentences for word in row if word != "<unk>")
    ranked = sorted(counter, key=lambda word: (-counter[word], word.encode()))
    words = [word for word in ranked if counter[word] >= min_count][:max_size]
    ids = {word: place + 2 for place, word in enumerate(words)}
    assert rows_of(corpus) == [[ids.get(word, 1) for word in row] for row in sentences]
    total = sum(map(len, sentences))
    known = [counter[word] for word in words]
    assert vocabulary.counts.tolist() == [0, total - sum(known), *known]
    assert vocabulary.to_tokens(list(range(len(words) + 2))) == ["<pad>", "<unk>", *words]


def is_mapped(array: object) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


def test_a_corpus_in_a_scratch_file_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("a b a\nc a b\n" * 500)
    folder = tmp_path / "scratch"
    folder.mkdir()
    held, _ = read_corpus(path)
    mapped, _ = read_corpus(path, scratch=folder)
    assert rows_of(held) == rows_of(mapped)
    assert is_mapped(mapped.shards[0].ids)
    assert not is_mapped(held.shards[0].ids)
    assert held.fingerprint == mapped.fingerprint
    assert (held.shards[0].ids.dtype, mapped.shards[0].ids.dtype) == (np.uint16, np.uint32)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("scratch", [False, True])
def test_an_empty_corpus(tmp_path: Path, scratch: bool) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("")
    corpus, vocabulary = read_corpus(path, scratch=tmp_path if scratch else None)
    assert (corpus.num_tokens, corpus.num_sentences, len(vocabulary)) == (0, 0, 2)


@pytest.mark.parametrize("wrong", [0, "5", 1.5, True, None])
def test_impossible_min_count(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(VocabularyError, match=f"min_count is {wrong!r}; it must be an integer"):
        read_corpus(tmp_path / "corpus.txt", min_count=wrong)


@pytest.mark.parametrize("wrong", [-1, "5", 1.5, True])
def test_impossible_max_size(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(VocabularyError, match=f"max_size is {wrong!r}; it must be an integer"):
        read_corpus(tmp_path / "corpus.txt", max_size=wrong)


@pytest.mark.parametrize("wrong", [None, 5, b"corpus.txt", [None], [5]])
def test_what_is_no_file(wrong: Any) -> None:
    with pytest.raises(SourceError, match=r"found .*, expected a path, a glob or a URL"):
        read_corpus(wrong)


@pytest.mark.parametrize("wrong", [None, 5])
def test_what_is_no_encoding(tmp_path: Path, wrong: Any) -> None:
    (tmp_path / "corpus.txt").write_text("a b")
    with pytest.raises(SourceError, match=f"{wrong} is not an encoding"):
        read_corpus(tmp_path / "corpus.txt", encoding=wrong)


def test_gensim_corpora(shared_data: Path) -> None:
    folder = shared_data / "gensim_corpora"
    background = read_sentences(folder / "lee_background.cor")
    assert len(background) == 300
    assert sum(map(len, background.to_pylist())) == 59_890
    assert "£" in "".join(read_sentences(folder / "lee.cor", "latin-1").flatten().to_pylist())
    assert len(read_sentences(folder / "head500.noblanks.cor.bz2")) == 250
