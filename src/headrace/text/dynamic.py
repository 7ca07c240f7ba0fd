"""Windows whose stride follows the text: a density, and the quantum that gives the wanted mean stride."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from headrace.errors import TextError
from headrace.kernels.windows_dynamic import count_ids, dynamic_starts, edge_density
from headrace.text.cuts import ListedCut
from headrace.text.given_arrays import as_array, described
from headrace.text.runs import Integers
from headrace.text.settings import DynamicStride, Settings
from headrace.text.streams import Streams

Floats = NDArray[np.float64]

_BLOCK_TOKENS = 1 << 20
_SAMPLE_TOKENS = 1 << 21
_PIECE_TOKENS = 1 << 14
_PIECE_WINDOWS = 8
_HALVINGS = 60
_TOLERANCE = 0.005
"""A mean stride that is further from the wanted one is corrected by one more walk."""
_MOST_COUNTED = 1 << 26


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
    density = _density_of(stride, streams)
    quantum = _quantum(streams, density, stride.mean, limits)
    starts, counts = _starts(streams, density, quantum, limits)
    found = _mean(starts, counts)
    if _is_sampled(streams) and _TOLERANCE < abs(found / stride.mean - 1) < np.inf:
        starts, counts = _starts(streams, density, quantum * stride.mean / found, limits)
    return ListedCut.from_starts(
        streams,
        starts,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([settings.window]),
        settings.window,
        settings.tail,
        settings.min_remainder,
    )


def _starts(streams: Streams, density: Density, quantum: float, limits: _Limits) -> tuple[Integers, Integers]:
    """Return all starts (int64 [N]) and how many each stream has (int64 [K])."""
    lengths = np.diff(streams.offsets)
    counts, state = np.zeros(lengths.size, np.int64), np.zeros(4)
    found = [np.empty(0, np.int64)]
    for begin, end in _blocks(streams, density.of_whole_documents):
        starts = np.empty(end - begin, np.int64)
        values = density.at(begin, end)
        count = dynamic_starts(lengths, values, *_in_kernel_order(limits, quantum), state, starts, counts)
        found.append(starts[:count].copy())
    return np.concatenate(found), counts


def _in_kernel_order(limits: _Limits, quantum: float) -> tuple[int, float, int, int]:
    return limits.window, quantum, limits.minimum, limits.maximum


def _quantum(streams: Streams, density: Density, mean: float, limits: _Limits) -> float:
    """Return the quantum with which the mean stride over a sample of the tokens is nearest to ``mean``."""
    begins, ends = _sample(streams, None if density.of_whole_documents else limits.window)
    parts = [density.at(begin, end) for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
    values = np.concatenate([np.empty(0), *parts])
    lengths = np.array([values.size]) if streams.joined else ends - begins
    with np.errstate(over="ignore"):
        low, high = 0.0, float(values.sum()) + 1.0
    if not np.isfinite(high):
        raise TextError(
            "DynamicStride(density=...): the sum over the tokens is not finite. Scale the density down; only "
            "its shares matter."
        )
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean_stride(lengths, values, middle, limits) < mean else (low, middle)
    return high


def _mean_stride(lengths: Integers, density: Floats, quantum: float, limits: _Limits) -> float:
    """Return the mean number of tokens from one start to the next over a sample."""
    counts = np.zeros(lengths.size, np.int64)
    starts = np.empty(density.size, np.int64)
    count = dynamic_starts(lengths, density, *_in_kernel_order(limits, quantum), np.zeros(4), starts, counts)
    return _mean(starts[:count], counts)


def _mean(starts: Integers, counts: Integers) -> float:
    """Return the mean stride of starts (int64 [N]), ``counts`` a stream; infinite where none has two."""
    ends = np.cumsum(counts)[counts > 0] - 1
    strides = starts.size - ends.size
    return float(starts[ends].sum()) / strides if strides else np.inf


def _is_sampled(streams: Streams) -> bool:
    """Whether there are more tokens than are looked at for the quantum."""
    return streams.num_positions >= 2 * _SAMPLE_TOKENS


def _sample(streams: Streams, window: int | None) -> tuple[Integers, Integers]:
    """Return where parts begin and end that lie evenly over the whole: about 2 million tokens.

    Args:
        streams: What is cut.
        window: A part is a document, or a piece of a long one that holds many windows of this length;
            None: documents are not cut.
    """
    offsets = streams.document_offsets
    lengths = np.diff(offsets)
    every = streams.num_positions // _SAMPLE_TOKENS if _is_sampled(streams) else 1
    longest = int(lengths.max(initial=1))
    piece = longest if window is None or every == 1 else max(_PIECE_TOKENS, _PIECE_WINDOWS * window)
    before = np.concatenate([[0], np.cumsum(np.maximum(1, -(-lengths // max(1, piece))))])
    parts = np.arange(min(every, int(before[-1])) // 2, before[-1], every)
    document = np.searchsorted(before, parts, side="right") - 1
    begins = offsets[document] + (parts - before[document]) * piece
    return begins, np.minimum(begins + piece, offsets[document + 1])


def _blocks(streams: Streams, of_whole_documents: bool) -> Iterator[tuple[int, int]]:
    """Yield where runs of about a million positions begin and end."""
    offsets, begin = streams.document_offsets, 0
    while begin < streams.num_positions:
        end = min(begin + _BLOCK_TOKENS, streams.num_positions)
        if of_whole_documents:
            end = int(offsets[np.searchsorted(offsets, end)])
        yield begin, end
        begin = end


class Density(Protocol):
    """A density of the positions of streams."""

    @property
    def of_whole_documents(self) -> bool:
        """Whether it is asked for whole documents alone."""
        ...

    def at(self, begin: int, end: int) -> Floats:
        """Return float64 [end - begin], the density at these positions."""
        ...


def _density_of(stride: DynamicStride, streams: Streams) -> Density:
    if stride.density == "edges":
        return _Edges(streams)
    if stride.density == "surprisal":
        return _Surprisal(streams, _bits(streams))
    assert callable(stride.density)
    return _Called(streams, stride.density)


@dataclass(frozen=True)
class _Edges:
    """High at both ends of documents; known from lengths alone."""

    streams: Streams
    of_whole_documents: bool = False

    def at(self, begin: int, end: int) -> Floats:
        density = np.empty(end - begin)
        edge_density(self.streams.document_offsets, begin, density)
        return density


@dataclass(frozen=True)
class _Surprisal:
    """-log2 of each token's share of all tokens."""

    streams: Streams
    bits: Floats
    """float64 [V], of each id."""
    of_whole_documents: bool = False

    def at(self, begin: int, end: int) -> Floats:
        density: Floats = self.bits[self.streams.ids(begin, end)]
        return density


def _bits(streams: Streams) -> Floats:
    """Return -log2 of each id's share of all tokens, counted over the whole store."""
    counts = np.zeros(1, np.int64)
    for begin, end in _blocks(streams, of_whole_documents=False):
        ids = streams.ids(begin, end)
        smallest, largest = int(ids.min(initial=0)), int(ids.max(initial=0))
        if smallest < 0 or largest >= _MOST_COUNTED:
            raise TextError(
                f"DynamicStride('surprisal') counts how often each id comes, and ids run from {smallest} to "
                f"{largest}; expected [0, {_MOST_COUNTED}). Mend the tokens, or give a function as density."
            )
        counts = np.pad(counts, (0, max(0, largest + 1 - counts.size)))
        count_ids(ids, counts)
    bits: Floats = np.log2(max(1, int(counts.sum()))) - np.log2(np.maximum(counts, 1))
    return bits


@dataclass(frozen=True)
class _Called:
    """A function of the user's own, which sees whole documents."""

    streams: Streams
    function: Callable[[Integers], Floats]
    of_whole_documents: bool = True

    def at(self, begin: int, end: int) -> Floats:
        offsets = self.streams.document_offsets
        first, last = np.searchsorted(offsets, [begin, end])
        cuts = offsets[first + 1 : last] - begin
        documents = np.split(self.streams.ids(begin, end), cuts)
        return np.concatenate([np.empty(0), *(_checked(self.function, ids) for ids in documents if ids.size)])


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
