"""Threads of this machine: results in the order of the tasks, a bounded number of them under way."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def default_threads() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_in_order(function: Callable[[Task], Result], tasks: Iterable[Task], threads: int) -> Iterator[Result]:
    """Yield ``function(task)`` for each task, in the order of the tasks.

    Args:
        function: What is done; it should release the GIL for most of its time.
        tasks: Taken one by one, at most ``threads`` ahead of the results.
        threads: How many run at once.

    Raises:
        Exception: Whatever the first failing task raised; tasks that have not begun are dropped.
    """
    with ThreadPoolExecutor(threads, thread_name_prefix="headrace") as pool:
        pending: deque[Future[Result]] = deque()
        try:
            for task in tasks:
                pending.append(pool.submit(function, task))
                if len(pending) > threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


@contextlib.contextmanager
def working_beside() -> Iterator[Callable[[Callable[[], Result]], Future[Result]]]:
    """Yield what runs a function in a thread beside the block; the block ends when all of them have.

    Raises:
        Exception: Whatever a function raised, where the block itself ends without an error.
    """
    futures: list[Future[Any]] = []
    with ThreadPoolExecutor(1, thread_name_prefix="headrace") as pool:

        def run(function: Callable[[], Any]) -> Future[Any]:
            futures.append(pool.submit(function))
            return futures[-1]

        yield run
    for future in futures:
        future.result()


def run_beside(function: Callable[[], Result]) -> Future[Result]:
    """Run a function in a thread of its own while the caller goes on."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="headrace")
    future = pool.submit(function)
    pool.shutdown(wait=False)
    return future
