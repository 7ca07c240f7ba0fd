"""A hash index over the texts of a vocabulary, and hash buckets for texts outside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import is_text, numbers_of, texts_of, validity
from headrace.kernels import lookup
from headrace.kernels.hashing import hash_texts
from headrace.scratch import IN_MEMORY, Scratch

ABSENT = -1
NULL = -2


@dataclass(frozen=True)
class Index:
    """A hash index over texts; the arrays are those of ``headrace.kernels.lookup``."""

    integers: NDArray[np.int64]
    integer_codes: NDArray[np.int32]
    texts: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int32]
    arena: NDArray[np.uint8]

    @classmethod
    def build(cls, values: pa.Array, scratch: Scratch = IN_MEMORY) -> Index:
        """Index different texts, large_string [n], by their place."""
        view = texts_of(values)
        whole = int(lookup.count_integers(view.data, view.begins, view.ends))
        integers = scratch.full(slots_for(whole), lookup.FREE, np.int64)
        codes = scratch.zeros(len(integers), np.int32)
        texts = scratch.zeros(slots_for(len(view) - whole), np.int64)
        lookup.index_texts(view.data, view.begins, view.ends, integers, codes, texts)
        return cls.over(values, integers, codes, texts, scratch)

    @classmethod
    def over(
        cls,
        values: pa.Array,
        integers: NDArray[np.int64],
        codes: NDArray[np.int32],
        texts: NDArray[np.int64],
        scratch: Scratch = IN_MEMORY,
    ) -> Index:
        """Return the index whose slots were made before."""
        view = texts_of(values)
        lengths = scratch.empty(len(view), np.int32)
        np.subtract(view.ends, view.begins, out=lengths, casting="unsafe")
        return cls(integers, codes, texts, view.begins.astype(np.int64, copy=False), lengths, view.data)

    def find(self, array: pa.Array) -> NDArray[np.int64]:
        """Return the place of each element, int64 [n]; -1 where it is absent, -2 where it is null."""
        codes = np.empty(len(array), np.int64)
        table = self.integers, self.integer_codes, self.texts, self.starts, self.lengths, self.arena
        if is_text(array):
            view = texts_of(array)
            lookup.find_texts(view.data, view.begins, view.ends, view.valid, codes, *table)
        elif pa.types.is_null(array.type):
            codes.fill(NULL)
        else:
            lookup.find_integers(numbers_of(array), validity(array), codes, *table)
        return codes


def slots_for(entries: int) -> int:
    """Return the slots of a table of so many entries: a power of two, at most half of them taken."""
    return max(4, 1 << (2 * entries - 1).bit_length()) if entries else 4


def buckets_of(texts: pa.Array, buckets: int, seed: int = 0) -> NDArray[np.int64]:
    """Return ``XXH64(text, seed) % buckets`` of each element, int64 [n]; 0 where it is null."""
    view = texts_of(texts.cast(pa.large_string()))
    hashes = np.empty(len(view), np.uint64)
    hash_texts(view.data, view.begins, view.ends, np.uint64(seed), hashes)
    return (hashes % np.uint64(buckets)).astype(np.int64)
