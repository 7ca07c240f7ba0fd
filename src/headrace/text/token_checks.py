"""What holds for the arrays of ``Tokens``: kernels read them without a look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import TextError
from headrace.text.settings import ROW_OUTPUTS, TOKEN_OUTPUTS
from headrace.text.special import MOST_IDS

RESERVED = frozenset((*TOKEN_OUTPUTS, *ROW_OUTPUTS, "start_positions", "end_positions", "sentence_starts"))
"""Names of arrays that are made here, and that no column of the user's can have."""


def check_ids(ids: NDArray[Any], vocab_size: int | None, where: str = "tokens") -> None:
    """Check that all ids are in ``[0, vocab_size)``.

    Raises:
        TextError: One is not; the message names it and its place.
    """
    if ids.size == 0:
        return
    limit = MOST_IDS if vocab_size is None else vocab_size
    if int(ids.max()) < limit and int(ids.min()) >= 0:
        return
    place = int(np.flatnonzero((ids >= limit) | (ids < 0))[0])
    outside = "beyond int64" if vocab_size is None else f"outside the vocabulary of {vocab_size} ids"
    why = "negative" if ids[place] < 0 else outside
    raise TextError(
        f"{where}: id {int(ids[place])} at token {place} is {why}. Declare the vocabulary's "
        "true size (largest id + 1), or mend the tokenizer; ids are never wrapped."
    )


def check_values(values: Sequence[NDArray[Any]]) -> None:
    """Check that kernels can read the shards at their addresses.

    Raises:
        TextError: They are not flat arrays of integers of one dtype that lie in one piece.
    """
    dtypes = sorted({str(shard.dtype) for shard in values})
    if len(dtypes) != 1 or not all(_is_plain(shard) and shard.dtype.kind in "iu" for shard in values):
        raise TextError(
            f"values: {len(values)} arrays of {', '.join(dtypes) or 'no dtype'}; expected at least one, all "
            "flat, contiguous, and of integers of one dtype. Tokens.from_arrays makes them so."
        )


def _is_plain(array: NDArray[Any]) -> bool:
    """Whether an array is flat, of numbers, in one piece and of this machine's byte order."""
    is_numbers = array.dtype.kind in "iufb" and array.dtype.isnative
    return array.ndim == 1 and is_numbers and bool(array.flags.c_contiguous)


def check_offsets(offsets: NDArray[np.int64], shard_tokens: NDArray[np.int64]) -> None:
    """Check that documents follow one another over all tokens, none of them across two shards.

    Raises:
        TextError: They do not.
    """
    total = int(shard_tokens[-1])
    if (
        offsets.dtype != np.int64
        or offsets.ndim != 1
        or offsets.size == 0
        or offsets[0] != 0
        or offsets[-1] != total
    ):
        raise TextError(
            f"offsets run from {offsets[:1]} to {offsets[-1:]}, expected int64 from 0 to the {total} tokens."
        )
    if np.any(offsets[1:] < offsets[:-1]):
        place = int(np.flatnonzero(offsets[1:] < offsets[:-1])[0])
        raise TextError(f"offsets fall from {offsets[place]} to {offsets[place + 1]} at document {place}.")
    borders = np.searchsorted(offsets, shard_tokens)
    if not np.array_equal(offsets[borders], shard_tokens):
        raise TextError("a document crosses the border of two shards; each document lies in one.")


def check_sentences(counts: NDArray[np.int64], places: NDArray[Any], lengths: NDArray[np.int64]) -> None:
    """Check that sentences start at tokens of their documents.

    Raises:
        TextError: One does not.
    """
    is_whole = counts.size == lengths.size and (places.size == 0 or places.dtype.kind in "iu")
    if not is_whole or np.any((places < 0) | (places >= np.repeat(lengths, counts))):
        raise TextError("sentence_starts: expected, for each document, numbers of tokens in it; one is not.")


def check_column_name(name: str, where: str = "tokens") -> None:
    """Check that a column parallel to the tokens is called as no array is that windows make themselves.

    Raises:
        TextError: It is; the message says what to give instead.
    """
    if not isinstance(name, str):
        raise TextError(f"{where}: a column is called {name!r}; expected a text.")
    if name in RESERVED:
        raise TextError(
            f"{where}: a column {name!r}, and headrace makes an array of that name itself. Leave it out, or "
            "call it otherwise; a label_mask takes tokens out of the labels."
        )


def check_column(name: str, shards: Sequence[NDArray[Any]], values: Sequence[NDArray[Any]]) -> None:
    """Check that a column has a value for each token, shard by shard, which kernels can read.

    Raises:
        TextError: It has not.
    """
    check_column_name(name)
    dtypes = {shard.dtype.name for shard in shards}
    if len(dtypes) > 1:
        raise TextError(f"column {name!r}: shards hold {sorted(dtypes)}; give it one dtype in all shards.")
    if not all(map(_is_plain, shards)):
        raise TextError(f"column {name!r}: expected flat, contiguous arrays of numbers, one a shard.")
    if any(shard.dtype == np.uint64 and int(shard.max(initial=0)) >= MOST_IDS for shard in shards):
        raise TextError(f"column {name!r}: a value does not fit in int64, which batches have.")
    sizes, wanted = [shard.size for shard in shards], [shard.size for shard in values]
    if sizes != wanted:
        raise TextError(
            f"column {name!r} has {sizes} values by shard, the tokens {wanted}; they must be equal."
        )
