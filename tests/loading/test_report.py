"""The report says where the time went, and who is slow."""

from __future__ import annotations

import json
import time

import pytest

from headrace.loading import Batch, Loader
from headrace.loading.timing import Clock, Report
from headrace.testing import Counting


class Slow(Counting):
    def gather(self, indices, keys) -> Batch:
        time.sleep(0.004)
        return super().gather(indices, keys)


def test_a_slow_loader() -> None:
    loader = Loader(Slow(100), batch_size=10, threads=1)
    for _ in loader:
        pass
    report = loader.report()
    assert report.seconds["gather"] >= 0.04
    assert report.shares["gather"] > 0.8
    assert report.waited_share > 0.8
    assert (report.batches, report.samples, report.threads) == (10, 100, 1)
    assert report.verdict.startswith("The loader is what is slow: the model waited for it in")
    assert "raise threads= from 1" in report.verdict


def test_a_slow_model() -> None:
    loader = Loader(Counting(200), batch_size=10, threads=2)
    for _ in loader:
        time.sleep(0.003)
    report = loader.report()
    assert report.consumer_seconds >= 0.05
    assert report.waited_share < 0.05
    assert report.seconds["waiting for the consumer"] > 0
    assert report.verdict.startswith("The model is what is slow")


def test_a_slow_transform() -> None:
    def transform(batch: Batch, keys) -> Batch:
        time.sleep(0.004)
        return batch

    loader = Loader(Counting(100), batch_size=10, threads=0, transform=transform)
    list(loader)
    assert "transform=" in loader.report().verdict


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


def test_before_the_first_batch_and_as_json() -> None:
    report = Loader(Counting(10), batch_size=2).report()
    assert report.verdict == "No batch has been made yet."
    assert json.loads(json.dumps(report.to_dict()))["verdict"] == report.verdict
    assert "waiting for the consumer" in str(report)


def test_sleeping_without_a_page_fault_is_not_reading() -> None:
    clock = Clock()
    with clock.gather():
        time.sleep(0.01)
    seconds = clock.report(1, 0).seconds
    assert seconds["gather"] >= 0.009
    assert seconds["read"] == 0
