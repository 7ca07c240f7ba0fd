"""Windows whose stride follows the text: a density, and the quantum that gives the wanted mean stride."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.errors import TextError
from headrace.kernels.windows_dynamic import count_ids, dynamic_starts, edge_density
from headrace.text.cuts import ListedCut
from headrace.text.runs import Integers
from headrace.text.settings import DynamicStride, Settings
from headrace.text.streams import Streams
from headrace.text.tokens import as_array, described

Floats = NDArray[np.float64]
DensityOf = Callable[[Integers, Integers], Floats]
"""From the ids of some documents, one after the other, and their lengths to a density, one value a token."""

_BLOCK_TOKENS = 1 << 20
_SAMPLE_TOKENS = 1 << 21
_HALVINGS = 60
_TO_COUNT = np.empty(0, np.int64)


class _Limits(NamedTuple):
    window: int
    minimum: int
    maximum: int


def dynamic_cut(streams: Streams, settings: Settings) -> ListedCut:
    """Cut streams at a stride that follows a density.

    Kept beside the tokens, save where the density is a function that does not say what it is.

    Args:
        streams: What is cut.
        settings: Window, ``DynamicStride`` and tail.

    Raises:
        TextError: A density is negative, not finite, or not one value a token.
    """
    stride = settings.stride
    assert isinstance(stride, DynamicStride)
    if stride.density_name is None:
        return _list_dynamic(streams, settings, stride)
    declared = (stride.declared(settings.window), settings.tail, int(settings.min_remainder))
    return ListedCut.kept(
        streams, "dynamic", settings.window, declared, lambda: _list_dynamic(streams, settings, stride)
    )


def _list_dynamic(streams: Streams, settings: Settings, stride: DynamicStride) -> ListedCut:
    limits = _Limits(settings.window, stride.minimum, stride.maximum or settings.window)
    density_of = _density_of(stride, streams)
    quantum = _quantum(streams, density_of, stride.mean, limits)
    starts, counts = _starts(streams, density_of, quantum, limits)
    return ListedCut.from_starts(
        streams,
        starts,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([settings.window]),
        settings.window,
        settings.tail,
        settings.min_remainder,
    )


def _starts(
    streams: Streams, density_of: DensityOf, quantum: float, limits: _Limits
) -> tuple[Integers, Integers]:
    """Return all starts (int64 [N]) and how many each stream has (int64 [K])."""
    lengths = np.diff(streams.offsets)
    counts, state = np.zeros(lengths.size, np.int64), np.zeros(4)
    found = [np.empty(0, np.int64)]
    for ids, document_lengths in _blocks(streams):
        starts = np.empty(ids.size, np.int64)
        density = density_of(ids, document_lengths)
        count = dynamic_starts(lengths, density, *_in_kernel_order(limits, quantum), state, starts, counts)
        found.append(starts[:count].copy())
    return np.concatenate(found), counts


def _in_kernel_order(limits: _Limits, quantum: float) -> tuple[int, float, int, int]:
    return limits.window, quantum, limits.minimum, limits.maximum


def _quantum(streams: Streams, density_of: DensityOf, mean: float, limits: _Limits) -> float:
    """Return the quantum with which the mean stride over a sample of the tokens is nearest to ``mean``."""
    ids, document_lengths = _sample(streams)
    density = density_of(ids, document_lengths)
    lengths = np.array([ids.size]) if streams.joined else document_lengths
    low, high = 0.0, float(density.sum()) + 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean_stride(lengths, density, middle, limits) < mean else (low, middle)
    return high


def _mean_stride(lengths: Integers, density: Floats, quantum: float, limits: _Limits) -> float:
    """Return the mean number of tokens from one start to the next; infinite where no stream has two."""
    counts = np.zeros(lengths.size, np.int64)
    starts = np.empty(density.size, np.int64)
    count = dynamic_starts(lengths, density, *_in_kernel_order(limits, quantum), np.zeros(4), starts, counts)
    ends = np.cumsum(counts)[counts > 0] - 1
    strides = count - ends.size
    return float(starts[:count][ends].sum()) / strides if strides else np.inf


def _sample(streams: Streams) -> tuple[Integers, Integers]:
    """Return the ids and lengths of documents that lie evenly over the whole: about 2 million tokens."""
    every = max(1, streams.num_positions // _SAMPLE_TOKENS)
    chosen = range(0, len(streams.tokens), every)
    parts = [streams.ids(document, document + 1) for document in chosen]
    joined = np.concatenate([_TO_COUNT, *parts])
    return joined, np.array([part.size for part in parts], np.int64)


def _blocks(streams: Streams) -> Iterator[tuple[Integers, Integers]]:
    """Yield the ids and lengths of runs of whole documents, about a million tokens at a time."""
    offsets = streams.document_offsets
    begin = 0
    while begin < offsets.size - 1:
        end = int(np.searchsorted(offsets, offsets[begin] + _BLOCK_TOKENS))
        end = min(max(end, begin + 1), offsets.size - 1)
        yield streams.ids(begin, end), np.diff(offsets[begin : end + 1])
        begin = end


def _density_of(stride: DynamicStride, streams: Streams) -> DensityOf:
    if stride.density == "edges":
        return _edges
    if stride.density == "surprisal":
        return _surprisal(streams)
    density = stride.density
    assert callable(density)
    return lambda ids, lengths: _called(density, ids, lengths)


def _edges(ids: Integers, lengths: Integers) -> Floats:
    density = np.empty(ids.size)
    edge_density(lengths, density)
    return density


def _surprisal(streams: Streams) -> DensityOf:
    """Return -log2 of each token's share of all tokens, counted over the whole store."""
    counts = np.zeros(1, np.int64)
    for ids, _ in _blocks(streams):
        missing = int(ids.max(initial=0)) + 1 - counts.size
        counts = np.pad(counts, (0, max(0, missing)))
        count_ids(ids, counts)
    bits = np.log2(max(1, int(counts.sum()))) - np.log2(np.maximum(counts, 1))
    return lambda ids, lengths: bits[ids]


def _called(density: Callable[[Integers], Floats], ids: Integers, lengths: Integers) -> Floats:
    ends = np.cumsum(lengths)
    parts = [_checked(density, ids[end - length : end]) for length, end in zip(lengths, ends, strict=True)]
    return np.concatenate([np.empty(0), *parts])


def _checked(density: Callable[[Integers], Floats], ids: Integers) -> Floats:
    values = _values(density, ids)
    if values.shape != ids.shape or not np.all(values >= 0) or not np.all(np.isfinite(values)):
        low, high = values.min(initial=0), values.max(initial=0)
        raise TextError(
            f"DynamicStride(density=...) gave shape {values.shape} with values from {low} to {high} for "
            f"{ids.size} tokens; expected one finite number of at least 0 a token."
        )
    return values


def _values(density: Callable[[Integers], Floats], ids: Integers) -> Floats:
    """Return what the user's function gives as float64, of whatever shape."""
    try:
        given = density(ids)
    except Exception as error:
        raise TextError(
            f"DynamicStride(density=...) failed on a document of {ids.size} tokens: "
            f"{type(error).__name__}: {error}"
        ) from error
    array = as_array(given)
    if array is None or array.dtype.kind not in "iufb":
        raise TextError(
            f"DynamicStride(density=...) gave {described(given, array)} for {ids.size} tokens; "
            "expected one finite number of at least 0 a token."
        )
    return array.astype(np.float64)
