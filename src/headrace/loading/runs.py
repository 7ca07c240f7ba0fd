"""Runs of steps: how many are made in one go, and what stands for one that fails."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

_LONGEST_RUN = 16
_RUN_BYTES = 3 << 20
_BYTES_UNDER_WAY = 16 << 20
_RUN_SECONDS = 0.002

MakeRun: TypeAlias = Callable[[int, int], Sequence[Any]]
"""Gives the results of some steps, from the first step and their number."""


class Failure:
    """An exception that travels to the consumer in place of a batch."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class RunLength:
    """How many steps to make in one go.

    One at first, so that the first result comes soon, then twice as many each time, up to 16, to
    2 ms of work, or to about so many bytes that what is under way fits in a cache: 16 MiB divided by
    one more than there are makers, but 3 MiB at least.

    Args:
        size_of: Gives the bytes of a result.
        makers: Threads that make runs.
        longest: Most steps of a run.
    """

    def __init__(self, size_of: Callable[[Any], int], makers: int = 1, longest: int = _LONGEST_RUN) -> None:
        self.steps = 1
        self._size_of = size_of
        self._longest = longest
        self._bytes = max(_RUN_BYTES, _BYTES_UNDER_WAY // (makers + 1))

    def measure(self, results: Sequence[Any], seconds: float) -> None:
        """Set the next length by a run that was made: by the bytes of its last result, and its seconds."""
        size, each = self._size_of(results[-1]), seconds / len(results)
        fitting = min(round(self._bytes / max(size, 1)), int(_RUN_SECONDS / max(each, 1e-9)))
        self.steps = max(1, min(self._longest, 2 * self.steps, fitting))


class OnDemand:
    """Makes the results of steps 0, 1, … in the consumer's own thread, when they are asked for.

    Args:
        make_run: Makes the results of some steps; where it raises for several they are made one by one.
        steps: Number of steps.
        length: How many to make in one go: what is made too early waits here.
    """

    def __init__(self, make_run: MakeRun, steps: int, length: RunLength) -> None:
        self._make_run = make_run
        self._steps = steps
        self._length = length
        self._made = 0
        self._waiting: deque[Any] = deque()

    def take(self) -> Any:
        """Return the next result, or a ``Failure``."""
        if not self._waiting:
            self._make()
        return self._waiting.popleft()

    def _make(self) -> None:
        started = time.perf_counter()
        count = min(self._length.steps, self._steps - self._made)
        results = results_of(self._make_run, self._made, count, lambda: False)
        self._made += len(results)
        self._waiting.extend(results)
        if not isinstance(results[-1], Failure):
            self._length.measure(results, time.perf_counter() - started)

    def close(self) -> None:
        """Forget what was made."""
        self._waiting.clear()


def results_of(make_run: MakeRun, first: int, count: int, is_over: Callable[[], bool]) -> list[Any]:
    """Return the results of some steps; up to the first that fails, which is a ``Failure``.

    Args:
        make_run: Makes the results; where it raises for several steps they are made one by one.
        first: The first step.
        count: How many.
        is_over: Says that nobody wants them any more: the rest is not made.
    """
    if count > 1 and not is_over():
        try:
            return list(make_run(first, count))
        except BaseException as error:  # noqa: BLE001  (it is raised again, in the consumer's thread)
            if not isinstance(error, Exception):
                return [Failure(error)]
    return _one_by_one(make_run, range(first, first + count), is_over)


def _one_by_one(make_run: MakeRun, steps: Sequence[int], is_over: Callable[[], bool]) -> list[Any]:
    results: list[Any] = []
    for step in steps:
        if is_over():
            break
        try:
            results.extend(make_run(step, 1))
        except BaseException as error:  # noqa: BLE001  (it is raised again, in the consumer's thread)
            results.append(Failure(error))
            break
    return results
