"""A corpus: sentences of word ids as flat arrays and offsets, in memory or memory-mapped.

sentences   [the cat sat]  [a dog]
ids          5   9   7      3  8          any unsigned dtype, kept where it lies
offsets      0              3      5
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import ArrayLike, NDArray

from headrace.arrays import list_borders, numbers_of
from headrace.dataset.dataset import Dataset
from headrace.errors import CorpusError, did_you_mean
from headrace.fit.vocabulary import Vocabulary
from headrace.kernels.skipgram import count_tokens

_HASHED_IDS = 1 << 22
COLUMN = "input_ids"
STARTS = "sentence_starts"
"""The columns of a token store: ids, and the places in each document at which sentences begin."""


class TokenStore(Protocol):
    """Documents of token ids over shards: what ``headrace.text`` opens."""

    @property
    def values(self) -> tuple[NDArray[Any], ...]:
        """Unsigned integers, the ids of each shard."""
        ...

    @property
    def offsets(self) -> NDArray[np.int64]:
        """int64 [D + 1], where each document begins, counted over all shards."""
        ...

    @property
    def sentence_starts(self) -> NDArray[np.int64] | None:
        """Tokens, counted over all shards, at which a sentence begins."""
        ...

    @property
    def fingerprint(self) -> str:
        """Digest of the tokens."""
        ...


Sentences: TypeAlias = Iterable[Sequence[str] | Sequence[int]] | pa.Array | pa.ChunkedArray


@dataclass(frozen=True, eq=False)
class Shard:
    """Whole sentences of word ids in one flat array."""

    ids: NDArray[np.unsignedinteger[Any]]
    """Unsigned integers [T]: never copied, so that a memory map stays one."""
    offsets: NDArray[np.int64]
    """int64 [N + 1], ascending places in ``ids``: where sentences begin and end."""

    @property
    def num_tokens(self) -> int:
        """Tokens of all sentences."""
        return int(self.offsets[-1] - self.offsets[0])


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences of word ids over one or several shards; a window never leaves its sentence."""

    shards: tuple[Shard, ...]
    """In order; a token's number counts over all shards, UNKNOWN included."""
    digest: str | None = None
    """What identifies the ids where it is known; else they are read once for it."""

    @classmethod
    def from_arrays(cls, ids: NDArray[np.integer[Any]], offsets: ArrayLike) -> Corpus:
        """Wrap flat ids, in memory or a memory map, without a copy.

        Args:
            ids: Integers [T], word ids by a vocabulary.
            offsets: int64 [N + 1], ascending, within ``[0, T]``: where sentences begin and end.

        Raises:
            CorpusError: The arrays do not fit together.
        """
        return cls((_shard(ids, offsets),))

    @classmethod
    def from_sentences(cls, sentences: Sentences, vocabulary: Vocabulary) -> Corpus:
        """Take sentences: lists of words are encoded, lists of integers are word ids as they are.

        Args:
            sentences: Lists, or an Arrow array of lists such as ``read_sentences`` gives.
            vocabulary: Gives the ids; words that it does not hold become UNKNOWN.

        Raises:
            CorpusError: A sentence is one text and not a list of words, or holds something else.
        """
        lists = sentences if isinstance(sentences, pa.Array | pa.ChunkedArray) else _arrow_lists(sentences)
        if not _is_list(lists.type):
            raise CorpusError(
                f"the corpus is a column of {lists.type}; needed are lists of word ids or of words. "
                "Split each text into words first, with read_sentences for instance."
            )
        chunks = lists.chunks if isinstance(lists, pa.ChunkedArray) else [lists]
        return cls(tuple(_arrow_shard(chunk, vocabulary) for chunk in chunks))

    @classmethod
    def from_dataset(cls, dataset: Dataset, vocabulary: Vocabulary, column: str = COLUMN) -> Corpus:
        """Take a column of a dataset: lists of word ids as they are, lists of words encoded.

        A row is a sentence; where a token store says at which tokens sentences start, they are.

        Raises:
            CorpusError: There is no such column, or it holds neither.
        """
        if column not in dataset.column_names:
            raise CorpusError(
                f"the dataset has no column '{column}'.{did_you_mean(str(column), dataset.column_names)}"
                " Name the column of sentences: SkipGram(dataset, vocabulary, column=...)."
            )
        table = dataset.to_arrow()
        corpus = cls.from_sentences(table.column(column), vocabulary)
        if column != COLUMN or STARTS not in dataset.column_names:
            return replace(corpus, digest=f"{dataset.fingerprint}-{column}")
        starts = table.column(STARTS).chunks
        shards = [
            _cut(shard, *list_borders(chunk)) for shard, chunk in zip(corpus.shards, starts, strict=True)
        ]
        return cls(tuple(shards), f"{dataset.fingerprint}-{STARTS}")

    @classmethod
    def from_tokens(cls, tokens: TokenStore) -> Corpus:
        """See a token store as sentences: borders are its documents and, where it has them, its sentences."""
        starts = tokens.sentence_starts
        borders = tokens.offsets if starts is None else np.union1d(tokens.offsets, starts)
        ends = list(accumulate(len(values) for values in tokens.values))
        shards = []
        for values, end in zip(tokens.values, ends, strict=True):
            first = end - len(values)
            inside = borders[np.searchsorted(borders, first) : np.searchsorted(borders, end, side="right")]
            shards.append(_shard(values, inside - first))
        return cls(tuple(shards), tokens.fingerprint)

    @cached_property
    def num_tokens(self) -> int:
        """Tokens of all sentences, UNKNOWN included."""
        return sum(shard.num_tokens for shard in self.shards)

    @cached_property
    def num_sentences(self) -> int:
        """Sentences, empty ones included."""
        return sum(len(shard.offsets) - 1 for shard in self.shards)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """int64 [N], tokens of each sentence, UNKNOWN included."""
        return np.concatenate([np.diff(shard.offsets) for shard in self.shards])

    @cached_property
    def fingerprint(self) -> str:
        """Hexadecimal digest of ids and borders, the same for any dtype and any shards."""
        if self.digest is not None:
            return self.digest
        ids, lengths = xxhash.xxh3_128(), xxhash.xxh3_128()
        for shard in self.shards:
            for begin in range(0, len(shard.offsets) - 1, _HASHED_IDS):
                lengths.update(np.diff(shard.offsets[begin : begin + _HASHED_IDS + 1]).data)
            for begin in range(int(shard.offsets[0]), int(shard.offsets[-1]), _HASHED_IDS):
                end = min(begin + _HASHED_IDS, int(shard.offsets[-1]))
                ids.update(shard.ids[begin:end].astype(np.uint32, copy=False).data)
        return f"{ids.hexdigest()}{lengths.hexdigest()}"

    def counts(self, size: int) -> NDArray[np.int64]:
        """Count every id in one pass.

        Args:
            size: Number of ids; the vocabulary's length.

        Returns:
            int64 [size].

        Raises:
            CorpusError: An id is not below ``size``.
        """
        counts = np.zeros(size, np.int64)
        first = 0
        for shard in self.shards:
            ids = shard.ids[shard.offsets[0] : shard.offsets[-1]]
            wrong = count_tokens(ids, counts)
            if wrong >= 0:
                raise CorpusError(
                    f"token {first + wrong} of the corpus has id {ids[wrong]}; the vocabulary has ids 0 to "
                    f"{size - 1}. Give the vocabulary that the corpus was encoded with."
                )
            first += len(ids)
        return counts


def as_corpus(source: Any, vocabulary: Vocabulary, column: str = COLUMN) -> Corpus:
    """Return a corpus of whatever holds sentences.

    Args:
        source: A ``Corpus``, a token store, a ``Dataset`` with a column of lists, an Arrow list
            array, or lists of words or word ids.
        vocabulary: Gives the ids of words.
        column: The column of a ``Dataset``.

    Raises:
        CorpusError: The source holds no sentences.
    """
    if isinstance(source, Corpus):
        return source
    if isinstance(source, Dataset):
        return Corpus.from_dataset(source, vocabulary, column)
    is_arrow = isinstance(source, pa.Array | pa.ChunkedArray)
    if not is_arrow and hasattr(source, "values") and hasattr(source, "offsets"):
        return Corpus.from_tokens(source)
    return Corpus.from_sentences(source, vocabulary)


def _arrow_lists(sentences: Iterable[Sequence[str] | Sequence[int]]) -> pa.Array:
    if not isinstance(sentences, Iterable):
        raise CorpusError(
            f"the corpus is a {type(sentences).__name__}; needed are lists of word ids or of words."
        )
    rows = list(sentences)
    for number, row in enumerate(rows):
        if isinstance(row, str):
            raise CorpusError(
                f"sentence {number} is one text, {row[:40]!r}; needed is a list of words (str.split)."
            )
    try:
        lists = pa.array(rows)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise CorpusError(f"sentences are lists of words, or of word ids: {error}") from None
    return lists.cast(pa.list_(pa.string())) if pa.types.is_null(_value_type(lists.type)) else lists


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if _is_list(kind) else kind


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _arrow_shard(array: pa.Array, vocabulary: Vocabulary) -> Shard:
    offsets, values = list_borders(array)
    if not pa.types.is_integer(values.type):
        return _shard(vocabulary.encode(values).astype(id_dtype(len(vocabulary))), offsets)
    if values.null_count:
        raise CorpusError(f"{values.null_count} word ids of the corpus are null; give UNKNOWN's id instead.")
    return _shard(numbers_of(values), offsets)


def _cut(shard: Shard, offsets: NDArray[np.int64], starts: pa.Array) -> Shard:
    """Cut documents into sentences, at places that are counted in each document."""
    begins = np.repeat(shard.offsets[:-1], np.diff(offsets))
    return Shard(shard.ids, np.union1d(shard.offsets, begins + numbers_of(starts)))


def _shard(values: ArrayLike, offsets: ArrayLike) -> Shard:
    ids, borders = _row("ids", values), np.ascontiguousarray(_row("offsets", offsets), np.int64)
    if len(borders) == 0 or borders[0] < 0 or borders[-1] > len(ids) or (borders[1:] < borders[:-1]).any():
        raise CorpusError(
            f"offsets run from {borders[:1]} to {borders[-1:]} for {len(ids)} ids; needed are ascending "
            f"places in [0, {len(ids)}], one more than there are sentences."
        )
    return Shard(_unsigned(ids), borders)


def _row(name: str, values: ArrayLike) -> NDArray[np.integer[Any]]:
    """Return one row of integers as an array, an array and a memory map as they are."""
    try:
        array = np.asanyarray(values)
    except (TypeError, ValueError):
        raise CorpusError(f"{name} are no array: {values!r:.40}; needed is one row of integers.") from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise CorpusError(f"{name} are {array.dtype} of shape {array.shape}; needed is one row of integers.")
    return array if array.dtype.kind in "iu" else array.astype(np.int64)


def _unsigned(ids: NDArray[np.integer[Any]]) -> NDArray[np.unsignedinteger[Any]]:
    """See the ids as unsigned, without a copy; a negative one becomes too large, which counting reports."""
    return np.ascontiguousarray(ids).view(f"u{ids.itemsize}")


def id_dtype(size: int) -> type[np.unsignedinteger[Any]]:
    """Return the dtype of the ids of so many words: uint16 where it holds them, else uint32."""
    return np.uint16 if size <= 1 << 16 else np.uint32
