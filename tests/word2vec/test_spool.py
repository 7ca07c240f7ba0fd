"""Scratch folders that are full, closed or missing: an error with words, never a killed process."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from headrace.errors import CorpusError
from headrace.fit.vocabulary import Vocabulary
from headrace.word2vec import SkipGram, read_corpus
from headrace.word2vec.spool import Spool, take_room

WORDS = [*"abcdefghijkl"]
SPACE = {"corpus": [WORDS * 40] * 50, "vocabulary": Vocabulary.fit(WORDS), "subsample": None}


def refuse(*arguments: Any) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_met_before_an_epoch_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = SkipGram(**SPACE, scratch=tmp_path)
    monkeypatch.setattr("os.posix_fallocate", refuse)
    with pytest.raises(CorpusError, match=r"scratch='.*': No space left on device\. .*free some space"):
        space.at(0, 0)
    assert list(tmp_path.iterdir()) == []


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    """A limit on the size of files stands for a disk that is full: the system really refuses."""
    (tmp_path / "corpus.txt").write_text(" ".join(WORDS * 400))
    space = SkipGram(**SPACE, scratch=tmp_path / "scratch")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, hard))
    try:
        with pytest.raises(CorpusError, match="File too large"):
            space.at(0, 0)
        with pytest.raises(CorpusError, match="File too large"):
            read_corpus(tmp_path / "corpus.txt", scratch=tmp_path / "scratch")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(CorpusError, match="must be a folder that can be written"):
            take_room(10, np.uint16, place)
        with pytest.raises(CorpusError, match="must be a folder that can be written"):
            Spool(np.uint32, place)


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "scratch"
    for place in (None, str(folder)):
        with Spool(np.uint32, place) as spool, Spool(np.int64, place) as nothing:
            spool.append(np.arange(3, dtype=np.uint32))
            spool.append(np.arange(2, dtype=np.int64))
            whole, none = spool.array(), nothing.array()
        assert (whole.tolist(), whole.dtype) == ([0, 1, 2, 0, 1], np.uint32)
        assert (none.tolist(), none.dtype) == ([], np.int64)
    assert take_room(7, np.uint16, folder).shape == (7,)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("wrong", [5, b"scratch", ["scratch"]])
def test_what_is_no_folder(tmp_path: Path, wrong: Any) -> None:
    (tmp_path / "corpus.txt").write_text("a b")
    with pytest.raises(CorpusError, match=r"scratch=.*expected the path of a folder"):
        read_corpus(tmp_path / "corpus.txt", scratch=wrong)
    with pytest.raises(CorpusError, match=r"scratch=.*expected the path of a folder"):
        SkipGram(**SPACE, scratch=wrong).at(0, 0)
