"""From what the user declared to the cut of an epoch."""

from __future__ import annotations

import numpy as np

from headrace.text.aligned import aligned_cut
from headrace.text.buckets import BucketedCut
from headrace.text.cuts import Cut, StrideCut
from headrace.text.dynamic import dynamic_cut
from headrace.text.offsets import random_offsets
from headrace.text.packing import packed_cut
from headrace.text.runs import Integers
from headrace.text.settings import DynamicStride, Settings
from headrace.text.streams import Streams


def cut_at(streams: Streams, buckets: tuple[Settings, ...], seed: int, epoch: int) -> Cut:
    """Return the rows of one epoch.

    Args:
        streams: What is cut.
        buckets: One declaration a window length; they differ in window and stride alone.
        seed: The loader's seed.
        epoch: The epoch; both matter only for ``offset="random"``.
    """
    cuts = tuple(_one_cut(streams, settings, seed, epoch) for settings in buckets)
    return cuts[0] if len(cuts) == 1 else BucketedCut(cuts)


def _one_cut(streams: Streams, settings: Settings, seed: int, epoch: int) -> Cut:
    if settings.pack == "best_fit":
        return packed_cut(streams, settings.window)
    if isinstance(settings.stride, DynamicStride):
        return dynamic_cut(streams, settings)
    offsets = _offsets(streams, settings.stride, settings.offset, seed, epoch)
    if settings.align is not None:
        return aligned_cut(streams, settings, offsets)
    return StrideCut(
        streams, settings.window, settings.stride, offsets, settings.tail, settings.min_remainder
    )


def _offsets(streams: Streams, stride: int, offset: int | str, seed: int, epoch: int) -> Integers:
    if isinstance(offset, str):
        return random_offsets(stride, streams.offsets.size - 1, seed, epoch)
    return np.array([offset], np.int64)
