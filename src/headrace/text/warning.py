"""What a user should know before training on windows as declared."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.text.cuts import Cut
from headrace.text.cutting import cut_at
from headrace.text.settings import DynamicStride, Settings
from headrace.text.streams import Streams

_BLOCK_ROWS = 1 << 12


def warnings_of(settings: Settings, streams: Streams) -> Iterator[str]:
    """Yield one line for each thing about these windows that is allowed and seldom meant.

    Args:
        settings: What was declared for one window length.
        streams: What is cut.
    """
    if _skews_masking(settings):
        yield (
            f"MLM with stride={settings.stride} below half the window of {settings.window}: tokens in the "
            "middle of a document are trained on several times as often as those at its ends. "
            f"A stride of at least {-(-settings.window // 2)} evens it out."
        )
    if _leaves_targets_out(settings) and _continues_documents(streams, cut_at(streams, (settings,), 0, 0)):
        yield (
            f"labels='same' with stride = window = {settings.window}: the first token of every window that "
            "continues a document is never a label; summary().unscored_targets counts them. "
            + _advice(settings)
        )


def _skews_masking(settings: Settings) -> bool:
    stride = settings.stride.mean if isinstance(settings.stride, DynamicStride) else settings.stride
    return settings.objective is not None and stride < settings.window / 2


def _leaves_targets_out(settings: Settings) -> bool:
    return settings.labels == "same" and settings.objective is None and settings.stride == settings.window


def _continues_documents(streams: Streams, cut: Cut) -> bool:
    """Whether some row begins inside a document; looks no further than the first one that does."""
    blocks = range(0, len(cut), _BLOCK_ROWS)
    return any(_one_continues(streams, cut, first) for first in blocks)


def _one_continues(streams: Streams, cut: Cut, first: int) -> bool:
    runs = cut.runs(np.arange(first, min(first + _BLOCK_ROWS, len(cut))))
    begins = streams.document_offsets[runs.document]
    return bool((runs.position > begins).any())


def _advice(settings: Settings) -> str:
    if settings.pack == "best_fit" or settings.window == 1:
        return "labels='next' scores them all."
    return f"stride={settings.window - 1} scores them, and so does labels='next'."
