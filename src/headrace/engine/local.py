"""Threads of this machine: results in the order of the tasks, a bounded number of them under way."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def default_threads() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_in_order(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    threads: int,
    ended: threading.Event | None = None,
) -> Iterator[Result]:
    """Yield ``function(task)`` for each task, in the order of the tasks.

    Where the next task cannot be had, the results before it come first: what is raised is what running one
    task after the other would have raised, however many threads there are.

    Args:
        function: What is done; it should release the GIL for most of its time.
        tasks: Taken one by one, at most ``threads`` ahead of the results.
        threads: How many run at once.
        ended: Set as soon as no further result is taken; a function that takes long may look at it.

    Raises:
        Exception: Whatever the first failing task, or ``tasks`` itself, raised; tasks that have not begun are
            dropped, those that have are waited for.
    """
    with ThreadPoolExecutor(threads, thread_name_prefix="headrace") as pool:
        pending: deque[Future[Result]] = deque()
        try:
            for future in _submitted(pool, function, tasks):
                pending.append(future)
                if len(pending) > threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            if ended is not None:
                ended.set()
            for future in pending:
                future.cancel()


def _submitted(
    pool: ThreadPoolExecutor, function: Callable[[Task], Result], tasks: Iterable[Task]
) -> Iterator[Future[Result]]:
    """Yield a future for each task, and one that fails for a task that cannot be had."""
    try:
        for task in tasks:
            yield pool.submit(function, task)
    except Exception as error:  # noqa: BLE001 - raised where its result is asked for
        failed: Future[Result] = Future()
        failed.set_exception(error)
        yield failed


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
