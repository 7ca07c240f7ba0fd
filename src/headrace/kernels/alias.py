"""Draws in proportion to weights: exact integer masses, one alias table, one inversion.

The alias method (A. J. Walker, ACM TOMS 3, 1977; M. D. Vose, IEEE TSE 17, 1991)
draws from V weights with one look-up. Here it is done in integers: the weights
become masses that sum to exactly ``V * 2**32``, so that a column of the table
holds exactly ``2**32`` and no rounding is left over. A weight of zero is never
drawn, and the table and the cumulative masses describe the very same
distribution:

    weights      2      1      0         masses     8589934592  4294967296  0
    column       0      1      2         each column holds 2**32
    keeps        all    all    nothing
    otherwise    -      -      word 0

    draw_alias(table, word_a, word_b)                one draw from 64 random bits
    draw_allowed(cumulative, excluded, n, a, b)      the same, without some indices

The sweep that fills the table needs no stacks: L. Hübschle-Schneider and
P. Sanders, "Parallel weighted random sampling", ESA 2019, section 3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.compile import inline, kernel

COLUMN_MASS = 1 << 32
LARGEST_TABLE = (1 << 31) - 1
_COLUMN = np.uint64(COLUMN_MASS)
_LOW = np.uint64(COLUMN_MASS - 1)
_S32 = np.uint64(32)
_U0 = np.uint64(0)
_U1 = np.uint64(1)


def integer_masses(weights: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Turn weights into integers that sum to exactly ``V * 2**32``.

    Each mass is rounded to the nearest; a weight above zero keeps at least 1; what
    rounding leaves over (at most V / 2 units) goes to the largest weight.

    Args:
        weights: float64 [V], finite, none negative, not all zero; ``1 <= V < 2**31``.

    Returns:
        uint64 [V]; the probability of an index is ``mass / (V * 2**32)``.

    Raises:
        ValueError: The weights are not as above.
    """
    weights = np.asarray(weights, dtype=np.float64)
    _check_weights(weights)
    total = len(weights) << 32
    scaled = weights / weights.max()
    masses: NDArray[np.uint64] = np.rint(scaled * (total / scaled.sum())).astype(np.uint64)
    masses[(masses == 0) & (weights > 0)] = 1
    largest = int(np.argmax(weights))
    masses[largest] = np.uint64(int(masses[largest]) + total - int(masses.sum()))
    return masses


def _check_weights(weights: NDArray[np.float64]) -> None:
    if weights.ndim != 1 or not 1 <= len(weights) <= LARGEST_TABLE:
        raise ValueError(
            f"weights have shape {weights.shape}; needed is one row of 1 to {LARGEST_TABLE} numbers."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        place = int(np.argmax(~np.isfinite(weights) | (weights < 0)))
        raise ValueError(f"weight {place} is {weights[place]}; weights must be finite and not negative.")
    if not weights.any():
        raise ValueError("all weights are 0; at least one must be larger.")


@kernel
def alias_table(masses: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Build the alias table of integer masses.

    Args:
        masses: uint64 [V] from ``integer_masses``.

    Returns:
        uint64 [V]: the column's own share of ``2**32`` in the high half, the index
        that takes the rest of the column in the low half. A column that is all its
        own names itself.
    """
    size = len(masses)
    table = np.empty(size, np.uint64)
    light = _next_light(masses, -1)
    heavy = _next_heavy(masses, -1)
    rest = masses[heavy]
    while heavy < size:
        if light < size and rest >= _COLUMN:
            table[light] = masses[light] << _S32 | np.uint64(heavy)
            rest -= _COLUMN - masses[light]
            light = _next_light(masses, light)
        elif rest >= _COLUMN:
            table[heavy] = np.uint64(heavy)
            heavy = _next_heavy(masses, heavy)
            rest = masses[heavy] if heavy < size else _U0
        else:
            following = _next_heavy(masses, heavy)
            table[heavy] = rest << _S32 | np.uint64(following)
            rest = rest + masses[following] - _COLUMN
            heavy = following
    return table


@inline
def _next_light(masses, place):  # type: ignore[no-untyped-def]
    """Return the next index after ``place`` whose mass does not fill a column."""
    place += 1
    while place < len(masses) and masses[place] >= _COLUMN:
        place += 1
    return place


@inline
def _next_heavy(masses, place):  # type: ignore[no-untyped-def]
    """Return the next index after ``place`` whose mass fills at least a column."""
    place += 1
    while place < len(masses) and masses[place] < _COLUMN:
        place += 1
    return place


@inline
def draw_alias(table, word_a, word_b):  # type: ignore[no-untyped-def]
    """Draw an index from two random uint32.

    ``(a * 2**32 + b) * V >> 32``: the high half of the result is the column, the low
    half decides between its two indices; the bias is below ``2**-32``.
    """
    size = np.uint64(len(table))
    scaled = np.uint64(word_a) * size + (np.uint64(word_b) * size >> _S32)
    column = scaled >> _S32
    entry = table[column]
    other = entry & _LOW
    own = _U0 - np.uint64((scaled & _LOW) < (entry >> _S32))  # ones or zeros: a branch would be a coin toss
    return np.int64(other ^ ((other ^ column) & own))


@inline
def draw_allowed(cumulative, excluded, count, word_a, word_b):  # type: ignore[no-untyped-def]
    """Draw an index that is not excluded, by inversion; -1 where nothing is allowed.

    Args:
        cumulative: uint64 [V], running sum of the masses, this index included.
        excluded: int64 array whose first ``count`` values are excluded indices; sorted in place,
            repeats allowed.
        count: How many values of ``excluded`` count.
        word_a: Random uint32, the high half.
        word_b: Random uint32, the low half.
    """
    _sort(excluded, count)
    allowed = cumulative[len(cumulative) - 1] - _excluded_mass(cumulative, excluded, count)
    if allowed == _U0:
        return np.int64(-1)
    place = _scale64(word_a, word_b, allowed)
    for k in range(count):
        if k == 0 or excluded[k] != excluded[k - 1]:
            below = _below(cumulative, excluded[k])
            if place >= below:
                place += cumulative[excluded[k]] - below
    return np.int64(np.searchsorted(cumulative, place, side="right"))


@inline
def _excluded_mass(cumulative, excluded, count):  # type: ignore[no-untyped-def]
    """Return the mass of the distinct indices among the sorted ``excluded[:count]``."""
    mass = _U0
    for k in range(count):
        if k == 0 or excluded[k] != excluded[k - 1]:
            mass += cumulative[excluded[k]] - _below(cumulative, excluded[k])
    return mass


@inline
def _below(cumulative, index):  # type: ignore[no-untyped-def]
    """Return the mass of all indices before ``index``."""
    return cumulative[index - 1] if index > 0 else _U0


@inline
def _scale64(word_a, word_b, size):  # type: ignore[no-untyped-def]
    """Map 64 random bits to [0, size) for any uint64 ``size``: the high half of the 128-bit product."""
    low, high = size & _LOW, size >> _S32
    a, b = np.uint64(word_a), np.uint64(word_b)
    middle = a * low + (b * low >> _S32)
    crossed = b * high + (middle & _LOW)
    return a * high + (middle >> _S32) + (crossed >> _S32)


@inline
def _sort(values, count):  # type: ignore[no-untyped-def]
    """Sort ``values[:count]`` in place by insertion: a window's worth, nearly always below 20."""
    for k in range(1, count):
        value = values[k]
        place = k
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@kernel
def draw_many(table: NDArray[np.uint64], words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Draw one index for each row of random words.

    Args:
        table: uint64 [V] from ``alias_table``.
        words: uint32 [N, 2], random bits.

    Returns:
        int64 [N], indices in ``[0, V)``.
    """
    drawn = np.empty(len(words), np.int64)
    for row in range(len(words)):
        drawn[row] = draw_alias(table, words[row, 0], words[row, 1])
    return drawn
