"""A code for every element of one column, for so few rows that equal values need not share one."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import Texts, is_text, validity
from headrace.kernels.lookup import NULL_CODE
from headrace.parse.lists import as_strings, cut_texts

_NO_VALUES = pa.nulls(0, pa.large_string())  # pa.array of a list imports pandas


class Codes(Protocol):
    """Gives the id texts of a column codes, which are places in ``values()``."""

    def intern(self, array: pa.Array) -> NDArray[np.uint32]:
        """Return the code of each element, uint32 [n]; ``NULL_CODE`` where it is null."""
        ...

    def texts(self, texts: Texts) -> NDArray[np.uint32]:
        """Return the code of each text, uint32 [n]."""
        ...

    def lists(self, texts: Texts, separator: str) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return offsets, int64 [n + 1], and codes, uint32, of the elements of lists written as text."""
        ...

    def values(self) -> pa.Array:
        """Return the id texts by code."""
        ...


class OwnCodes:
    """Takes one column, and gives its elements the codes 0, 1, 2, ...; there is no table to fill."""

    def __init__(self) -> None:
        self._values: pa.Array = _NO_VALUES

    def intern(self, array: pa.Array) -> NDArray[np.uint32]:
        """Return the code of each element, uint32 [n]; ``NULL_CODE`` where it is null.

        Args:
            array: string, large_string, int64, uint64 or null.
        """
        codes = np.arange(len(array), dtype=np.uint32)
        self._values = array
        if array.null_count:
            codes[~validity(array)] = NULL_CODE
            self._values = array.cast(pa.large_string()).fill_null("")
        return codes

    def texts(self, texts: Texts) -> NDArray[np.uint32]:
        """Return the code of each text, uint32 [n]."""
        self._values = as_strings(texts)
        codes = np.arange(len(texts), dtype=np.uint32)
        if len(texts.valid):
            codes[~texts.valid] = NULL_CODE
        return codes

    def lists(self, texts: Texts, separator: str) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return offsets and codes of the elements of lists written as text."""
        offsets, elements = cut_texts(texts, separator)
        return offsets, self.texts(elements)

    def values(self) -> pa.Array:
        """Return the id texts by code, string or large_string; "" where the element is null."""
        texts = self._values
        return texts if is_text(texts) else texts.cast(pa.large_string())
