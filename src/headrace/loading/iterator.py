"""One pass over an epoch: hands batches to the consumer, and ends cleanly however it ends."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from typing import Any

from headrace.errors import LoaderError
from headrace.loading.maker import Made, Pass
from headrace.loading.output import bytes_of
from headrace.loading.prefetch import Prefetcher
from headrace.loading.progress import Progress
from headrace.loading.runs import Failure, OnDemand, RunLength


class LoaderIterator(Iterator[dict[str, Any]]):
    """The batches of one pass.

    Threads end when the pass does: at its last batch, at an exception, at ``close()``,
    when the iterator is collected, and at interpreter exit.

    Args:
        run: The pass.
        threads: Threads that make batches ahead; 0 makes them in the consumer's, when they are asked for.
        ahead: Batches that may wait for the consumer.
        progress: Shows how far the pass is, or None.
    """

    def __init__(self, run: Pass, threads: int, ahead: int, progress: Progress | None = None) -> None:
        self._run = run
        self._maker = run.maker
        self._clock = run.maker.clock
        self._moves = run.maker.converter.moves
        self._steps = len(run.maker.plan)
        self._step = 0
        self._progress = progress
        self._left_at: float | None = None
        self._over = False
        threads = min(threads, self._steps)
        maker = run.maker
        self._source: Prefetcher | OnDemand
        if threads:
            shares = maker.makes_runs
            self._source = Prefetcher(maker.make_run, self._steps, threads, ahead, _size_of, shares)
            maker.clock.count_idle(self._source)
        else:
            length = RunLength(_size_of) if maker.makes_runs else RunLength(_size_of, longest=1)
            self._source = OnDemand(maker.make_run, self._steps, length)
        self._close = weakref.finalize(self, _close, self._source, progress)

    def __iter__(self) -> LoaderIterator:
        return self

    def __len__(self) -> int:
        """Return how many batches are left."""
        return self._steps - self._step

    def __next__(self) -> dict[str, Any]:
        try:
            return self._next()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the threads and forget what they made; the iterator is over."""
        self._over = True
        if isinstance(self._source, Prefetcher):
            self._clock.idle += self._source.idle_seconds
            self._source.idle_seconds = 0.0
        self._close()

    def _next(self) -> dict[str, Any]:
        if self._over or self._step >= self._steps or not self._run.is_current(self._run):
            self._end()
        clock = self._clock
        arrived = time.perf_counter()
        if self._left_at is not None:
            clock.consumer += arrived - self._left_at
        made = self._source.take()
        if isinstance(made, Failure):
            raise made.error
        batch = self._moved(made.batch) if self._moves else made.batch
        self._step += 1
        clock.batches += 1
        clock.samples += made.samples
        self._run.deliver(made)
        if self._progress is not None:
            self._progress.advance(made.samples)
        self._left_at = time.perf_counter()
        clock.waited += self._left_at - arrived
        return batch

    def _end(self) -> None:
        """Raise: there is no next batch, or not of this pass."""
        if self._over:
            raise StopIteration
        if not self._run.is_current(self._run):
            raise LoaderError(
                "another pass, another epoch or a loaded state has taken the place of this iterator; "
                "go on with a new iter(loader)."
            )
        self._over = True
        self._run.finish()
        raise StopIteration

    def _moved(self, batch: dict[str, Any]) -> dict[str, Any]:
        started = time.perf_counter()
        batch = self._maker.converter.move(batch)
        self._clock.lap("copy", started)
        return batch


def _close(source: Prefetcher | OnDemand, progress: Progress | None) -> None:
    source.close()
    if progress is not None:
        progress.close()


def _size_of(made: Made) -> int:
    return bytes_of(made.batch)
