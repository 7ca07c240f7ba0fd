"""Where the time of a loader went, and whether it or the model is what is slow."""

from __future__ import annotations

import os
import resource
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

STAGES = ("read", "gather", "transform", "convert", "copy")
_SMALL_SHARE = 0.05
_SHORTEST_SLEEP = 5e-6
"""Seconds in which no storage answers: a thread that slept for less has not read."""


@dataclass(frozen=True)
class Report:
    """Seconds by stage, of all batches since the loader was made; printed as a table and one sentence."""

    seconds: dict[str, float]
    """By stage: read (waiting for storage), gather, transform, convert, copy (to pinned memory or a
    device) in the loader's threads; ``waiting for the consumer``, when the threads had nothing to do.
    0 where worker processes made the batches."""
    consumer_seconds: float
    """In the consumer, between one batch and the next call."""
    waited_seconds: float
    """In which the consumer waited for a batch."""
    batches: int
    samples: int
    threads: int
    left_out: int
    """Samples of the present epoch that ``last="drop"`` leaves out."""

    @property
    def shares(self) -> dict[str, float]:
        """The share of each stage in the time of the loader's threads."""
        total = sum(self.seconds.values())
        return {name: value / total if total else 0.0 for name, value in self.seconds.items()}

    @property
    def waited_share(self) -> float:
        """Share of the consumer's time in which it waited for a batch."""
        total = self.consumer_seconds + self.waited_seconds
        return self.waited_seconds / total if total else 0.0

    @property
    def verdict(self) -> str:
        """One sentence: what is slow, and what to change."""
        if self.batches == 0:
            return "No batch has been made yet."
        share = f"{self.waited_share:.0%}"
        if self.waited_share <= _SMALL_SHARE:
            return f"The model is what is slow: it waited for batches in {share} of its time. Leave it so."
        if not any(self.seconds.values()):
            return (
                f"The loader is what is slow: the model waited for it in {share} of its time; its batches "
                "came from worker processes: raise num_workers=, or leave it out, as threads cost less."
            )
        working = {stage: self.seconds[stage] for stage in STAGES}
        slowest = max(working, key=lambda stage: working[stage])
        advice = self._advice(slowest)
        return f"The loader is what is slow: the model waited for it in {share} of its time; {advice}"

    def _advice(self, slowest: str) -> str:
        more = f"raise threads= from {self.threads}"
        return {
            "read": "most of its time went into waiting for storage: use shuffle='block', or faster storage.",
            "gather": f"most of its time went into gathering: {more}, or ask for fewer columns.",
            "transform": f"most of its time went into transform=: {more}, or do it when building the data.",
            "convert": "most of its time went into converting: output='torch' on the CPU copies nothing.",
            "copy": "most of its time went into copying: use id_dtype='int32', which halves it.",
        }[slowest]

    def to_dict(self) -> dict[str, object]:
        """Return all of it as plain JSON-able values."""
        return {
            "seconds": dict(self.seconds),
            "shares": self.shares,
            "consumer_seconds": self.consumer_seconds,
            "waited_seconds": self.waited_seconds,
            "waited_share": self.waited_share,
            "batches": self.batches,
            "samples": self.samples,
            "threads": self.threads,
            "left_out": self.left_out,
            "verdict": self.verdict,
        }

    def __str__(self) -> str:
        lines = [
            f"{name:<26}{value:>10.3f} s {self.shares[name]:>6.1%}" for name, value in self.seconds.items()
        ]
        lines.append(f"{'consumer: own work':<26}{self.consumer_seconds:>10.3f} s")
        lines.append(f"{'consumer: waited':<26}{self.waited_seconds:>10.3f} s {self.waited_share:>6.1%}")
        lines.append(f"{self.batches} batches, {self.samples} samples, {self.threads} threads")
        if self.left_out:
            lines.append(f"{self.left_out} samples of the epoch are left out (last='drop')")
        return "\n".join([*lines, self.verdict])


class Idling(Protocol):
    """The threads of a pass."""

    idle_seconds: float
    """For which they had nothing to do, and which nobody has counted yet."""


class Gathering(NamedTuple):
    """When a thread began to gather."""

    faults: int
    """Its major faults so far."""
    wall: float
    cpu: float


class Clock:
    """Adds up the seconds of each stage over threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.process = os.getpid()
        self._seconds = dict.fromkeys(STAGES, 0.0)
        self.waited = 0.0
        self.consumer = 0.0
        self.idle = 0.0
        self.batches = 0
        self.samples = 0
        self._live: weakref.ref[Idling] | None = None
        self.reads_storage = False
        """Whether a gather has had to wait for pages."""

    def lap(self, name: str, started: float) -> float:
        """Count the time since ``started`` for a stage, and return the present time."""
        now = time.perf_counter()
        self._add(name, now - started)
        return now

    def count_idle(self, threads: Idling) -> None:
        """Count the idle time of the threads of the present pass too, as long as they are there."""
        self._live = weakref.ref(threads)

    def watch(self, batches: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield batches, and count the consumer's time: waiting for one, and between two."""
        left_at: float | None = None
        while True:
            arrived = time.perf_counter()
            if left_at is not None:
                self.consumer += arrived - left_at
            try:
                batch = next(batches)
            except StopIteration:
                return
            left_at = time.perf_counter()
            self.waited += left_at - arrived
            yield batch

    def start_gather(self) -> Gathering:
        """Return the present time of this thread, for ``stop_gather``."""
        return Gathering(_major_faults(), time.perf_counter(), time.thread_time())

    def stop_gather(self, since: Gathering) -> None:
        """Count the time since then as gather, or as read where the thread slept for pages from storage.

        A thread that faults on a page which is not in memory sleeps: its wall time
        goes on, its CPU time does not, and the system counts a major fault.
        """
        wall, cpu = time.perf_counter() - since.wall, time.thread_time() - since.cpu
        slept = wall - cpu > _SHORTEST_SLEEP and _major_faults() > since.faults
        read = max(wall - cpu, 0.0) if slept else 0.0
        with self._lock:
            self.reads_storage |= slept
            self._seconds["read"] += read
            self._seconds["gather"] += wall - read

    def _add(self, name: str, seconds: float) -> None:
        with self._lock:
            self._seconds[name] += seconds

    def report(self, threads: int, left_out: int) -> Report:
        """Return what was added up so far."""
        with self._lock:
            live = None if self._live is None else self._live()
            idle = self.idle + (0.0 if live is None else live.idle_seconds)
            seconds = {**self._seconds, "waiting for the consumer": idle}
        return Report(seconds, self.consumer, self.waited, self.batches, self.samples, threads, left_out)


def _major_faults() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_majflt
