from __future__ import annotations

import gzip
import shutil
import zipfile
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest

from headrace.errors import CorpusError
from headrace.word2vec import load_data_ptb
from headrace.word2vec.ptb import SHA1, find_ptb, train_text

torch = pytest.importorskip("torch")

# frequent enough to be words (10 times), and many enough that no context can exhaust them
LINES = [f" a{k % 23} b{k % 19} c{k % 17} d{k % 13} <unk> rare{k} " for k in range(300)]
TEXT = "\n".join(LINES) + "\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ptb.train.txt").write_text(TEXT)
    return tmp_path


def pairs_of(batches: object) -> list[list[list[int]]]:
    return [[tensor.tolist() for tensor in batch] for batch in batches]  # type: ignore[attr-defined]


def test_batches_are_tuples_of_tensors_in_the_book_s_order(root: Path) -> None:
    batches, vocabulary = load_data_ptb(16, 2, 3, root)
    assert len(vocabulary) == 2 + 23 + 19 + 17 + 13
    assert vocabulary["<unk>"] == vocabulary["rare5"] == vocabulary.unk == 1
    expected = len(batches)
    rows = list(batches)
    assert len(rows) == expected
    for centers, contexts_negatives, masks, labels in rows:
        assert {tensor.dtype for tensor in (centers, contexts_negatives, masks, labels)} == {torch.int64}
        assert centers.shape == (len(centers), 1)
        assert contexts_negatives.shape == masks.shape == labels.shape == (len(centers), masks.shape[1])
        assert ((masks == 1) == (contexts_negatives >= 2)).all()
        assert (masks.sum(1) == 4 * labels.sum(1)).all()
    assert [len(row[0]) for row in rows[:-1]] == [16] * (len(rows) - 1)
    assert 1 <= len(rows[-1][0]) <= 16


def test_each_iter_is_the_next_epoch_also_after_a_break(root: Path) -> None:
    batches, _ = load_data_ptb(16, 2, 3, root)
    first, second = pairs_of(batches), pairs_of(batches)
    assert first != second
    again, _ = load_data_ptb(16, 2, 3, root)
    for begun, _ in zip(again, range(2), strict=False):
        assert begun[0].tolist() in [row[0] for row in first]
    assert pairs_of(again) == second
    other, _ = load_data_ptb(16, 2, 3, root, seed=1)
    assert pairs_of(other) != first


def test_two_passes_at_once_are_two_epochs(root: Path) -> None:
    batches, _ = load_data_ptb(16, 2, 3, root)
    first, second = pairs_of(batches), pairs_of(batches)
    again, _ = load_data_ptb(16, 2, 3, root)
    both = list(zip_longest(again, again))
    assert pairs_of(batch for batch, _ in both if batch is not None) == first
    assert pairs_of(batch for _, batch in both if batch is not None) == second


def test_len_is_of_the_epoch_under_way_else_of_the_next(root: Path) -> None:
    batches, _ = load_data_ptb(8, 2, 3, root)
    for _ in range(4):
        before = len(batches)
        seen = [len(batches) for _ in batches]
        assert seen == [before] * len(seen)
        assert len(seen) == before


@pytest.mark.parametrize("name", ["ptb.train.txt", "ptb.train.txt.gz", "ptb.zip"])
def test_plain_compressed_or_the_book_s_archive(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "ptb"
    folder.mkdir()
    if name.endswith(".zip"):
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr("ptb/ptb.train.txt", TEXT)
    else:
        content = TEXT.encode()
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    monkeypatch.setenv("HEADRACE_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert find_ptb() == folder / name
    with train_text(find_ptb()) as path:
        assert path.exists()
    _, vocabulary = load_data_ptb(64, 2, 3)
    assert len(vocabulary) == 74


@pytest.mark.parametrize("place", ["data/ptb", "../data/ptb"])
def test_where_it_is_looked_for(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "project"
    work.mkdir()
    folder = work / place
    folder.mkdir(parents=True)
    (folder / "ptb.train.txt").write_text(TEXT)
    monkeypatch.delenv("HEADRACE_DATA", raising=False)
    monkeypatch.chdir(work)
    assert find_ptb().resolve() == (folder / "ptb.train.txt").resolve()


def test_missing_is_an_error_with_the_name_and_the_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADRACE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    for root in (None, tmp_path):
        with pytest.raises(CorpusError, match=r"ptb.train.txt") as caught:
            load_data_ptb(512, 5, 5, root)
        assert SHA1 in str(caught.value)
    for wrong in (5, b"ptb", ["ptb"]):
        with pytest.raises(CorpusError, match=r"root=.*expected the path of the folder"):
            load_data_ptb(512, 5, 5, wrong)  # type: ignore[arg-type]


def test_damaged_archive_is_an_error_with_the_hash(tmp_path: Path) -> None:
    (tmp_path / "ptb.zip").write_bytes(b"not an archive")
    with pytest.raises(CorpusError, match=SHA1):
        load_data_ptb(512, 5, 5, tmp_path)


def test_the_corpus_of_the_book(shared_data: Path) -> None:
    batches, vocabulary = load_data_ptb(512, 5, 5, shared_data / "ptb")
    assert len(vocabulary) == 6720  # 6,718 words, UNKNOWN and PAD
    space = batches.space
    words = space.at(0, 0).words
    assert space.corpus.num_sentences == 42_068
    assert space.corpus.num_tokens == 887_521
    assert vocabulary.counts[vocabulary["the"]] == 50_770
    assert (words == vocabulary["the"]).sum() < 50_770 / 20
    assert (words == vocabulary["join"]).sum() == vocabulary.counts[vocabulary["join"]] == 45
    assert vocabulary.counts.sum() == 887_521
    assert vocabulary.counts[1] >= 45_020


def test_every_form_of_the_book_s_corpus_is_the_same(shared_data: Path, tmp_path: Path) -> None:
    shutil.copy(shared_data / "ptb" / "ptb.zip", tmp_path)
    (first, _), (second, _) = (load_data_ptb(4096, 5, 5, root) for root in (shared_data / "ptb", tmp_path))
    for ours, theirs in zip(first, second, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
        break
