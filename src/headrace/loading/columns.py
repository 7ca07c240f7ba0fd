"""What ``Rows`` is built from: one plain array per shard and column, usually over a memory map.

Every column gives one array for each shard, in the order of the shards, all of
one dtype. Arrays may be slices: offsets need not start at 0, and a bitmap may
begin at any bit. Values and offsets may be fields of records (``records["user"]`` of a structured
array), which keeps what a random row needs together in memory. Nothing is copied; whoever makes
a column has the arrays stay valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Arrays: TypeAlias = Sequence[NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Bitmap:
    """Validity bits as Arrow keeps them: bit 0 of byte 0 first; 1 is present."""

    bits: NDArray[np.uint8]
    """uint8 [bytes]."""
    offset: int = 0
    """Which bit belongs to the first row."""

    @classmethod
    def pack(cls, present: NDArray[np.bool_]) -> Bitmap:
        """Return the bitmap of a bool array."""
        return cls(np.packbits(present, bitorder="little"))


Validity: TypeAlias = Sequence[Bitmap | None] | None


@dataclass(frozen=True, eq=False)
class Scalar:
    """One value a row: ids, or a number.

    In a batch: ``name`` [B], ids as ``id_dtype``, float32 and int64 as they are.
    """

    name: str
    values: Arrays
    """uint8, uint16, uint32 or uint64 ids; float32 or int64 numbers: [n]."""
    validity: Validity = None
    """None where every row has a value."""


@dataclass(frozen=True, eq=False)
class Ragged:
    """A list of ids a row, cut to ``max_length`` and padded with 0.

    In a batch: ``name`` [B, L], ``name_mask`` bool [B, L], ``name_lengths`` int32 [B], and
    ``name_weights`` float32 [B, L] where there are weights.
    """

    name: str
    offsets: Arrays
    """int32 or int64 [n + 1]: row i has values ``offsets[i]`` to ``offsets[i + 1]``."""
    values: Arrays
    """uint8, uint16, uint32 or uint64 ids [values]."""
    max_length: int
    """L. A longer row keeps its last values when padded on the left, else its first."""
    pad: Literal["left", "right"] = "right"
    weights: Arrays | None = None
    """float32 [values]."""
    validity: Validity = None


@dataclass(frozen=True, eq=False)
class Fixed:
    """A vector a row. In a batch: ``name`` float32 [B, D]."""

    name: str
    values: Arrays
    """float32 [n, D]."""
    validity: Validity = None


@dataclass(frozen=True, eq=False)
class Label:
    """What a model learns to predict.

    In a batch: ``name`` [B], ``name_mask`` bool [B] where it can be unknown, ``name_weight``
    float32 [B] where there are weights.
    """

    name: str
    values: Arrays
    """float32 [n], or int64 [n] classes."""
    validity: Validity = None
    """Where it is known; None where it always is, and there is then no ``name_mask``."""
    weights: Arrays | None = None
    """float32 [n]."""


Column: TypeAlias = Scalar | Ragged | Fixed | Label
