"""Raw lists as flat elements with borders: what stands in a list, or in a text between separators."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import ALL_VALID, Texts, large_strings, list_borders, texts_of, validity
from headrace.kernels import fields


def cut_list(array: pa.Array, separator: str) -> tuple[NDArray[np.int64], pa.Array, NDArray[np.bool_]]:
    """Return a list column as ``(offsets int64 [n + 1], elements, valid bool [n] or empty)``.

    Args:
        array: list, large_list or fixed_size_list; or string, cut at ``separator``; or all null.
        separator: One or more characters.

    A missing list has no element; an empty text is an empty list.
    """
    if pa.types.is_null(array.type):
        return np.zeros(len(array) + 1, np.int64), pa.array([], pa.large_string()), np.zeros(len(array), bool)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        offsets, elements = cut_texts(texts_of(array), separator)
        return offsets, as_strings(elements), validity(array)
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    offsets, values = list_borders(array)
    return offsets, values, validity(array)


def cut_texts(texts: Texts, separator: str) -> tuple[NDArray[np.int64], Texts]:
    """Cut each text at ``separator``: ``(offsets int64 [n + 1], elements)``, without a copy of bytes."""
    pattern = np.frombuffer(separator.encode(), np.uint8)
    offsets = np.empty(len(texts) + 1, np.int64)
    fields.count_elements(texts.data, texts.begins, texts.ends, texts.valid, pattern, offsets)
    begins, ends = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    fields.cut_elements(texts.data, texts.begins, texts.ends, pattern, offsets, begins, ends)
    return offsets, Texts(texts.data, begins, ends, ALL_VALID)


def as_strings(texts: Texts) -> pa.Array:
    """Return texts without nulls as large_string."""
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(texts.ends - texts.begins, out=offsets[1:])
    data = np.empty(offsets[-1], np.uint8)
    fields.copy_ranges(texts.data, texts.begins, texts.ends, offsets, data)
    return large_strings(data, offsets)


def cut_pairs(texts: Texts, pair_separator: str) -> tuple[Texts, Texts, NDArray[np.bool_]]:
    """Cut each element at its last ``pair_separator``: ``(values, weights, whole bool [n])``.

    An element without a separator is not whole: its value is all of it, its weight empty.
    """
    pattern = np.frombuffer(pair_separator.encode(), np.uint8)
    places = np.empty(len(texts), np.int64)
    fields.last_separators(texts.data, texts.begins, texts.ends, pattern, places)
    whole = places >= 0
    value_ends = np.where(whole, places, texts.ends)
    weight_begins = np.where(whole, places + len(pattern), texts.ends)
    values = Texts(texts.data, texts.begins, value_ends, ALL_VALID)
    return values, Texts(texts.data, weight_begins, texts.ends, ALL_VALID), whole


def rows_of(elements: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of each of some elements, given the lists' borders."""
    return np.searchsorted(offsets, elements, side="right").astype(np.int64) - 1
