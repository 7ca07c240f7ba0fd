"""Vocabularies: id text <-> integer id, a pure function of what was counted.

id 0              PAD
id 1              UNKNOWN
id 2              MISSING, where the vocabulary reserves it
next ids          values by falling count, ties by value in byte order
last ids          buckets for values that are not in the vocabulary (``unseen="hash"``)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace import disk
from headrace.errors import StoreError, VocabularyError, did_you_mean
from headrace.fit import saved
from headrace.fit.index import ABSENT, NULL, Index, buckets_of
from headrace.fit.ranking import rank, taken
from headrace.fit.rules import PAD, UNKNOWN, Rules, Unseen
from headrace.kernels import lookup
from headrace.order.integers import integers
from headrace.parse.interner import Interner
from headrace.parse.texts import to_id_texts
from headrace.scratch import IN_MEMORY, Scratch

_AT_ONCE = 1 << 20
_NAMES = {"pad": "<pad>", "unknown": "<unk>", "missing": "<missing>"}


class Vocabulary:
    """An immutable table of values, their ids and counts, with a hash index over the values.

    Make one with ``fit``, ``from_counts`` or ``load``. ``len`` is the largest id
    plus one: the rows of an embedding table.
    """

    def __init__(self, values: pa.Array, counts: NDArray[np.int64], index: Index, rules: Rules) -> None:
        self._values = values
        self._counts = counts
        self._index = index
        self.rules = rules

    # -- making ---------------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        values: Iterable[Any] | pa.Array,
        *,
        min_count: int = 1,
        max_size: int | None = None,
        unseen: Unseen = "unknown",
        unknown_buckets: int = 0,
        missing: bool = False,
    ) -> Vocabulary:
        """Count ``values`` and keep those that are frequent enough.

        Args:
            values: Texts, integers or ``None`` (missing), as any iterable or an Arrow array;
                nested lists are flattened once.
            min_count: Values counted fewer times become UNKNOWN; default 1.
            max_size: At most so many values; default no limit.
            unseen: ``"unknown"``, ``"hash"`` or ``"error"``.
            unknown_buckets: Ids at the end of the table for ``unseen="hash"``.
            missing: Reserve an id for missing values.

        Raises:
            VocabularyError: The settings do not fit together.
        """
        rules = Rules(
            min_count, max_size, unseen, unknown_buckets, missing_id=UNKNOWN + 1 if missing else None
        )
        rules.check()
        interner = Interner()
        codes = interner.intern(to_id_texts(values))
        present = codes[codes != lookup.NULL_CODE]
        counts = np.bincount(present, minlength=len(interner)).astype(np.int64)
        missing_count = len(codes) - len(present)
        return cls.from_counts(
            interner.values(), counts, rules, reserved_counts={rules.null_id: missing_count}
        )

    @classmethod
    def from_counts(
        cls,
        values: pa.Array,
        counts: NDArray[np.int64],
        rules: Rules,
        reserved_counts: Mapping[int, int],
        scratch: Scratch = IN_MEMORY,
    ) -> Vocabulary:
        """Rank counted values.

        Args:
            values: large_string [n], each value once.
            counts: int64 [n], how often each was seen.
            rules: What is kept, and under which ids.
            reserved_counts: How many missing values were seen, by the reserved id that they have.
            scratch: Where large arrays lie.
        """
        kept = rank(values, counts, rules, scratch)
        chosen = taken(values, kept, scratch)
        by_id = scratch.zeros(rules.first_id + len(kept) + rules.unknown_buckets, np.int64)
        np.take(counts, kept, out=by_id[rules.first_id : rules.first_id + len(kept)])
        for reserved_id, count in reserved_counts.items():
            by_id[reserved_id] += count
        _count_unseen(by_id, values, counts, kept, rules)
        return cls(chosen, by_id, Index.build(chosen, scratch), rules)

    # -- what it holds --------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def values(self) -> pa.Array:
        """The values by falling count, large_string; the first has id ``rules.first_id``."""
        return self._values

    @property
    def counts(self) -> NDArray[np.int64]:
        """int64 [len(self)]: how often each id was seen in train; the sum is all values seen."""
        return self._counts

    @property
    def pad(self) -> int:
        """The id of padding, 0."""
        return PAD

    @property
    def unk(self) -> int:
        """The id of values that the vocabulary does not hold."""
        return self.rules.unknown_id

    @property
    def missing(self) -> int | None:
        """The id of missing values, or ``None`` where none is reserved."""
        return self.rules.missing_id

    @property
    def token_freqs(self) -> list[tuple[str, int]]:
        """``(value, count)`` by falling count."""
        first = self.rules.first_id
        counts = self._counts[first : first + len(self._values)]
        return list(zip(self._values.to_pylist(), counts.tolist(), strict=True))

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str | int) and int(self._index.find(to_id_texts([token]))[0]) >= 0

    # -- encoding and decoding ------------------------------------------------------------------

    def encode(self, values: Iterable[Any] | pa.Array) -> NDArray[np.int64]:
        """Return the id of each value, int64 [n].

        Args:
            values: Texts, integers or ``None``, as any iterable or an Arrow array.

        Raises:
            VocabularyError: A value is not in the vocabulary and ``unseen="error"``.
        """
        texts = to_id_texts(values)
        ids = self.find(texts)
        unseen = np.flatnonzero(ids < 0)
        if len(unseen):
            self._refuse(str(texts[unseen[0]]))
        return ids

    def find(self, texts: pa.Array) -> NDArray[np.int64]:
        """Return the id of each id text, int64 [n]; with ``unseen="error"`` -1 where there is none.

        Args:
            texts: string, large_string, int64 or uint64.
        """
        codes = self._index.find(texts)
        ids = codes + self.rules.first_id
        if (codes < 0).any():
            ids[codes == NULL] = self.rules.null_id
            absent = codes == ABSENT
            ids[absent] = self._unseen_ids(texts, absent)
        return ids

    def decode(self, ids: Sequence[int] | NDArray[np.integer[Any]]) -> list[str]:
        """Return the text of each id; ``<pad>``, ``<unk>``, ``<missing>``, ``<bucket 3>`` for reserved ones.

        Raises:
            VocabularyError: An id is not in ``[0, len(self))``.
            TypeError: They are no integers.
        """
        array = integers("id", ids)
        wrong = np.flatnonzero((array < 0) | (array >= len(self)))
        if len(wrong):
            raise VocabularyError(
                f"id {array[wrong[0]]} at index {wrong[0]}: the vocabulary has ids 0 to {len(self) - 1}."
            )
        return [self._text(int(token_id)) for token_id in array]

    @overload
    def __getitem__(self, tokens: str | int) -> int: ...
    @overload
    def __getitem__(self, tokens: list[Any] | tuple[Any, ...]) -> list[Any]: ...
    def __getitem__(self, tokens: Any) -> Any:
        """Return the id of a token, or the ids of a (nested) list of tokens."""
        if isinstance(tokens, list | tuple):
            if any(isinstance(token, list | tuple) for token in tokens):
                return [self[token] for token in tokens]
            return self.encode(tokens).tolist() if tokens else []
        return int(self.encode([tokens])[0])

    def to_tokens(self, ids: Any) -> Any:
        """Return the token of one id, or the tokens of a sequence of ids."""
        if isinstance(ids, int | np.integer):
            return self.decode([int(ids)])[0]
        return self.decode(ids)

    def _text(self, token_id: int) -> str:
        place = token_id - self.rules.first_id
        if 0 <= place < len(self._values):
            return str(self._values[place])
        if place >= 0:
            return f"<bucket {place - len(self._values)}>"
        return _NAMES[self.rules.kind_of(token_id, len(self._values))]

    def _unseen_ids(self, texts: pa.Array, absent: NDArray[np.bool_]) -> NDArray[np.int64] | int:
        """Return the ids of the texts that are absent, or the one id of all of them."""
        if self.rules.unseen == "hash":
            unseen = texts.take(pa.array(np.flatnonzero(absent)))
            return self.rules.first_id + len(self._values) + buckets_of(unseen, self.rules.unknown_buckets)
        return self.rules.unknown_id if self.rules.unseen == "unknown" else -1

    def _refuse(self, text: str) -> None:
        raise VocabularyError(
            f"{text!r} is not in the vocabulary, and unseen='error'."
            f"{did_you_mean(text, self._values.slice(0, 10_000).to_pylist())}"
            " Fit it on data that holds the value, or choose unseen='unknown'."
        )

    # -- on disk --------------------------------------------------------------------------------

    def save(self, path: Path | str, scratch: Scratch = IN_MEMORY) -> None:
        """Write the table to ``path`` and its index beside it; see ``headrace.fit.saved``.

        Raises:
            StoreError: ``path`` is none of a file.
            OSError: The disk is full or the folder cannot be written.
        """
        file = disk.as_path("path", path, StoreError)
        saved.write(file, saved.Tables(self._values, self._counts, self._index, self.rules), scratch)

    @classmethod
    def load(cls, path: Path | str) -> Vocabulary:
        """Memory-map a saved vocabulary: no parse, and processes share its pages.

        Raises:
            StoreError: The files are missing or damaged.
        """
        tables = saved.read(disk.as_path("path", path, StoreError))
        return cls(tables.values, tables.counts, tables.index, tables.rules)


def _count_unseen(
    by_id: NDArray[np.int64],
    values: pa.Array,
    counts: NDArray[np.int64],
    kept: NDArray[np.int64],
    rules: Rules,
) -> None:
    """Add the counts of the values that were left out to UNKNOWN or to their buckets."""
    if not rules.unknown_buckets:
        by_id[rules.unknown_id] += counts.sum() - by_id[rules.first_id :].sum()
        return
    rest = np.ones(len(counts), bool)
    rest[kept] = False
    places = np.flatnonzero(rest)
    first = len(by_id) - rules.unknown_buckets
    for start in range(0, len(places), _AT_ONCE):
        some = places[start : start + _AT_ONCE]
        np.add.at(by_id, first + buckets_of(values.take(pa.array(some)), rules.unknown_buckets), counts[some])
