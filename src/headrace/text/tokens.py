"""Documents of token ids over one or several shards, as flat arrays and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import ArrayLike, NDArray

from headrace.errors import TextError, did_you_mean
from headrace.text.given_arrays import as_array, described, plain_array, whole_numbers
from headrace.text.special import Special, check_special
from headrace.text.token_checks import (
    check_column,
    check_ids,
    check_offsets,
    check_sentences,
    check_values,
)

Values = tuple[NDArray[Any], ...]
Sentences = tuple[tuple[NDArray[np.int64], NDArray[Any]], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Tokens:
    """Documents of token ids: where each begins is in ``offsets``, never found by looking for an id.

        documents    [5 6 7]  [8]  []  [9 9]
        values        5 6 7    8        9 9     one array, or one a shard
        offsets     0        3   4   4      6

    Read-only, and kept where it is: a memory map stays a memory map.
    """

    values: Values
    """Integers [T_k], the ids of each shard; one dtype for all shards."""
    offsets: NDArray[np.int64]
    """int64 [D+1], where each document begins, counted over all shards; no document crosses a shard."""
    special: Special = field(default_factory=Special)
    columns: Mapping[str, Values] = field(default_factory=dict)
    """Values parallel to the tokens, by name, shard by shard: types, weights, a label mask."""
    sentences: Sentences | None = None
    """Where sentences begin, shard by shard: int64 offsets of documents, and token numbers in them."""
    digest: str | None = None
    """Hexadecimal digest of the tokens where it is known; else they are read once for it, when asked for."""
    folder: Path | None = None
    """The store's folder, where plans are kept; None: they are kept in memory."""
    split: str | None = None
    """The store's split."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What the store's manifest says of tokenizer and documents."""

    @classmethod
    def from_arrays(
        cls,
        values: NDArray[Any],
        offsets: ArrayLike,
        *,
        vocab_size: int | None = None,
        eos: int | None = None,
        pad: int | None = None,
        mask: int | None = None,
        columns: Mapping[str, NDArray[Any]] | None = None,
        sentence_starts: ArrayLike | None = None,
    ) -> Tokens:
        """Wrap one flat array of ids, in memory or a memory map, without a copy.

        Args:
            values: Integers [T], ids, each in ``[0, vocab_size)`` where that is given.
            offsets: int64 [D+1], where each document begins; ``offsets[0]`` is 0, ``offsets[-1]`` is T.
            vocab_size: Number of ids.
            eos: Id that ends a document.
            pad: Id for padding.
            mask: Id that stands for a masked token.
            columns: Arrays [T] parallel to the values.
            sentence_starts: int64 [M], ascending token numbers at which a sentence begins.

        Raises:
            TextError: The arrays do not fit together.
        """
        if columns is not None and not isinstance(columns, Mapping):
            raise TextError(f"columns: found {described(columns, None)}, expected arrays by name.")
        borders = whole_numbers(offsets, "offsets", "where each document begins, and where the last one ends")
        return cls(
            values=(_plain_integers(values),),
            offsets=borders,
            special=Special(vocab_size=vocab_size, eos=eos, pad=pad, mask=mask),
            columns={name: (plain_array(column, name),) for name, column in (columns or {}).items()},
            sentences=None if sentence_starts is None else _sentences(sentence_starts, borders),
        )

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Sequence[int] | NDArray[Any]],
        *,
        vocab_size: int | None = None,
        eos: int | None = None,
        pad: int | None = None,
        mask: int | None = None,
    ) -> Tokens:
        """Join documents that are lists of ids into one array of the smallest dtype.

        Args:
            documents: One sequence of ids a document; an empty one is a document too.
            vocab_size: Number of ids; None: the largest id decides the dtype.
            eos: Id that ends a document.
            pad: Id for padding.
            mask: Id that stands for a masked token.

        Raises:
            TextError: An id is negative or not below ``vocab_size``.
        """
        special = Special(vocab_size=vocab_size, eos=eos, pad=pad, mask=mask)
        check_special(special)
        if not isinstance(documents, Iterable):
            raise TextError(f"documents: found {described(documents, None)}, expected lists of ids.")
        arrays = [_document_array(number, document) for number, document in enumerate(documents)]
        offsets = np.cumsum([0, *(array.size for array in arrays)], dtype=np.int64)
        joined = np.concatenate([np.zeros(0, np.int64), *arrays])
        values = joined.astype(dtype_for(_size_of(joined, vocab_size)))
        return cls(values=(values,), offsets=offsets, special=special)

    def __post_init__(self) -> None:
        check_values(self.values)
        check_offsets(self.offsets, self.shard_tokens)
        check_special(self.special)
        if self.dtype == np.uint64 and self.special.vocab_size is None:
            for shard in self.values:
                check_ids(shard, None)
        for name, shards in self.columns.items():
            check_column(name, shards, self.values)

    @classmethod
    def open(cls, folder: str | Path, split: str | None = None) -> Tokens:
        """Open a split of a token store; ids stay on disk until they are read.

        Args:
            folder: What ``tokenize`` wrote.
            split: Which split; None where there is only one.

        Raises:
            StoreError: The folder is no store, or a shard is missing or damaged.
            TextError: It holds no tokens, or no such split.
        """
        from headrace.text.store import open_tokens

        return open_tokens(folder, split)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes it again in another process: a store is opened there, addresses are left here."""
        if self.folder is not None:
            return _open_again, (str(self.folder), self.split, self.special, self.digest)
        return _make_again, ({name: getattr(self, name) for name in self.__dataclass_fields__},)

    def __repr__(self) -> str:
        known = {name: value for name, value in vars(self.special).items() if value is not None}
        special = "".join(f", {name}={value}" for name, value in known.items())
        columns = f", columns={list(self.columns)}" if self.columns else ""
        return f"Tokens({len(self):,} documents, {self.num_tokens:,} tokens, {self.dtype}{special}{columns})"

    def __len__(self) -> int:
        """Return the number of documents."""
        return self.offsets.size - 1

    @cached_property
    def num_tokens(self) -> int:
        """Tokens of all documents."""
        return int(self.offsets[-1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64 [D], tokens of each document."""
        return np.diff(self.offsets)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The ids' dtype as stored."""
        return self.values[0].dtype

    @cached_property
    def like(self) -> NDArray[Any]:
        """An empty array of the ids' dtype: it tells a kernel what lies at an address."""
        return np.empty(0, self.dtype)

    @cached_property
    def shard_tokens(self) -> NDArray[np.int64]:
        """int64 [K+1], tokens before each shard."""
        return np.cumsum([0, *(values.size for values in self.values)], dtype=np.int64)

    @cached_property
    def addresses(self) -> NDArray[np.uint64]:
        """uint64 [K], where each shard's ids lie in memory."""
        return addresses_of(self.values)

    @cached_property
    def column_addresses(self) -> Mapping[str, NDArray[np.uint64]]:
        """uint64 [K] a column: where each shard's values lie in memory."""
        return {name: addresses_of(shards) for name, shards in self.columns.items()}

    @cached_property
    def sentence_starts(self) -> NDArray[np.int64] | None:
        """int64 [M], ascending: tokens, counted over all documents, at which a sentence begins."""
        if self.sentences is None:
            return None
        counts = np.concatenate([np.diff(borders) for borders, _ in self.sentences])
        places = np.concatenate([places for _, places in self.sentences])
        check_sentences(counts, places, self.lengths)
        starts: NDArray[np.int64] = np.repeat(self.offsets[:-1], counts) + places
        return np.sort(starts)

    @cached_property
    def fingerprint(self) -> str:
        """Hexadecimal digest of ids, documents, columns and sentence starts."""
        if self.digest is not None:
            return self.digest
        digest = xxhash.xxh3_128()
        for array in (*self.values, self.offsets, *self._other_arrays()):
            digest.update(f"{array.dtype.str}{array.size};".encode())
            digest.update(array.view(np.uint8).data)
        digest.update(repr((sorted(self.columns), self.special)).encode())
        return digest.hexdigest()

    def _other_arrays(self) -> list[NDArray[Any]]:
        columns = [shard for _, shards in sorted(self.columns.items()) for shard in shards]
        return columns if self.sentence_starts is None else [*columns, self.sentence_starts]

    def document(self, number: int) -> NDArray[Any]:
        """Return the ids of one document, as stored: a view.

        Raises:
            IndexError: There is no such document.
        """
        if not 0 <= number < len(self):
            raise IndexError(f"document {number}: there are {len(self)}, numbered from 0.")
        begin, end = int(self.offsets[number]), int(self.offsets[number + 1])
        if begin == end:
            return self.values[0][:0]
        shard = int(np.searchsorted(self.shard_tokens, begin, side="right")) - 1
        first = int(self.shard_tokens[shard])
        return self.values[shard][begin - first : end - first]

    def with_special(self, **changes: int | None) -> Tokens:
        """Return the same tokens with another ``eos``, ``pad``, ``mask`` or ``vocab_size``.

        Raises:
            TextError: There is no special token of that name, or the id is none.
        """
        unknown = next((name for name in changes if name not in vars(self.special)), None)
        if unknown is not None:
            raise TextError(
                f"with_special: {unknown!r} is unknown; there are {', '.join(vars(self.special))}."
                + did_you_mean(unknown, vars(self.special))
            )
        return replace(self, special=replace(self.special, **changes))


def _sentences(starts: ArrayLike, offsets: NDArray[np.int64]) -> Sentences:
    """Return token numbers counted over all documents as numbers in each."""
    numbers = whole_numbers(starts, "sentence_starts", "token numbers, ascending").reshape(-1)
    if numbers.size and (numbers[0] < 0 or numbers[-1] >= offsets[-1] or np.any(np.diff(numbers) < 0)):
        raise TextError(
            f"sentence_starts run from {numbers.min()} to {numbers.max()}, expected token numbers in "
            f"[0, {offsets[-1]}), ascending."
        )
    document = np.searchsorted(offsets, numbers, side="right") - 1
    counts = np.bincount(document, minlength=offsets.size - 1)
    return ((np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), numbers - offsets[document]),)


def _make_again(fields: dict[str, Any]) -> Tokens:
    return Tokens(**fields)


def _open_again(folder: str, split: str | None, special: Special, digest: str | None) -> Tokens:
    opened = Tokens.open(folder, split)
    if opened.digest != digest:
        raise TextError(
            f"{folder}: the store was changed while it was in use, by append=True for instance. "
            "Open it again in the process that hands it over."
        )
    return replace(opened, special=special)


def dtype_for(vocab_size: int) -> np.dtype[Any]:
    """Return the smallest unsigned dtype that holds every id of a vocabulary.

    >>> dtype_for(65_536), dtype_for(65_537)
    (dtype('uint16'), dtype('uint32'))
    """
    return next(
        np.dtype(name)
        for name in ("uint8", "uint16", "uint32", "uint64")
        if vocab_size <= np.iinfo(name).max + 1
    )


def addresses_of(shards: Values) -> NDArray[np.uint64]:
    """Return where each array begins in memory, for kernels that read several."""
    return np.array([shard.ctypes.data for shard in shards], np.uint64)


def _plain_integers(values: NDArray[Any]) -> NDArray[Any]:
    array = plain_array(values, "values")
    if array.dtype.kind not in "iu":
        raise TextError(f"values: token ids are integers, found {array.dtype}.")
    return array


def _document_array(number: int, document: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    array = as_array(document)
    if array is None or array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TextError(
            f"document {number}: found {described(document, array)}, expected a flat list of ids."
        )
    return array.astype(np.int64)


def _size_of(values: NDArray[np.int64], vocab_size: int | None) -> int:
    """Return the size of the vocabulary, after checking that every id is in it."""
    if not values.size:
        return vocab_size or 1
    check_ids(values, vocab_size)
    return vocab_size or int(values.max()) + 1
