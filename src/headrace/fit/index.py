"""A hash index over the texts of a vocabulary, and hash buckets for texts outside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import numbers_of, texts_of, validity
from headrace.kernels import lookup
from headrace.kernels.hashing import hash_texts

ABSENT = -1
NULL = -2


@dataclass(frozen=True)
class Index:
    """A hash index over texts; the arrays are those of ``headrace.kernels.lookup``."""

    slots: NDArray[np.int32]
    keys: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int32]
    arena: NDArray[np.uint8]

    @classmethod
    def build(cls, values: pa.Array) -> Index:
        """Index different texts, large_string [n], by their place."""
        texts = texts_of(values)
        slots = np.full(max(4, 1 << (2 * len(values) - 1).bit_length()) if len(values) else 4, -1, np.int32)
        keys, starts = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
        lookup.key_texts(texts.data, texts.begins, texts.ends, keys, starts)
        lookup.fill_slots(slots, keys, len(values))
        return cls(slots, keys, starts, (texts.ends - texts.begins).astype(np.int32), texts.data)

    def find(self, array: pa.Array) -> NDArray[np.int64]:
        """Return the place of each element, int64 [n]; -1 where it is absent, -2 where it is null."""
        codes = np.empty(len(array), np.int64)
        table = (self.slots, self.keys, self.starts, self.lengths, self.arena)
        if pa.types.is_null(array.type):
            codes.fill(NULL)
        elif pa.types.is_integer(array.type):
            lookup.find_integers(numbers_of(array), validity(array), codes, *table)
        else:
            texts = texts_of(array)
            lookup.find_texts(texts.data, texts.begins, texts.ends, texts.valid, codes, *table)
        return codes


def buckets_of(texts: pa.Array, buckets: int, seed: int = 0) -> NDArray[np.int64]:
    """Return ``XXH64(text, seed) % buckets`` of each element, int64 [n]; 0 where it is null."""
    view = texts_of(texts.cast(pa.large_string()))
    hashes = np.empty(len(view), np.uint64)
    hash_texts(view.data, view.begins, view.ends, np.uint64(seed), hashes)
    return (hashes % np.uint64(buckets)).astype(np.int64)
