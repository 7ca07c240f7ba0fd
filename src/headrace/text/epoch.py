"""The windows of one epoch: a whole batch from window numbers, in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.windows_columns import fill_column
from headrace.kernels.windows_fill import IGNORED, fill_batches, hide_seen
from headrace.loading.pool import Fresh
from headrace.loading.space import Batch, Memory
from headrace.text.buckets import BucketedCut
from headrace.text.cuts import Cut
from headrace.text.masking import Masking
from headrace.text.runs import Integers, Runs
from headrace.text.settings import ROW_OUTPUTS, TOKEN_OUTPUTS, Settings
from headrace.text.streams import Streams

LABEL_MASK = "label_mask"
"""The parallel column whose zeros take a token out of the labels."""
LABEL_RULES = {"next": 0, "same": 1}
_POSITION_RULES = {"segment": 0, "window": 1, "document": 2}
_SLOTS = {name: slot for slot, name in enumerate((*TOKEN_OUTPUTS, *ROW_OUTPUTS))}
"""The place of each output among the addresses that the kernel takes; behind them is one for columns."""
_NO_ROW = np.zeros(0, np.int64)
_INT64, _FLOAT32 = np.dtype(np.int64), np.dtype(np.float32)


@dataclass(frozen=True, eq=False)
class WindowEpoch:
    """The windows of one epoch; safe to gather from several threads at once."""

    cut: Cut
    streams: Streams
    settings: Settings
    pad_id: int
    masking: Masking | None = None
    """What hides tokens; None: nothing is hidden."""
    spans: Integers | None = None
    """int64 [D, 2], first and last token of each document's answer, -1 where there is none."""

    def __len__(self) -> int:
        """Return the number of windows."""
        return len(self.cut)

    def gather(self, indices: NDArray[np.int64], keys: NDArray[np.uint64]) -> Batch:
        """Build one batch.

        Args:
            indices: int64 [B], window numbers in ``[0, len(self))``; B may be 0.
            keys: uint64 [B], epoch positions; windows draw nothing by position.

        Returns:
            The arrays that ``outputs`` names, in its order.

        Raises:
            TextError: A window number is outside ``[0, len(self))``.
        """
        return self.gather_run(indices, keys, np.array([0, indices.size]), Fresh())[0]

    def gather_run(
        self, indices: Integers, keys: NDArray[np.uint64], bounds: Integers, memory: Memory
    ) -> list[Batch]:
        """Build several batches: batch b of the windows ``[bounds[b], bounds[b + 1])`` of ``indices``."""
        del keys
        runs = self.cut.runs(indices)
        parts = list(pairwise(bounds.tolist()))
        widths = [self.cut.width(indices[first:end]) for first, end in parts]
        batches, addresses = self._allocate(parts, widths, memory)
        fill_batches(bounds, np.array(widths), addresses, *runs, *self._how)
        if self._is_plain:
            return batches
        return [
            self._finished(batch, runs.of_rows(*part)) for batch, part in zip(batches, parts, strict=True)
        ]

    def _finished(self, batch: Batch, runs: Runs) -> Batch:
        """Return a batch with what is not copied from the tokens alone: masks, columns, spans."""
        if self.masking is not None:
            self.masking.apply(batch, runs)
            if not self.settings.overlap_labels:
                hide_seen(batch["labels"], runs.seen)
        self._fill_columns(batch, runs)
        self._mask_labels(batch, runs)
        if self.spans is not None:
            batch.update(self._window_spans(runs))
        return batch

    @cached_property
    def _is_plain(self) -> bool:
        """Whether a batch is nothing but tokens, and what follows from their places."""
        return self.masking is None and self.spans is None and not self.streams.tokens.columns

    def sample_lengths(self) -> Integers:
        """Return int64 [N], the places that each window takes in a batch, for a token budget."""
        rows, windows = zip(*self.rows_by_window(), strict=True)
        return np.repeat(np.array(windows, np.int64), rows)

    def rows_by_window(self) -> list[tuple[int, int]]:
        """Return (rows, window length) of each bucket."""
        if isinstance(self.cut, BucketedCut):
            return [(len(cut), cut.width(_NO_ROW)) for cut in self.cut.cuts]
        return [(len(self.cut), self.cut.width(_NO_ROW))]

    @cached_property
    def _how(self) -> tuple[Any, ...]:
        """What ``fill_batches`` takes that is the same for every batch."""
        settings, streams = self.settings, self.streams
        return (
            not settings.overlap_labels,
            *streams.places,
            streams.tokens.addresses,
            np.empty(0, streams.tokens.like.dtype.name),  # of NumPy's own dtype object: found at once
            0 if streams.eos is None else streams.eos,
            self.pad_id,
            LABEL_RULES[settings.labels],
            _POSITION_RULES[settings.positions],
            np.empty(0, settings.mask_dtype),
        )

    def _allocate(
        self, parts: list[tuple[int, int]], widths: list[int], memory: Memory
    ) -> tuple[list[Batch], NDArray[np.uint64]]:
        """Return the arrays of each batch, not yet filled, and their addresses."""
        narrow = [(end - first,) for first, end in parts]
        wide = [(end - first, width) for (first, end), width in zip(parts, widths, strict=True)]
        addresses = np.zeros((len(parts), len(_SLOTS) + 1), np.uint64)
        columns: list[list[NDArray[Any]]] = [[]] * len(self.settings.outputs)
        for (is_row, dtype), alike in self._outputs.items():
            shapes = (narrow if is_row else wide) * len(alike)
            arrays, found = memory.allocate(shapes, dtype)
            for number, (place, slot) in enumerate(alike):
                mine = slice(number * len(parts), (number + 1) * len(parts))
                columns[place], addresses[:, slot] = arrays[mine], found[mine]
        names = self.settings.outputs
        return [dict(zip(names, arrays, strict=True)) for arrays in zip(*columns, strict=True)], addresses

    @cached_property
    def _outputs(self) -> dict[tuple[bool, np.dtype[Any]], list[tuple[int, int]]]:
        """By whether it has one value a row, and its dtype: place of each output, and in the addresses."""
        outputs: dict[tuple[bool, np.dtype[Any]], list[tuple[int, int]]] = {}
        for place, name in enumerate(self.settings.outputs):
            alike = outputs.setdefault((name in ROW_OUTPUTS, self._dtype(name)), [])
            alike.append((place, _SLOTS.get(name, len(_SLOTS))))
        return outputs

    def _dtype(self, name: str) -> np.dtype[Any]:
        if name == "attention_mask":
            return np.dtype(self.settings.mask_dtype)
        columns = self.streams.tokens.columns
        is_float = name in columns and columns[name][0].dtype.kind == "f"
        return _FLOAT32 if is_float else _INT64

    def _fill_columns(self, batch: Batch, runs: Runs) -> None:
        for name in self.streams.tokens.columns:
            if name in batch:
                self._fill_column(name, batch[name], runs, shift=0)

    def _mask_labels(self, batch: Batch, runs: Runs) -> None:
        if LABEL_MASK in self.streams.tokens.columns and "labels" in batch:
            target_mask = np.empty(batch["labels"].shape, self._dtype(LABEL_MASK))
            shift = 1 if self.settings.labels == "next" and self.masking is None else 0
            self._fill_column(LABEL_MASK, target_mask, runs, shift)
            batch["labels"][target_mask == 0] = IGNORED

    def _fill_column(self, name: str, out: NDArray[Any], runs: Runs, shift: int) -> None:
        tokens = self.streams.tokens
        column = tokens.column_addresses[name], np.empty(0, tokens.columns[name][0].dtype)
        fill_column(self.streams.segments(runs), *self.streams.places, *column, shift, out)

    def _window_spans(self, runs: Runs) -> Mapping[str, Integers]:
        """Return the answers' first and last token in each row, -1 where the row does not hold it whole."""
        assert self.spans is not None
        begin = runs.position - self.streams.document_offsets[runs.document]
        first, last = self.spans[runs.document, 0] - begin, self.spans[runs.document, 1] - begin
        inside = (self.spans[runs.document, 0] >= 0) & (first >= 0) & (last < runs.size)
        return {"start_positions": np.where(inside, first, -1), "end_positions": np.where(inside, last, -1)}
