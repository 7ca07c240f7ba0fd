"""Where windows lie in a text: counting, locating and listing them.

A *stream* is a run of tokens that windows are cut from: one document, or all of
them. With ``length`` L, ``window`` W, ``stride`` S and ``offset`` o, window j
covers ``[max(0, v), min(L, v + W))`` with ``v = base + j * S`` and ``base = 0``
for o = 0, else ``o - S``; the last window is the first that reaches L.

    L = 10, W = 4, S = 4            0 1 2 3 | 4 5 6 7 | 8 9 . .
    L = 10, W = 4, S = 4, o = 1     0 . . . | 1 2 3 4 | 5 6 7 8 | 9 . . .

Only a last window of fewer than W tokens can be left out or moved back; see
``TAIL_PAD``, ``TAIL_DROP``, ``TAIL_SHIFT``. Nothing here reads a token.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import brief_kernel, inline, kernel
from headrace.kernels.rng import below

TAIL_PAD = 0
"""The last window is padded; left out when its new tokens are fewer than ``min_remainder``."""
TAIL_DROP = 1
"""The last window is left out."""
TAIL_SHIFT = 2
"""As ``TAIL_PAD``, but a last window that stays begins at ``max(0, L - W)``."""


@inline
def first_base(stride, offset):  # type: ignore[no-untyped-def]
    """Return where window 0 would begin: at most 0, and 0 when there is no offset."""
    return offset - stride if offset > 0 else 0


@inline
def last_is_left_out(length, start, seen_until, window, tail, min_remainder):  # type: ignore[no-untyped-def]
    """Whether a last window ``[start, length)`` is left out; ``seen_until`` ends the window before it."""
    if length - start >= window:
        return False
    return tail == TAIL_DROP or length - seen_until < min_remainder


@inline
def count_windows(length, window, stride, offset, tail, min_remainder):  # type: ignore[no-untyped-def]
    """Return the number of windows of a stream of ``length`` tokens."""
    if length <= 0:
        return 0
    base = first_base(stride, offset)
    count = 1 + max(0, -((base + window - length) // stride))
    start = base + (count - 1) * stride
    seen_until = start - stride + window if count > 1 else 0
    left_out = last_is_left_out(length, max(0, start), seen_until, window, tail, min_remainder)
    return count - 1 if left_out else count


@inline
def window_at(number, length, window, stride, offset, tail):  # type: ignore[no-untyped-def]
    """Return (start, size, seen) of a window; its first ``seen`` tokens are in the window before it."""
    virtual = first_base(stride, offset) + number * stride
    start = max(0, virtual)
    end = min(length, virtual + window)
    if tail == TAIL_SHIFT and end == length and end - start < window:
        start = max(0, length - window)
    seen_until = virtual - stride + window if number > 0 else 0
    return start, end - start, max(0, seen_until - start)


@kernel
def cumulate_windows(stream_offsets, window, stride, offsets, tail, min_remainder):  # type: ignore[no-untyped-def]
    """Return int64 [K+1]: the number of windows of all streams before each one.

    Args:
        stream_offsets: int64 [K+1], where each stream begins, in tokens.
        window: Tokens in a window.
        stride: Tokens from one start to the next, in ``[1, window]``.
        offsets: int64 [K] or [1], the cut of each stream or of all, in ``[0, stride)``.
        tail: ``TAIL_PAD``, ``TAIL_DROP`` or ``TAIL_SHIFT``.
        min_remainder: Fewest new tokens for which a last, incomplete window is kept.
    """
    cumulative = np.zeros(stream_offsets.size, np.int64)
    for k in range(stream_offsets.size - 1):
        length = stream_offsets[k + 1] - stream_offsets[k]
        offset = offsets[min(k, offsets.size - 1)]
        cumulative[k + 1] = cumulative[k] + count_windows(length, window, stride, offset, tail, min_remainder)
    return cumulative


@inline
def last_at_most(ascending, value):  # type: ignore[no-untyped-def]
    """Return the last index i with ``ascending[i] <= value``; ``ascending[0] <= value`` must hold."""
    low, high = 0, ascending.size
    while high - low > 1:
        middle = (low + high) // 2
        if ascending[middle] <= value:
            low = middle
        else:
            high = middle
    return low


@brief_kernel
def locate_windows(  # type: ignore[no-untyped-def]
    indices,
    cumulative,
    stream_offsets,
    document_offsets,
    window,
    stride,
    offsets,
    tail,
    row_runs,
    position,
    size,
    document,
    seen,
):
    """Fill, for windows of a fixed stride, where each lies; return the place of a wrong index, or -1.

    Args:
        indices: int64 [B], each in ``[0, cumulative[-1])``.
        cumulative: int64 [K+1], from ``cumulate_windows`` with the same arguments.
        stream_offsets: int64 [K+1].
        document_offsets: int64 [D+1], where each document begins, in the same count.
        window: Tokens in a window.
        stride: Tokens from one start to the next.
        offsets: int64 [K] or [1].
        tail: As in ``cumulate_windows``.
        row_runs: int64 [B+1], filled: 0, 1, 2, ...: each window is one run.
        position: int64 [B], filled: first token, counted over all streams.
        size: int64 [B], filled: tokens in the window, in ``[1, window]``.
        document: int64 [B], filled: the document of the first token.
        seen: int64 [B], filled: how many of them the window before it holds.
    """
    row_runs[0] = 0
    for row in range(indices.size):
        row_runs[row + 1] = row + 1
        if indices[row] < 0 or indices[row] >= cumulative[-1]:
            return row
        k = last_at_most(cumulative, indices[row])
        length = stream_offsets[k + 1] - stream_offsets[k]
        offset = offsets[min(k, offsets.size - 1)]
        start, size[row], seen[row] = window_at(
            indices[row] - cumulative[k], length, window, stride, offset, tail
        )
        position[row] = stream_offsets[k] + start
        one_a_document = stream_offsets.size == document_offsets.size
        document[row] = k if one_a_document else last_at_most(document_offsets, position[row])
    return -1


@kernel
def list_windows(  # type: ignore[no-untyped-def]
    stream_offsets,
    starts,
    start_offsets,
    first_ends,
    window,
    tail,
    min_remainder,
    cumulative,
    position,
    size,
    seen,
):
    """Turn the starts of each stream's windows into windows, leaving out or moving the last as ``tail`` says.

    Args:
        stream_offsets: int64 [K+1].
        starts: int64 [N], ascending in each stream, relative to it.
        start_offsets: int64 [K+1], which starts are of which stream.
        first_ends: int64 [K] or [1], where each stream's first window is to end.
        window: Tokens in a window.
        tail: ``TAIL_PAD``, ``TAIL_DROP`` or ``TAIL_SHIFT``.
        min_remainder: As in ``cumulate_windows``.
        cumulative: int64 [K+1], filled: windows before each stream.
        position: int64 [N], filled as far as ``cumulative[K]``: first token over all streams.
        size: int64 [N], filled: tokens in the window.
        seen: int64 [N], filled: how many of them an earlier window of the stream holds.
    """
    cumulative[0] = 0
    out = 0
    for k in range(stream_offsets.size - 1):
        length = stream_offsets[k + 1] - stream_offsets[k]
        seen_until = 0
        for n in range(start_offsets[k], start_offsets[k + 1]):
            start = starts[n]
            first = n == start_offsets[k]
            planned = first_ends[min(k, first_ends.size - 1)] if first else start + window
            end = min(length, planned)
            if end == length and last_is_left_out(length, start, seen_until, window, tail, min_remainder):
                break
            if tail == TAIL_SHIFT and end == length:
                start = max(0, min(start, length - window))
            position[out] = stream_offsets[k] + start
            size[out] = end - start
            seen[out] = max(0, seen_until - start)
            seen_until = end
            out += 1
        cumulative[k + 1] = out


@kernel
def aligned_starts(stream_offsets, window, stride, offsets, borders, reach, starts, start_offsets):  # type: ignore[no-untyped-def]
    """Fill the starts of windows that are moved back to the nearest border; return their number.

    The next start is the previous one plus ``stride``, moved back to the nearest
    border that is at most ``reach`` tokens away and strictly after the previous
    start, else left alone.

    Args:
        stream_offsets: int64 [K+1].
        window: Tokens in a window.
        stride: Tokens from one start to the next, at most ``window``.
        offsets: int64 [K] or [1], as in ``cumulate_windows``.
        borders: int64 [M], ascending: where sentences start, counted over all streams.
        reach: How far a start may move back.
        starts: int64 [N], filled; or [0], only to count.
        start_offsets: int64 [K+1], filled: the starts before each stream.
    """
    out = 0
    border = 0
    start_offsets[0] = 0
    for k in range(stream_offsets.size - 1):
        origin = stream_offsets[k]
        length = stream_offsets[k + 1] - origin
        offset = offsets[min(k, offsets.size - 1)]
        start, end, following = 0, first_base(stride, offset) + window, offset if offset > 0 else stride
        while length > 0:
            if starts.size > 0:
                starts[out] = start
            out += 1
            if end >= length:
                break
            while border < borders.size and borders[border] <= origin + following:
                border += 1
            nearest = borders[border - 1] - origin if border > 0 else -1
            start = nearest if nearest > start and following - nearest <= reach else following
            end, following = start + window, start + stride
        start_offsets[k + 1] = out
    return out


@kernel
def draw_below(key, limit, drawn):  # type: ignore[no-untyped-def]
    """Fill ``drawn`` (int64 [K]) with a number in ``[0, limit)`` for each stream, drawn by its number."""
    for k in range(drawn.size):
        drawn[k] = below(key, k, 0, limit)
