"""A code for every element of one column, for so few rows that equal values need not share one."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import ALL_VALID, Texts, is_text, validity
from headrace.kernels.lookup import NULL_CODE
from headrace.parse.lists import as_strings

_NO_VALUES = pa.array([], pa.large_string())


class Codes(Protocol):
    """Gives the id texts of a column codes, which are places in ``values()``."""

    def intern(self, array: pa.Array) -> NDArray[np.uint32]:
        """Return the code of each element, uint32 [n]; ``NULL_CODE`` where it is null."""
        ...

    def texts(self, texts: Texts) -> NDArray[np.uint32]:
        """Return the code of each text, uint32 [n]."""
        ...

    def integers(
        self, values: NDArray[np.integer[Any]], valid: NDArray[np.bool_] = ALL_VALID
    ) -> NDArray[np.uint32]:
        """Return the code of each int64 or uint64, uint32 [n]."""
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

    def integers(
        self, values: NDArray[np.integer[Any]], valid: NDArray[np.bool_] = ALL_VALID
    ) -> NDArray[np.uint32]:
        """Return the code of each int64 or uint64, uint32 [n]."""
        return self.intern(pa.array(values, mask=~valid if len(valid) else None))

    def values(self) -> pa.Array:
        """Return the id texts by code, string or large_string; "" where the element is null."""
        texts = self._values
        return texts if is_text(texts) else texts.cast(pa.large_string())
