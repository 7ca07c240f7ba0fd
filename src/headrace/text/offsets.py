"""Where the first cut falls: a new place in every epoch, each place once in S epochs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.rng import stream_key
from headrace.kernels.windows_layout import draw_below
from headrace.order.permutation import Permutation

_STREAM = "window offset"


def random_offsets(stride: int, streams: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """Return int64 [K], each stream's offset in ``[0, stride)`` in one epoch.

    One stream takes ``Permutation(stride, seed)[epoch mod stride]``. Of several, each
    begins at a place of its own in that permutation, drawn by its number, so that
    ``stride`` epochs give every stream every offset once.

    Args:
        stride: Tokens from one window's start to the next.
        streams: Number of streams.
        seed: The loader's seed.
        epoch: The epoch.
    """
    permutation = Permutation(stride, seed, 0, stream=_STREAM)
    phases = np.zeros(streams, np.int64)
    if streams > 1:
        draw_below(stream_key(seed, 0, _STREAM), stride, phases)
    return permutation[(phases + epoch % stride) % stride]
