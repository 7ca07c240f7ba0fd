"""What windows hold and what they leave out, in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from headrace.kernels import windows_tally as tally
from headrace.kernels.windows_fill import IGNORED
from headrace.text.buckets import BucketedCut
from headrace.text.cuts import Cut, ListedCut, StrideCut
from headrace.text.epoch import LABEL_MASK, LABEL_RULES, WindowEpoch
from headrace.text.runs import Integers

_BLOCK_ROWS = 1 << 16
_GATHERED_ROWS = 1 << 10


@dataclass(frozen=True)
class Summary:
    """What the windows of one epoch hold; ``str()`` of it is a table."""

    windows: int
    """Rows."""
    documents: int
    """Documents in the store, empty ones included."""
    documents_left_out: int
    """Documents with tokens of which no row holds one."""
    tokens: int
    """Tokens in the store."""
    eos_added: int
    """End tokens that were added."""
    tokens_left_out: int
    """Tokens, added ones included, that no row holds."""
    tokens_in_rows: int
    """Tokens of all rows, repeated ones counted as often as they come."""
    repetition: float
    """Tokens in rows by tokens that are in a row at all; 1.0: none is repeated."""
    padding: int
    """Places of rows without a token."""
    padding_share: float
    """Padding by all places."""
    live_labels: int
    """Labels that are not -100."""
    rows_without_label: int
    """Rows all of whose labels are -100."""
    unscored_targets: int
    """Tokens that are no label in any row, though their document began before: with ``labels="same"``
    the first of each row. 0 with ``labels="next"``, save what is left out. With several window lengths
    those of each are summed."""
    segments: int
    """Parts of documents in rows."""
    segments_continued: int
    """Parts that do not begin their document."""
    max_position: int
    """The largest value in ``position_ids``."""

    def __str__(self) -> str:
        names = [field.name for field in fields(self)]
        width = max(map(len, names))
        return "\n".join(f"{name.replace('_', ' '):<{width}}  {_text(getattr(self, name))}" for name in names)


def _text(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


@dataclass
class _Tally:
    """Sums over blocks of rows."""

    counters: Integers
    tokens: int = 0
    new: int = 0
    labels: int = 0
    without_label: int = 0
    longest: int = 0

    def add(self, epoch: WindowEpoch, indices: Integers) -> None:
        """Count what some rows hold."""
        runs = epoch.cut.runs(indices)
        sizes, live = np.zeros((2, indices.size), np.int64)
        tally.tally_segments(
            epoch.streams.segments(runs),
            runs.seen,
            epoch.streams.document_offsets,
            not epoch.settings.overlap_labels,
            LABEL_RULES[epoch.settings.labels],
            self.counters,
            sizes,
            live,
        )
        self.tokens += int(sizes.sum())
        self.new += int((sizes - runs.seen).sum())
        self.longest = max(self.longest, int(sizes.max(initial=0)))
        live = _live_by_value(epoch, indices) if _labels_by_value(epoch) else live
        self.labels += int(live.sum())
        self.without_label += int(np.count_nonzero(live == 0))

    def max_position(self, positions: str) -> int:
        """Return the largest position id; 0 where there is none."""
        if positions == "window":
            return max(0, self.longest - 1)
        in_document = positions == "document"
        return int(self.counters[tally.LAST_IN_DOCUMENT if in_document else tally.LAST_IN_SEGMENT])


def summarize(epoch: WindowEpoch) -> Summary:
    """Count what the windows of one epoch hold: one pass over rows, reading no token.

    Where labels depend on values (a label mask, masked tokens) the batches are made for it.
    """
    found = _Tally(np.zeros(tally.COUNTERS, np.int64))
    for indices in _blocks(epoch):
        found.add(epoch, indices)
    streams, counters = epoch.streams, found.counters
    places = sum(count * window for count, window in epoch.rows_by_window())
    held = _tokens_held(epoch.cut) if isinstance(epoch.cut, BucketedCut) else found.new
    return Summary(
        windows=len(epoch),
        documents=len(streams.tokens),
        documents_left_out=_documents_left_out(epoch),
        tokens=streams.tokens.num_tokens,
        eos_added=streams.eos_added,
        tokens_left_out=streams.num_positions - held,
        tokens_in_rows=found.tokens,
        repetition=found.tokens / held if held else 1.0,
        padding=places - found.tokens,
        padding_share=(places - found.tokens) / places if places else 0.0,
        live_labels=found.labels,
        rows_without_label=found.without_label,
        unscored_targets=int(counters[tally.UNSCORED]) if epoch.settings.labels == "same" else 0,
        segments=int(counters[tally.SEGMENTS]),
        segments_continued=int(counters[tally.CONTINUED]),
        max_position=found.max_position(epoch.settings.positions),
    )


def _blocks(epoch: WindowEpoch) -> Iterator[Integers]:
    for first in range(0, len(epoch), _BLOCK_ROWS):
        yield np.arange(first, min(first + _BLOCK_ROWS, len(epoch)))


def _tokens_held(cut: BucketedCut) -> int:
    """Return the tokens that some row holds: of each stream those up to the end of its furthest last row."""
    return int(np.max([_held_of_streams(one) for one in cut.cuts], axis=0).sum())


def _held_of_streams(cut: Cut) -> Integers:
    """Return int64 [K], the tokens of each stream up to the end of its last row."""
    assert isinstance(cut, StrideCut | ListedCut)
    present = np.flatnonzero(np.diff(cut.cumulative))
    last = cut.runs(cut.cumulative[present + 1] - 1)
    held = np.zeros(cut.cumulative.size - 1, np.int64)
    held[present] = last.position + last.size - cut.streams.offsets[present]
    return held


def _documents_left_out(epoch: WindowEpoch) -> int:
    """Return the documents with tokens of which no row holds one."""
    streams = epoch.streams
    held = np.zeros(len(streams.tokens) + 1, np.int64)
    for indices in _blocks(epoch):
        runs = epoch.cut.runs(indices)
        np.add.at(held, runs.document, 1)
        np.add.at(held, streams.documents_at(runs.position + runs.size - 1) + 1, -1)
    without = np.cumsum(held)[:-1] == 0
    return int(np.count_nonzero(without & (np.diff(streams.document_offsets) > 0)))


def _labels_by_value(epoch: WindowEpoch) -> bool:
    """Whether lengths alone do not tell which labels are live."""
    by_value = epoch.masking is not None or LABEL_MASK in epoch.streams.tokens.columns
    return by_value and "labels" in epoch.settings.outputs


def _live_by_value(epoch: WindowEpoch, indices: Integers) -> Integers:
    """Return int64 [B], the live labels of each row, from the batches themselves."""
    parts = np.array_split(indices, max(1, indices.size // _GATHERED_ROWS))
    live = [epoch.gather(part, part.astype(np.uint64))["labels"] != IGNORED for part in parts]
    return np.concatenate([np.count_nonzero(part, axis=1) for part in live])
