"""Windows that begin where sentences do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace.errors import TextError
from headrace.kernels.windows_layout import aligned_starts
from headrace.text.cuts import ListedCut
from headrace.text.settings import Settings
from headrace.text.streams import Streams
from headrace.text.tokens import Tokens

_REACH = 4
"""A start moves back by at most a window divided by this."""


def check_sentences_known(tokens: Tokens) -> None:
    """Check that windows can begin where sentences do.

    Raises:
        TextError: The tokens do not say where sentences start.
    """
    if tokens.sentences is None:
        raise TextError(
            "align='sentence': the tokens do not say where sentences start. "
            "Make them with tokenize(..., sentences=True)."
        )


def aligned_cut(streams: Streams, settings: Settings, offsets: NDArray[np.int64]) -> ListedCut:
    """Cut streams at a fixed stride, each start moved back to the nearest sentence start.

    Kept beside the tokens, save with ``offset="random"``, whose windows are those of one epoch.

    Args:
        streams: What is cut; its tokens say where sentences start.
        settings: Window, stride, offset and tail.
        offsets: int64 [K] or [1], where the second window would begin; 0: at the stride.
    """
    if settings.offset == "random":
        return _list_aligned(streams, settings, offsets)
    declared = (settings.stride, int(settings.offset), settings.tail, int(settings.min_remainder))
    return ListedCut.kept(
        streams, "aligned", settings.window, declared, lambda: _list_aligned(streams, settings, offsets)
    )


def _list_aligned(streams: Streams, settings: Settings, offsets: NDArray[np.int64]) -> ListedCut:
    borders = sentence_positions(streams)
    window, stride = settings.window, settings.stride
    assert isinstance(stride, int)
    start_offsets = np.zeros(streams.offsets.size, np.int64)
    arguments = (streams.offsets, window, stride, offsets, borders, window // _REACH)
    count = aligned_starts(*arguments, np.empty(0, np.int64), start_offsets)
    starts = np.empty(count, np.int64)
    aligned_starts(*arguments, starts, start_offsets)
    first_ends = np.where(offsets > 0, offsets - stride + window, window)
    return ListedCut.from_starts(
        streams, starts, start_offsets, first_ends, window, settings.tail, settings.min_remainder
    )


def sentence_positions(streams: Streams) -> NDArray[np.int64]:
    """Return int64 [M], ascending: positions at which a sentence begins; a document's first is one."""
    tokens, starts = streams.tokens, streams.tokens.sentence_starts
    assert starts is not None
    document = np.searchsorted(tokens.offsets, starts, side="right") - 1
    inside = starts + (streams.document_offsets - tokens.offsets)[document]
    return np.union1d(inside, streams.document_offsets[:-1])
