"""Sums that do not depend on how the numbers are cut into blocks."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import kernel


@kernel
def add_compensated(values, center, state):  # type: ignore[no-untyped-def]
    """Add ``values - center`` and ``(values - center) ** 2`` to running sums, in order.

    Neumaier's compensated summation (A. Neumaier, "Rundungsfehleranalyse einiger
    Verfahren zur Summation endlicher Summen", 1974), one number at a time, so that
    the sums are the same for any cut into blocks.

    Args:
        values: float64 [n].
        center: Subtracted first.
        state: float64 [4]: sum, its compensation, sum of squares, its compensation.
    """
    for at in range(len(values)):
        term = values[at] - center
        for place in range(2):
            total = state[2 * place] + term
            if abs(state[2 * place]) >= abs(term):
                state[2 * place + 1] += (state[2 * place] - total) + term
            else:
                state[2 * place + 1] += (term - total) + state[2 * place]
            state[2 * place] = total
            term = np.float64(term * term)
