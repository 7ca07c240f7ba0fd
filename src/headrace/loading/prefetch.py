"""Threads that make batches ahead of the consumer, and stop when nobody wants them any more."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

_RUN_SECONDS = 0.0005
_LONGEST_RUN = 16


class Failure:
    """An exception that travels to the consumer in place of a batch."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Prefetcher:
    """Makes the results of steps 0, 1, … in threads, and hands them over in order.

    A thread takes a run of steps at a time: one where a step is dear, up to 16
    where it costs microseconds, since to hand over costs as much as a small batch.

    The threads refer to this object and never to the consumer, so that an abandoned
    iterator can be collected and close it.

    Args:
        make: Gives the result of one step; called from several threads at once.
        steps: Number of steps.
        threads: Number of threads, at least 1.
        ahead: Results that may wait for the consumer (more where steps are taken in longer runs).
    """

    def __init__(self, make: Callable[[int], Any], steps: int, threads: int, ahead: int) -> None:
        self._make = make
        self._steps = steps
        self._ahead = max(ahead, 1)
        self._run = 1
        self._claimed = 0
        self._taken = 0
        self._closed = False
        self._process = os.getpid()
        self._ready: dict[int, list[Any]] = {}
        self._own: deque[Any] = deque()
        self._changed = threading.Condition()
        self._room = threading.Condition(self._changed._lock)  # type: ignore[attr-defined]
        self.idle_seconds = 0.0
        self._threads = [
            threading.Thread(target=self._work, name=f"headrace-loader-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def take(self) -> Any:
        """Return the next result, or a ``Failure``; waits for it."""
        if not self._own:
            with self._changed:
                while self._taken not in self._ready:
                    self._changed.wait()
                self._own.extend(self._ready.pop(self._taken))
                self._taken += len(self._own)
                self._room.notify_all()
        return self._own.popleft()

    def close(self) -> None:
        """Stop the threads, wait for them, and forget what was made. May be called more than once."""
        if os.getpid() != self._process:
            return  # a fork has this object, but not its threads, and perhaps a lock that nobody will open
        with self._changed:
            self._closed = True
            self._ready.clear()
            self._changed.notify_all()
            self._room.notify_all()
        if threading.current_thread() not in self._threads:
            for thread in self._threads:
                thread.join()
        self._own.clear()

    def _work(self) -> None:
        while (claim := self._claim()) is not None:
            started = time.perf_counter()
            results = self._make_run(*claim)
            self._hand_over(claim[0], results, time.perf_counter() - started)

    def _claim(self) -> tuple[int, int] | None:
        """Return the first step of the next run and its length; None when there is nothing left to do."""
        with self._room:
            started = time.perf_counter()
            while not self._closed and self._claimed < self._steps and self._is_full():
                self._room.wait()
            self.idle_seconds += time.perf_counter() - started
            if self._closed or self._claimed >= self._steps:
                return None
            first = self._claimed
            length = min(self._run, self._steps - first)
            self._claimed += length
            return first, length

    def _is_full(self) -> bool:
        ahead = max(self._ahead, self._run * (len(self._threads) + 1))
        return self._claimed - self._taken + self._run > ahead

    def _make_run(self, first: int, length: int) -> list[Any]:
        results: list[Any] = []
        for step in range(first, first + length):
            if self._closed:
                break
            try:
                results.append(self._make(step))
            except BaseException as error:  # noqa: BLE001  (it is raised again, in the consumer's thread)
                results.append(Failure(error))
                break
        return results

    def _hand_over(self, first: int, results: list[Any], seconds: float) -> None:
        with self._changed:
            if self._closed:
                return
            self._ready[first] = results
            if results and isinstance(results[-1], Failure):
                self._steps = self._claimed
            each = seconds / max(len(results), 1)
            self._run = max(1, min(_LONGEST_RUN, int(_RUN_SECONDS / max(each, 1e-9))))
            if first == self._taken:
                self._changed.notify_all()
