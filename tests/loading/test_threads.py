"""Threads end, memory is given back, and an exception arrives with the positions that caused it."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from headrace.errors import LoaderError
from headrace.loading import Loader, Ragged, Rows, Scalar
from headrace.loading.prefetch import Prefetcher
from headrace.loading.runs import Failure, OnDemand, RunLength
from headrace.testing import Counting


def loader_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("headrace-loader")]


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    assert not loader_threads()
    yield
    gc.collect()
    assert not loader_threads()


class Broken(Counting):
    """Fails at one index."""

    def gather(self, indices, keys):
        if 77 in indices:
            raise ValueError("row 77 is bad")
        return super().gather(indices, keys)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_an_exception_arrives_in_order_with_its_positions(threads: int) -> None:
    loader = Loader(Broken(100), batch_size=10, threads=threads, rank=0, world_size=1)
    iterator = iter(loader)
    assert [next(iterator)["index"][0] for _ in range(7)] == [0, 10, 20, 30, 40, 50, 60]
    message = r"epoch 0, step 7, positions \[70, 80\) of rank 0: ValueError: row 77 is bad"
    with pytest.raises(LoaderError, match=message) as info:
        next(iterator)
    assert isinstance(info.value.__cause__, ValueError)
    assert not loader_threads()
    assert loader.state_dict()["position"] == 70


def test_an_iterator_is_over_after_an_exception() -> None:
    iterator = iter(Loader(Broken(100), batch_size=100))
    with pytest.raises(LoaderError):
        next(iterator)
    assert list(iterator) == []


def test_breaking_out_ends_the_threads() -> None:
    for _ in Loader(Counting(100_000), batch_size=10):
        assert loader_threads()
        break
    assert not loader_threads()


def test_an_exception_in_the_loop_ends_the_threads() -> None:
    def train() -> None:
        for _ in Loader(Counting(100_000), batch_size=10):
            raise RuntimeError("the model is bad")

    with pytest.raises(RuntimeError):
        train()
    gc.collect()
    assert not loader_threads()


def test_an_abandoned_iterator_frees_its_memory() -> None:
    loader = Loader(Counting(100_000), batch_size=10)
    iterator = iter(loader)
    next(iterator)
    pool = weakref.ref(iterator._maker.pool)
    dead = weakref.ref(iterator)
    del iterator
    assert dead() is None
    assert pool() is None


def test_an_iterator_in_a_cycle_is_collected() -> None:
    cycle: list = [iter(Loader(Counting(100_000), batch_size=10))]
    cycle.append(cycle)
    next(cycle[0])
    del cycle
    gc.collect()
    assert not loader_threads()


def test_a_full_pass_ends_the_threads() -> None:
    loader = Loader(Counting(100), batch_size=10, threads=4)
    iterator = iter(loader)
    assert len(list(iterator)) == 10
    assert not loader_threads()
    with pytest.raises(StopIteration):
        next(iterator)


def test_close_may_be_called_twice() -> None:
    iterator = iter(Loader(Counting(100), batch_size=10))
    next(iterator)
    iterator.close()
    iterator.close()
    assert list(iterator) == []


def run(code: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, **options
    )


def test_interpreter_exit_with_a_live_iterator() -> None:
    code = (
        "from headrace.loading import Loader\nfrom headrace.testing import Counting\n"
        "iterator = iter(Loader(Counting(1 << 40), batch_size=1000, threads=4))\n"
        "next(iterator)\nprint('done')\n"
    )
    finished = run(code)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "done\n", "")


def test_a_fork_with_a_live_iterator_ends() -> None:
    code = (
        "import os\nfrom headrace.loading import Loader\nfrom headrace.testing import Counting\n"
        "iterator = iter(Loader(Counting(1 << 40), batch_size=1000, threads=4))\n"
        "for _ in range(20):\n"
        "    next(iterator)\n"
        "    if (child := os.fork()) == 0:\n"
        "        del iterator\n"
        "        raise SystemExit(0)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "print('done')\n"
    )
    finished = run(code)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "done\n", "")


def test_a_fork_while_the_clock_is_held_can_iterate() -> None:
    code = (
        "import os, signal\n"
        "from headrace.loading import Loader\n"
        "from headrace.testing import Counting\n"
        "loader = Loader(Counting(20), batch_size=5, threads=2)\n"
        "loader._clock._lock.acquire()  # as a thread of a pass does now and then\n"
        "if (child := os.fork()) == 0:\n"
        "    signal.alarm(60)\n"
        "    os._exit(len(list(loader)))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    finished = run(code)
    assert finished.stdout.split() == ["4"], finished.stderr


def test_an_iterator_of_another_process_raises_and_does_not_hang() -> None:
    code = (
        "import os, signal, warnings\n"
        "from headrace.errors import LoaderError\n"
        "from headrace.loading import Loader\n"
        "from headrace.testing import Counting\n"
        "warnings.simplefilter('ignore')\n"
        "iterator = iter(Loader(Counting(1000), batch_size=1, threads=2))\n"
        "next(iterator)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(60)\n"
        "    try:\n"
        "        list(iterator)\n"
        "    except LoaderError as error:\n"
        "        os._exit('begun in another process' in str(error) and 7)\n"
        "    os._exit(1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    finished = run(code)
    assert finished.stdout.split() == ["7"], finished.stderr


def hears_ctrl_c() -> None:
    """Undo what a shell does to commands in the background: they ignore Ctrl-C, and so do their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_ends_a_loop_that_waits() -> None:
    code = (
        "import gc, threading, time\nfrom headrace.loading import Loader\n"
        "from headrace.testing import Counting\n"
        "class Slow(Counting):\n"
        "    def gather(self, indices, keys):\n"
        "        time.sleep(0.3)\n"
        "        return super().gather(indices, keys)\n"
        "try:\n"
        "    for batch in Loader(Slow(1 << 40), batch_size=1000):\n"
        "        print('ready', flush=True)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
        "gc.collect()\n"
        "print('threads', threading.active_count())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hears_ctrl_c,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert out.replace("ready\n", "") == "interrupted\nthreads 1\n"


def wide_rows(rows: int) -> Rows:
    offsets = np.arange(rows + 1) * 20
    values = np.zeros(offsets[-1], np.uint16)
    return Rows(
        [Scalar("user", [np.zeros(rows, np.uint32)]), Ragged("history", [offsets], [values], 50)],
        [rows],
        "wide",
    )


def test_memory_does_not_grow_over_twenty_epochs() -> None:
    loader = Loader(wide_rows(8_000), batch_size=512, shuffle="global")
    used = []
    tracemalloc.start()
    try:
        for _ in range(20):
            for batch in loader:
                batch["history"].sum()
            del batch
            gc.collect()
            used.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert used[-1] - used[3] < 100_000  # a batch is three times as much


def test_what_the_consumer_keeps_is_never_written_again() -> None:
    loader = Loader(wide_rows(5000), batch_size=256, shuffle="global", threads=3)
    kept = [(batch["sample_id"], batch["sample_id"].copy(), batch["history_mask"]) for batch in loader]
    assert all((array == copy).all() for array, copy, _ in kept)
    blocks = [array.__array_interface__["data"][0] for _, _, array in kept]
    assert len(set(blocks)) == len(blocks)


def test_released_memory_is_used_again() -> None:
    loader = Loader(wide_rows(20_000), batch_size=256, threads=0)
    blocks = {batch["history"].__array_interface__["data"][0] for batch in loader}
    assert len(blocks) <= 18  # those of a run of 16 steps in turn, one more, and a smaller one at the end
    assert len(loader) == 79


def test_threads_use_released_memory_again() -> None:
    """Runs are of 16 batches at most: 48 are under way, and the consumer has one run."""
    loader = Loader(wide_rows(100_000), batch_size=256, threads=1)
    blocks = {batch["history"].__array_interface__["data"][0] for batch in loader}
    assert len(blocks) <= 3 * 16 + 16 + 1
    assert len(loader) == 391


def eventually(condition: Callable[[], bool]) -> bool:
    """Wait until something is true; a machine may be slow."""
    deadline = time.monotonic() + 120
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)
    return condition()


def test_prefetching_is_bounded() -> None:
    made = []

    def make_run(first: int, count: int) -> list[int]:
        made.extend(range(first, first + count))
        return list(range(first, first + count))

    large = Prefetcher(make_run, 1000, threads=2, ahead=4, size_of=lambda result: 1 << 30)
    assert [large.take() for _ in range(3)] == [0, 1, 2]
    assert eventually(lambda: sorted(made) == list(range(3 + 4)))
    assert large._asked == 3 + 4
    large.close()
    assert sorted(made) == list(range(3 + 4))


def test_runs_begin_with_one_step_and_double() -> None:
    runs = []

    def make_run(first: int, count: int) -> list[int]:
        runs.append(count)
        return list(range(first, first + count))

    results = OnDemand(make_run, 10_000, RunLength(lambda result: 0))
    assert [results.take() for _ in range(300)] == list(range(300))
    assert runs[0] == 1
    assert max(runs) <= 16
    assert all(after <= 2 * before for before, after in pairwise(runs))


@pytest.mark.parametrize(
    ("size", "seconds", "length"),
    [(0, 0.0, 2), (6 << 20, 0.0, 1), (1 << 30, 0.0, 1), (0, 0.0015, 1), (0, 10.0, 1), (1 << 20, 0.001, 2)],
)
def test_the_length_of_a_run_is_bounded_by_bytes_and_seconds(size, seconds, length) -> None:
    run = RunLength(lambda result: size)
    run.measure([0], seconds)
    assert run.steps == length
    for _ in range(8):
        run.measure([0], 0.0)
    assert run.steps == {0: 16, 1 << 20: 8, 6 << 20: 1, 1 << 30: 1}[size]
    for threads, steps in ((1, 16), (2, 11), (3, 8), (12, 6)):
        crowded = RunLength(lambda result: 1 << 19, threads)
        for _ in range(8):
            crowded.measure([0], 0.0)
        assert crowded.steps == steps


@pytest.mark.parametrize("seconds", [0.0, 0.001])
def test_results_come_in_order_from_many_threads(seconds: float) -> None:
    def make_run(first: int, count: int) -> list[int]:
        time.sleep(seconds * (first % 3))
        return list(range(first, first + count))

    prefetcher = Prefetcher(make_run, 200, threads=5, ahead=3)
    assert [prefetcher.take() for _ in range(200)] == list(range(200))
    prefetcher.close()


@pytest.mark.parametrize("processors", [1, 2, 3, 8])
@pytest.mark.parametrize("threads", [1, 3])
def test_who_makes_a_run_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, threads: int, processors: int
) -> None:
    monkeypatch.setattr("headrace.loading.prefetch._PROCESSORS", processors)
    makers = []

    def make_run(first: int, count: int) -> list[int]:
        makers.append(threading.current_thread())
        return list(range(first, first + count))

    for _ in range(20):
        prefetcher = Prefetcher(make_run, 50, threads, ahead=3, shares=True)
        assert [prefetcher.take() for _ in range(50)] == list(range(50))
        prefetcher.close()
    alone = Prefetcher(make_run, 50, threads, ahead=3)
    makers.clear()
    assert [alone.take() for _ in range(50)] == list(range(50))
    alone.close()
    assert threading.current_thread() not in makers


def test_a_thread_without_a_processor_works_while_the_consumer_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headrace.loading.prefetch._PROCESSORS", 1)
    made: list[int] = []

    def make_run(first: int, count: int) -> list[int]:
        made.append(first)
        return list(range(first, first + count))

    prefetcher = Prefetcher(make_run, 50, threads=1, ahead=3, shares=True)
    assert prefetcher.take() == 0
    prefetcher._seconds = 3600.0  # making a run takes long: the consumer helps, and the thread stands aside
    assert prefetcher.take() == 1
    assert not prefetcher._consumer_is_away.is_set()
    prefetcher._seconds = 0.0  # no time at all: the consumer only takes
    while prefetcher._own:
        prefetcher.take()
    prefetcher.take()
    assert prefetcher._consumer_is_away.is_set()
    assert eventually(lambda: len(made) > 4)
    prefetcher._consumer_is_away.clear()
    prefetcher.close()
    assert not any(thread.is_alive() for thread in prefetcher._threads)


@pytest.mark.parametrize(
    ("threads", "processors", "away", "gains"),
    [
        (1, 2, 0.4, True),
        (1, 2, 0.6, False),
        (2, 4, 0.1, True),
        (2, 4, 0.2, False),
        (2, 2, 0.08, True),
        (2, 2, 0.09, False),
        (1, 1, 0.24, True),
        (1, 1, 0.26, False),
    ],
)
def test_the_consumer_makes_runs_only_where_it_gains(monkeypatch, threads, processors, away, gains) -> None:
    """With T threads and runs of a second it gains where T (T + 1) times its own time is less.

    Half a second where a thread stands aside for it.
    """
    monkeypatch.setattr("headrace.loading.prefetch._PROCESSORS", processors)
    prefetcher = Prefetcher(lambda first, count: [first] * count, 10, threads, ahead=3, shares=True)
    assert prefetcher._gains(away)  # before the first run
    prefetcher.take()
    prefetcher._seconds = 1.0
    assert prefetcher._gains(away) == gains
    prefetcher.close()


def test_a_failure_in_the_consumers_thread_reaches_it() -> None:
    def make_run(first: int, count: int) -> list[int]:
        raise KeyError(first)

    prefetcher = Prefetcher(make_run, 10, threads=1, ahead=3, shares=True)
    failure = prefetcher.take()
    prefetcher.close()
    assert isinstance(failure, Failure)
    assert repr(failure.error) == "KeyError(0)"


def test_an_interrupt_of_the_consumer_is_raised_at_once() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def make_run(first: int, count: int) -> list[int]:
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        begun.set()
        assert go_on.wait(60)
        return list(range(first, first + count))

    prefetcher = Prefetcher(make_run, 8, threads=1, ahead=4, shares=True)
    assert begun.wait(60)
    with pytest.raises(KeyboardInterrupt):
        prefetcher.take()
    assert not go_on.is_set()  # the first run is still being made
    go_on.set()
    prefetcher.close()


def test_a_failure_stops_later_work() -> None:
    def make_run(first: int, count: int) -> list[int]:
        if first <= 5 < first + count:
            raise KeyError(5)
        return list(range(first, first + count))

    prefetcher = Prefetcher(make_run, 100, threads=2, ahead=50)
    results = [prefetcher.take() for _ in range(6)]
    assert results[:5] == [0, 1, 2, 3, 4]
    assert isinstance(results[5], Failure)
    assert prefetcher._asked <= 50 + 5
    prefetcher.close()
