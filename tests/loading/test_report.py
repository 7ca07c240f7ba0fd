"""The report says where the time went, and who is slow: on a clock that the tests move."""

from __future__ import annotations

import json
import time

import pytest

from headrace.loading import Batch, Loader
from headrace.loading.timing import Clock, Report
from headrace.testing import Counting


class Hands:
    """The hands of every clock in this process; they stand still until a test moves them."""

    def __init__(self) -> None:
        self.now = 100.0

    def move(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def hands(monkeypatch) -> Hands:
    hands = Hands()
    monkeypatch.setattr(time, "perf_counter", lambda: hands.now)
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)
    return hands


class Slow(Counting):
    """Takes 4 ms for a batch."""

    def __init__(self, size: int, hands: Hands) -> None:
        super().__init__(size)
        self.hands = hands

    def gather(self, indices, keys) -> Batch:
        self.hands.move(0.004)
        return super().gather(indices, keys)


def test_a_slow_loader(hands: Hands) -> None:
    loader = Loader(Slow(100, hands), batch_size=10, threads=0)
    for _ in loader:
        hands.move(0.001)
    report = loader.report()
    assert report.seconds["gather"] == pytest.approx(0.040)
    assert report.shares["gather"] == 1
    assert report.waited_share == pytest.approx(40 / 49)  # the last batch is not followed by another
    assert (report.batches, report.samples, report.threads) == (10, 100, 0)
    assert report.verdict.startswith("The loader is what is slow: the model waited for it in 82%")
    assert "raise threads= from 0" in report.verdict


def test_a_slow_model(hands: Hands) -> None:
    loader = Loader(Slow(100, hands), batch_size=10, threads=0)
    for _ in loader:
        hands.move(0.2)
    report = loader.report()
    assert report.consumer_seconds == pytest.approx(9 * 0.2)
    assert report.waited_share == pytest.approx(0.04 / 1.84)
    assert report.verdict.startswith("The model is what is slow")


def test_a_slow_transform(hands: Hands) -> None:
    def transform(batch: Batch, keys) -> Batch:
        hands.move(0.004)
        return batch

    loader = Loader(Counting(100), batch_size=10, threads=0, transform=transform)
    list(loader)
    assert loader.report().seconds["transform"] == pytest.approx(0.040)
    assert "transform=" in loader.report().verdict


def test_threads_are_counted_too() -> None:
    loader = Loader(Counting(2000), batch_size=10, threads=2)
    list(loader)
    report = loader.report()
    assert (report.batches, report.samples, report.threads) == (200, 2000, 2)
    assert all(report.seconds[stage] > 0 for stage in ("gather", "convert", "waiting for the consumer"))


@pytest.mark.parametrize("stage", ["read", "gather", "transform", "convert", "copy"])
def test_every_stage_has_advice(stage: str) -> None:
    seconds = dict.fromkeys(["read", "gather", "transform", "convert", "copy"], 0.1) | {stage: 1.0}
    report = Report(
        seconds, consumer_seconds=0.0, waited_seconds=1.0, batches=1, samples=1, threads=2, left_out=0
    )
    assert report.verdict.startswith(
        "The loader is what is slow: the model waited for it in 100% of its time; "
    )
    assert len(report.verdict) > 80


def test_idle_threads_are_counted_during_a_pass(hands: Hands) -> None:
    loader = Loader(Counting(8), batch_size=1, threads=1, prefetch=1)
    iterator = iter(loader)
    next(iterator)
    iterator._source.idle_seconds += 5.0  # as if the threads had waited so long
    during = loader.report().seconds["waiting for the consumer"]
    iterator.close()
    assert during >= 5.0
    assert loader.report().seconds["waiting for the consumer"] >= 5.0


def test_before_the_first_batch_and_as_json() -> None:
    report = Loader(Counting(10), batch_size=2).report()
    assert report.verdict == "No batch has been made yet."
    assert json.loads(json.dumps(report.to_dict()))["verdict"] == report.verdict
    assert "waiting for the consumer" in str(report)


def test_sleeping_without_a_page_fault_is_not_reading(hands: Hands) -> None:
    clock = Clock()
    started = clock.start_gather()
    hands.move(0.01)
    clock.stop_gather(started)
    seconds = clock.report(1, 0).seconds
    assert seconds["gather"] == pytest.approx(0.01)
    assert seconds["read"] == 0
