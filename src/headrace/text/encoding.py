"""From what a tokenizer gave to rows of a store: checked ids, parallel columns, sentence starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.errors import TextError
from headrace.text.documents import Document
from headrace.text.given_arrays import plain_array
from headrace.text.masking import WORD_STARTS
from headrace.text.sentences import first_tokens, sentence_starts, word_starts
from headrace.text.settings import check_integer
from headrace.text.special import MOST_IDS, Special
from headrace.text.tokenizer import Encoded
from headrace.text.writer import Integers, Rows


class Assigned(NamedTuple):
    """A document, its split, and the hash of its content."""

    document: Document
    split: str
    content: int


@dataclass(frozen=True)
class Wanted:
    """What is stored beside the ids, and which documents are."""

    sentences: bool
    words: bool
    min_length: int

    def __post_init__(self) -> None:
        check_integer("min_length", self.min_length, 0)
        object.__setattr__(self, "min_length", int(self.min_length))
        for name in ("sentences", "words"):
            if not isinstance(getattr(self, name), bool):
                raise TextError(f"{name}={getattr(self, name)!r}: expected True or False.")

    @property
    def needs_ends(self) -> bool:
        """Whether the tokenizer must say where each token ends in the text."""
        return self.sentences or self.words


class SameColumns:
    """What holds over all documents: columns of the names and dtypes of the first that has tokens.

    Args:
        stored: Names and dtypes in shards that are there already; None: there are none with tokens.
        made: Names of columns that are made here, where the tokenizer does not give them.
    """

    def __init__(self, stored: Mapping[str, np.dtype[Any]] | None = None, made: Sequence[str] = ()) -> None:
        self._stored, self._made = stored, made
        self._first: dict[str, np.dtype[Any]] | None = None

    def check(self, document: Document, ids: NDArray[Any], columns: Mapping[str, NDArray[Any]]) -> None:
        """Hold the next document's columns against those of the first.

        Raises:
            TextError: It has others.
        """
        if ids.size == 0:
            return
        own = {name: column.dtype for name, column in columns.items()}
        if own == self._first:
            return
        before = self._first if self._first is not None else self._as_stored(own)
        if before is not None:
            raise TextError(
                f"{document.where}: the tokenizer gave the columns {_listed(own)}, and before "
                f"{_listed(before)}. Give the same columns, each of one dtype, for every text."
            )
        self._first = own

    def _as_stored(self, own: Mapping[str, np.dtype[Any]]) -> Mapping[str, np.dtype[Any]] | None:
        """Return the columns that are stored already where these would be stored as others; None if not."""
        if self._stored is None:
            return None
        plain = {name: plain_array(np.empty(0, dtype), name).dtype for name, dtype in own.items()}
        given = {name: dtype for name, dtype in self._stored.items() if name in own or name not in self._made}
        return given if plain != given else None


def _listed(columns: Mapping[str, np.dtype[Any]]) -> str:
    return ", ".join(f"{name} ({dtype})" for name, dtype in sorted(columns.items())) or "none"


def check_encoded(
    documents: Sequence[Assigned],
    encoded: Encoded,
    same_columns: SameColumns,
    special: Special,
    dtype: np.dtype[Any],
) -> None:
    """Check what became of the next documents, one after the other.

    Raises:
        TextError: An id is outside the vocabulary, or the dtype does not hold it; or columns are not those
            of the documents before. The first document of which one is true is named.
    """
    is_fitting = _all_fit(encoded.ids, special, dtype)
    if is_fitting and not encoded.columns:
        return
    columns = encoded.columns or [{}] * len(documents)
    for one, ids, own in zip(documents, encoded.ids, columns, strict=True):
        same_columns.check(one.document, ids, own)
        if not is_fitting:
            _check(one.document, ids, special, dtype)


def rows_of(
    documents: Sequence[Assigned], encoded: Encoded, wanted: Wanted, dtype: np.dtype[Any]
) -> dict[str, Rows]:
    """Return a batch's rows by split; ids were checked."""
    splits = dict.fromkeys(one.split for one in documents)
    return {
        split: _rows(
            documents, encoded, [n for n, one in enumerate(documents) if one.split == split], wanted, dtype
        )
        for split in splits
    }


def _all_fit(parts: Sequence[NDArray[Any]], special: Special, dtype: np.dtype[Any]) -> bool:
    """Whether all ids of a batch are in the vocabulary and fit in the dtype; False where it is not clear."""
    if len({part.dtype for part in parts}) != 1:
        return False
    ids = np.concatenate(parts)
    limit = min(np.iinfo(dtype).max + 1, special.vocab_size or MOST_IDS)
    return ids.size == 0 or (int(ids.max()) < limit and int(ids.min()) >= 0)


def _check(document: Document, ids: NDArray[Any], special: Special, dtype: np.dtype[Any]) -> None:
    if ids.size == 0:
        return
    limit = special.vocab_size or min(np.iinfo(dtype).max + 1, MOST_IDS)
    largest, smallest = int(ids.max()), int(ids.min())
    if smallest < 0 or largest >= limit:
        wrong = smallest if smallest < 0 else largest
        raise TextError(
            f"{document.where}: id {wrong} at token {int(np.flatnonzero(ids == wrong)[0])} is outside the "
            f"vocabulary of {limit} ids. Declare its true size with vocab_size=, or mend the tokenizer; ids "
            "are never wrapped."
        )
    if largest > np.iinfo(dtype).max:
        raise TextError(
            f"{document.where}: id {largest} does not fit in dtype={dtype.name!r}. Leave dtype out; the "
            "smallest that holds the vocabulary is taken."
        )


def _rows(
    documents: Sequence[Assigned], encoded: Encoded, own: Sequence[int], wanted: Wanted, dtype: np.dtype[Any]
) -> Rows:
    """Return the rows of the documents ``own`` of a batch, without those that are too short."""
    kept = [place for place, n in enumerate(own) if encoded.ids[n].size >= wanted.min_length]
    stored = [own[place] for place in kept]
    parallel = _parallel([encoded.columns[n] for n in stored if encoded.ids[n].size and encoded.columns])
    if wanted.words and WORD_STARTS not in parallel:
        parallel[WORD_STARTS] = _joined(
            [_marks(documents[n].document.text, encoded, n, word_starts) for n in stored], np.dtype(np.uint8)
        )
    return Rows(
        lengths=np.array([encoded.ids[n].size for n in stored], np.int64),
        values=_joined([encoded.ids[n] for n in stored], dtype),
        parallel=parallel,
        sentences=_sentences(documents, encoded, stored) if wanted.sentences else None,
        hashes=np.array([documents[n].content for n in own], np.uint64),
        kept=np.array(kept, np.int64),
    )


def _parallel(columns: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Join the columns of documents with tokens, which all have the same."""
    names = columns[0] if columns else ()
    return {name: plain_array(np.concatenate([one[name] for one in columns]), name) for name in names}


def empty_rows(wanted: Wanted, dtype: np.dtype[Any]) -> Rows:
    """Return no rows."""
    return _rows([], Encoded([]), [], wanted, dtype)


def _joined(parts: Sequence[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.concatenate(parts, dtype=dtype, casting="unsafe") if parts else np.empty(0, dtype)


def _sentences(
    documents: Sequence[Assigned], encoded: Encoded, stored: Sequence[int]
) -> tuple[Integers, Integers]:
    starts = [_tokens_at(documents[n].document.text, encoded, n, sentence_starts) for n in stored]
    return np.array([part.size for part in starts], np.int64), _joined(starts, np.dtype(np.int64))


def _tokens_at(text: str, encoded: Encoded, number: int, starts_of: Callable[[str], Integers]) -> Integers:
    """Return the tokens that hold the places which ``starts_of`` finds in a text."""
    assert encoded.ends is not None
    return first_tokens(encoded.ends[number], starts_of(text))


def _marks(
    text: str, encoded: Encoded, number: int, starts_of: Callable[[str], Integers]
) -> NDArray[np.uint8]:
    """Return uint8 [L], 1 on these tokens."""
    marks = np.zeros(encoded.ids[number].size, np.uint8)
    marks[_tokens_at(text, encoded, number, starts_of)] = 1
    return marks
