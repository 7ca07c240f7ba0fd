"""The centres of one epoch: the tokens that it keeps, and whole minibatches of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import CorpusError
from headrace.fit.vocabulary import Vocabulary
from headrace.kernels.skipgram import draw_windows, fill_batch
from headrace.loading.pool import Fresh
from headrace.loading.space import Batch, Memory
from headrace.word2vec.noise import Noise
from headrace.word2vec.settings import Settings

_INT64 = np.dtype(np.int64)
_WIDE = ("contexts_negatives", "masks", "labels")


@dataclass(frozen=True, eq=False)
class Epoch:
    """The centres of one epoch: the kept tokens, and a gather over them."""

    settings: Settings
    """What a sample is."""
    noise: Noise
    """What negatives are drawn from."""
    vocabulary: Vocabulary
    """Names words in errors."""
    kept: NDArray[np.unsignedinteger[Any]]
    """uint16 or uint32 [T'], see ``headrace.kernels.skipgram``."""
    key: np.uint64
    """Key of the stream that windows and negatives are drawn from, by epoch position."""

    def __len__(self) -> int:
        """Return the number of centres."""
        return len(self.kept)

    @property
    def words(self) -> NDArray[np.unsignedinteger[Any]]:
        """The kept tokens' word ids, uint16 or uint32 [T']."""
        return self.kept & self.kept.dtype.type(np.iinfo(self.kept.dtype).max >> 1)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """int64 [N' + 1], where the sentences that are left begin in ``words``."""
        starts = np.flatnonzero(self.kept >> self.kept.dtype.type(8 * self.kept.itemsize - 1))
        return np.append(starts, len(self.kept))

    def gather(self, indices: NDArray[np.int64], keys: NDArray[np.uint64]) -> Batch:
        """Build one minibatch: see ``CenterSpace`` for its arrays.

        Raises:
            CorpusError: Every word is a context of one centre, and ``exhausted`` is ``"error"``.
        """
        return self._gather(indices, keys, Fresh())

    def gather_run(
        self,
        indices: NDArray[np.int64],
        keys: NDArray[np.uint64],
        bounds: NDArray[np.int64],
        memory: Memory,
    ) -> list[Batch]:
        """Build several minibatches: batch b of the centres ``[bounds[b], bounds[b + 1])`` of ``indices``."""
        return [self._gather(indices[a:b], keys[a:b], memory) for a, b in pairwise(bounds.tolist())]

    def _gather(self, indices: NDArray[np.int64], keys: NDArray[np.uint64], memory: Memory) -> Batch:
        settings, noise = self.settings, self.noise
        reach, most = draw_windows(self.kept, indices, keys, self.key, settings.window)
        batch = _empty_batch(len(indices), self._width(most), memory)
        wrong = fill_batch(
            self.kept,
            indices,
            keys,
            reach,
            self.key,
            settings.per_context,
            settings.per_center,
            settings.predicts_center,
            noise.table,
            noise.cumulative,
            *batch.values(),
        )
        if wrong >= 0 and settings.exhausted == "error":
            raise CorpusError(self._nothing_left(batch, wrong, int(keys[wrong])))
        return batch

    def _width(self, most: int) -> int:
        settings = self.settings
        return settings.columns(2 * settings.window if settings.width == "max" else most)

    def _nothing_left(self, batch: Batch, row: int, place: int) -> str:
        tokens = self.vocabulary.to_tokens
        live = batch["contexts_negatives"][row][batch["labels"][row] == 1]
        return (
            f"centre {tokens(int(batch['centers'][row, 0]))!r} at epoch position {place}: every word that "
            f"could be drawn as noise is one of its contexts {tokens(live)}. Take a smaller window or "
            "a larger corpus, or exhausted='mask' to have such rows without negatives."
        )


def _empty_batch(rows: int, width: int, memory: Memory) -> Batch:
    """Return the four arrays, not yet written, in the order of ``load_data_ptb``'s tuple."""
    (centers,), _ = memory.allocate([(rows, 1)], _INT64)
    wide, _ = memory.allocate([(rows, width)] * len(_WIDE), _INT64)
    return {"centers": centers, **dict(zip(_WIDE, wide, strict=True))}
