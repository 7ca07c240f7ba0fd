"""Threads that make batches ahead of the consumer, and stop when nobody wants them any more."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from headrace.errors import LoaderError
from headrace.loading.runs import Failure, RunLength, results_of

_PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
_LAST = 4
"""Runs over which the consumer's own time is looked at: one of them may be long by chance."""


class _Run(NamedTuple):
    """Consecutive steps that a thread makes in one go."""

    first: int
    length: int
    results: SimpleQueue[tuple[list[Any], float]]
    """Where the thread puts what it made, and the seconds that it took."""


class Prefetcher:
    """Makes the results of steps 0, 1, … in threads, and hands them over in order.

    A thread takes a run of steps at a time (see ``RunLength``), since to hand over costs as much as
    a small batch.

    The consumer deals out the runs: whenever it takes the results of one, it asks for others, so
    that as many steps as agreed are asked for and not yet taken. While it makes runs itself, a thread
    for which no processor is left steps aside. The threads refer to this object and never to the
    consumer, so that an abandoned iterator can be collected and close it.

    Args:
        make_run: Gives the results of some steps, from the first step and their number; called from
            several threads at once. Where it raises for several steps they are made one by one.
        steps: Number of steps.
        threads: Number of threads, at least 1.
        ahead: Results that may wait for the consumer (more where steps are taken in longer runs).
        size_of: Gives the bytes of a result.
        shares: Whether the consumer's thread may make runs where it would wait: the first one, if it comes
            before the threads, and others where it takes them faster than they are made.
    """

    def __init__(
        self,
        make_run: Callable[[int, int], Sequence[Any]],
        steps: int,
        threads: int,
        ahead: int,
        size_of: Callable[[Any], int] = lambda result: 0,
        shares: bool = False,
    ) -> None:
        self._make_run = make_run
        self._shares = shares
        # most runs that are made at once, and how many threads make runs while the consumer does
        self._makers = max(threads, min(threads + 1, _PROCESSORS)) if shares else threads
        self._beside = min(threads, _PROCESSORS - 1) if shares else threads
        self._consumer_is_away = threading.Event()
        self._consumer_is_away.set()
        self._length = RunLength(size_of, self._makers)
        self._steps = steps
        self._ahead = max(ahead, threads, 1)
        self._asked = 0
        self._taken = 0
        self._closed = False
        self._process = os.getpid()
        self._wanted: SimpleQueue[_Run | None] = SimpleQueue()
        self._coming: deque[_Run] = deque()
        self._own: deque[Any] = deque()
        self._seconds = 0.0
        self._left_at = time.perf_counter()
        self._away: deque[float] = deque(maxlen=_LAST)
        self.idle_seconds = 0.0
        self._threads = [
            threading.Thread(target=self._work, args=(number,), name=f"headrace-loader-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()
        self._ask()

    def take(self) -> Any:
        """Return the next result, or a ``Failure``; waits for it."""
        if not self._own:
            self._take_run()
        return self._own.popleft()

    def _take_run(self) -> None:
        if os.getpid() != self._process:
            raise LoaderError("this iterator was begun in another process, whose threads are not here.")
        run = self._coming.popleft()
        self._away.append(time.perf_counter() - self._left_at)
        if self._shares and self._gains(min(self._away)):
            self._consumer_is_away.clear()
            while run.results.empty() and self._make_one():
                pass
        else:
            self._consumer_is_away.set()
        results, self._seconds = run.results.get()
        self._own.extend(results)
        self._taken += len(results)
        if not isinstance(results[-1], Failure):
            self._length.measure(results, self._seconds)
            self._ask()
        self._left_at = time.perf_counter()

    def _gains(self, away: float) -> bool:
        """Say whether the consumer gains by making a run itself where it would wait, after ``away`` seconds.

        In the time m in which it makes one run, T threads make T others, which then lie there; that it
        takes all of them in m + (T + 1) away, and not (T + 1) m / T, holds where T (T + 1) away < m. Where
        a thread steps aside for it, all that is gained is that no more threads than processors are awake:
        half of that time.
        """
        if not self._taken:
            return True  # sooner than a thread is awake
        threads = len(self._threads)
        gained = self._seconds if threads == self._beside else self._seconds / 2
        return threads * (threads + 1) * away < gained

    def _make_one(self) -> bool:
        """Make a run that no thread has begun; return whether there was one."""
        try:
            run = self._wanted.get_nowait()
        except Empty:
            return False
        assert run is not None  # None ends threads, and the consumer asks for nothing after that
        interrupt = self._make(run)
        if interrupt is not None:  # of this thread: raised at once, and not when the run's turn comes
            raise interrupt
        return True

    def _ask(self) -> None:
        """Ask the threads for as many steps as may be under way."""
        length = self._length.steps
        ahead = max(self._ahead, length * (self._makers + 1))
        while self._asked < self._steps and self._asked + length - self._taken <= ahead:
            run = _Run(self._asked, min(length, self._steps - self._asked), SimpleQueue())
            self._asked += run.length
            self._coming.append(run)
            self._wanted.put(run)

    def close(self) -> None:
        """Stop the threads, wait for them, and forget what was made. May be called more than once."""
        if os.getpid() != self._process:
            return  # a fork has this object, but not its threads, and perhaps a lock that nobody will open
        self._closed = True
        self._consumer_is_away.set()
        for _ in self._threads:
            self._wanted.put(None)
        if threading.current_thread() not in self._threads:
            for thread in self._threads:
                thread.join()
        self._coming.clear()
        self._own.clear()

    def _work(self, number: int) -> None:
        while (run := self._next(number)) is not None:
            self._make(run)

    def _next(self, number: int) -> _Run | None:
        """Return the run that a thread makes next; None if there is nothing to do any more.

        A thread for which no processor is left, while the consumer makes runs, makes none.
        """
        if number >= self._beside:
            self._consumer_is_away.wait()
        started = time.perf_counter()
        run = self._wanted.get()
        self.idle_seconds += time.perf_counter() - started
        return run

    def _make(self, run: _Run) -> BaseException | None:
        """Make a run for whoever takes it; return what interrupted it, such as Ctrl-C, and is no failure."""
        begun = time.perf_counter()
        results = results_of(self._make_run, run.first, run.length, self._is_closed)
        interrupt = _interrupt_of(results)
        run.results.put((results, time.perf_counter() - begun))
        return interrupt

    def _is_closed(self) -> bool:
        return self._closed


def _interrupt_of(results: Sequence[Any]) -> BaseException | None:
    """Return what ended a run and is no error of its batches; None where there is no such thing."""
    last = results[-1] if results else None
    error = last.error if isinstance(last, Failure) else None
    return None if isinstance(error, Exception) else error
