"""Penn Treebank, as *Dive into Deep Learning* loads it: its loop runs on these batches unchanged."""

from __future__ import annotations

import contextlib
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace.errors import CorpusError
from headrace.fit.vocabulary import Vocabulary
from headrace.loading.loader import Loader
from headrace.word2vec.reading import read_corpus
from headrace.word2vec.space import CenterSpace, SkipGram

SHA1 = "319d85e578af0cdc590547f26231e4e31cdf1e42"
"""Of ``ptb.zip``, as the book publishes it."""
TRAIN = "ptb.train.txt"
SUFFIXES = (".gz", ".zst", ".bz2", ".xz")
MINIMUM_COUNT = 10
NAMES = ("centers", "contexts_negatives", "masks", "labels")


def load_data_ptb(
    batch_size: int,
    max_window_size: int,
    num_noise_words: int,
    root: Path | str | None = None,
    *,
    seed: int = 0,
) -> tuple[Batches, Vocabulary]:
    """Return minibatches of Penn Treebank and its vocabulary, in place of ``d2l.load_data_ptb``.

    Args:
        batch_size: Centres in a batch; the last, shorter one is kept.
        max_window_size: Largest window; each centre draws its own.
        num_noise_words: Negatives for each pair of centre and context.
        root: The folder that holds ``ptb.train.txt``, plain or compressed, or ``ptb.zip``; ``None``
            looks in ``$HEADRACE_DATA/ptb``, ``./data/ptb`` and ``../data/ptb``.
        seed: Seed of every draw.

    Returns:
        The batches, tuples of int64 tensors ``(centers, contexts_negatives, masks, labels)``, and
        the vocabulary: 6,720 ids with PAD 0 and UNKNOWN 1.

    Raises:
        CorpusError: The corpus is in none of the folders.
    """
    with train_text(find_ptb(root)) as path:
        corpus, vocabulary = read_corpus(path, MINIMUM_COUNT)
    space = SkipGram(corpus, vocabulary, max_window_size, num_noise_words)
    return Batches(space, batch_size, seed), vocabulary


def find_ptb(root: Path | str | None = None) -> Path:
    """Return the file that holds PTB's train split.

    Raises:
        CorpusError: It is in none of the folders.
    """
    if root is not None and not isinstance(root, str | Path):
        raise CorpusError(f"root={root!r}: expected the path of the folder that holds {TRAIN}.")
    folders = [Path(root)] if root is not None else _default_folders()
    names = [TRAIN, *(TRAIN + suffix for suffix in SUFFIXES), "ptb.zip"]
    for folder in folders:
        for name in names:
            if (folder / name).is_file():
                return folder / name
    raise CorpusError(
        f"Penn Treebank is not in {' or '.join(map(str, folders))}. Put {TRAIN} there, plain or compressed, "
        f"or ptb.zip (SHA-1 {SHA1}, as Dive into Deep Learning names it), or give its folder: root=...."
    )


@contextlib.contextmanager
def train_text(path: Path) -> Iterator[Path]:
    """Yield a text file of PTB's train split: the file itself, or what the book's ``ptb.zip`` holds.

    Raises:
        CorpusError: The archive is damaged, or holds no train split.
    """
    if path.suffix != ".zip":
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                yield Path(archive.extract(f"ptb/{TRAIN}", folder))
        except (KeyError, zipfile.BadZipFile, zlib.error) as error:
            raise CorpusError(f"{path}: cannot be read ({error}). Its SHA-1 should be {SHA1}.") from None


def _default_folders() -> list[Path]:
    data = os.environ.get("HEADRACE_DATA")
    own = [Path(data) / "ptb"] if data else []
    return [*own, Path("data/ptb"), Path("../data/ptb")]


class Batches:
    """Batches as tuples of torch tensors; each ``iter()`` is the next epoch.

    ``len`` is the number of batches of the epoch that is under way, else of the next.
    """

    def __init__(self, space: CenterSpace, batch_size: int, seed: int = 0) -> None:
        self.space = space
        self._batch_size = batch_size
        self._seed = seed
        self._under_way: Loader | None = None
        self._epoch = 0
        self._next: Loader | None = None

    def _loader(self, epoch: int) -> Loader:
        return Loader(
            self.space,
            batch_size=self._batch_size,
            shuffle="global",
            seed=self._seed,
            epoch=epoch,
            rank=0,
            world_size=1,
            output="torch",
        )

    def __len__(self) -> int:
        return len(self._following() if self._under_way is None else self._under_way)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        loader = self._under_way = self._following()
        self._epoch, self._next = self._epoch + 1, None
        return self._batches(loader)

    def _following(self) -> Loader:
        """Return the loader of the next epoch, whose tokens are drawn when they are first asked for."""
        if self._next is None:
            self._next = self._loader(self._epoch)
        return self._next

    def _batches(self, loader: Loader) -> Iterator[tuple[Any, ...]]:
        try:
            for batch in loader:
                yield tuple(batch[name] for name in NAMES)
        finally:
            if self._under_way is loader:
                self._under_way = None
