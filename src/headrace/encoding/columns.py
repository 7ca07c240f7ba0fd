"""An encoded column as plain arrays: what a shard holds, and what a batch is gathered from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import ALL_VALID, primitive, ragged, vectors


class EncodedColumn(NamedTuple):
    """One column of encoded rows."""

    name: str
    values: NDArray[Any]
    """[n] ids or numbers; [elements] where there are ``offsets``; float32 [n, D] for vectors."""
    valid: NDArray[np.bool_] = ALL_VALID
    """bool [n], False where there was no value; or empty: every row has one."""
    offsets: NDArray[np.int64] | None = None
    """int64 [n + 1], where each row's elements begin and end."""

    def arrow(self) -> pa.Array:
        """Return the column as a shard holds it."""
        if self.offsets is not None:
            return ragged(self.offsets, primitive(self.values), self.valid)
        return (
            vectors(self.values, self.valid) if self.values.ndim == 2 else primitive(self.values, self.valid)
        )


Encoded = list[EncodedColumn]
