"""What windows hold and what they leave out, in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from headrace.kernels import windows_tally as tally
from headrace.kernels.windows_fill import IGNORED
from headrace.text.epoch import LABEL_MASK, LABEL_RULES, WindowEpoch

_BLOCK_ROWS = 1 << 16


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
    the first of each row. 0 with ``labels="next"``, save what is left out."""
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


def summarize(epoch: WindowEpoch) -> Summary:
    """Count what the windows of one epoch hold: one pass over rows, reading no token.

    Where labels depend on values (a label mask, masked tokens) the batches are made for it.
    """
    counters = _tally(epoch)
    streams, tokens = epoch.streams, epoch.streams.tokens
    places = _places(epoch)
    held, new = int(counters[tally.TOKENS]), int(counters[tally.NEW_TOKENS])
    labels, without = _labels(epoch, counters)
    return Summary(
        windows=len(epoch),
        documents=len(tokens),
        documents_left_out=_documents_left_out(epoch),
        tokens=tokens.num_tokens,
        eos_added=streams.eos_added,
        tokens_left_out=_times(epoch, streams.num_positions) - new,
        tokens_in_rows=held,
        repetition=held / new if new else 1.0,
        padding=places - held,
        padding_share=(places - held) / places if places else 0.0,
        live_labels=labels,
        rows_without_label=without,
        unscored_targets=int(counters[tally.UNSCORED]) if epoch.settings.labels == "same" else 0,
        segments=int(counters[tally.SEGMENTS]),
        segments_continued=int(counters[tally.SPLIT_SEGMENTS]),
        max_position=_max_position(epoch, counters),
    )


def _blocks(epoch: WindowEpoch) -> Iterator[NDArray[np.int64]]:
    for first in range(0, len(epoch), _BLOCK_ROWS):
        yield np.arange(first, min(first + _BLOCK_ROWS, len(epoch)))


def _tally(epoch: WindowEpoch) -> NDArray[np.int64]:
    counters = np.zeros(tally.COUNTERS, np.int64)
    for indices in _blocks(epoch):
        runs = epoch.cut.runs(indices)
        tally.tally_rows(
            runs.row_runs,
            runs.position,
            runs.size,
            runs.document,
            runs.seen,
            epoch.streams.document_offsets,
            not epoch.settings.overlap_labels,
            LABEL_RULES[epoch.settings.labels],
            counters,
        )
    return counters


def _places(epoch: WindowEpoch) -> int:
    """Return the places of all rows, each as wide as its own bucket."""
    return sum(count * window for count, window in epoch.rows_by_window())


def _times(epoch: WindowEpoch, positions: int) -> int:
    """Return how often all tokens are cut: once for each window length."""
    return positions * len(epoch.rows_by_window())


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


def _labels(epoch: WindowEpoch, counters: NDArray[np.int64]) -> tuple[int, int]:
    """Return the live labels, and the rows without one."""
    by_value = epoch.masking is not None or LABEL_MASK in epoch.streams.tokens.columns
    if not by_value or "labels" not in epoch.settings.outputs:
        return int(counters[tally.LABELS]), int(counters[tally.ROWS_WITHOUT_LABEL])
    labels, without = 0, 0
    for indices in _blocks(epoch):
        for part in np.array_split(indices, max(1, indices.size // 1024)):
            live = (epoch.gather(part, part.astype(np.uint64))["labels"] != IGNORED).sum(axis=1)
            labels, without = labels + int(live.sum()), without + int((live == 0).sum())
    return labels, without


def _max_position(epoch: WindowEpoch, counters: NDArray[np.int64]) -> int:
    if epoch.settings.positions == "document":
        return int(counters[tally.MAX_DOCUMENT_POSITION])
    if epoch.settings.positions == "segment":
        return int(counters[tally.MAX_SEGMENT_POSITION])
    return max(0, int(counters[tally.LONGEST]) - 1)
