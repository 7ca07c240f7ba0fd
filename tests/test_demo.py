"""The demo runs from the repository's own data, and its scores are what their names say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

DEMO = Path(__file__).resolve().parent.parent / "examples" / "open_bandit"


def test_it_builds_streams_trains_and_judges(tmp_path: Path) -> None:
    command = [sys.executable, str(DEMO / "demo.py"), "--store", str(tmp_path / "store"), "--epochs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "7,296 rows an epoch in 29 batches of 256: " in done.stdout
    assert "2,704 impressions with 14 clicks (0.52%)" in done.stdout
    losses = [float(line.split()[-2]) for line in done.stdout.splitlines() if "constant" in line]
    rate = 55 / 7296  # clicks of the first five days
    assert losses == pytest.approx([-(14 * np.log(rate) + 2690 * np.log(1 - rate)) / 2704], abs=1e-5)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DEMO))
    import model

    return model


def test_auc_counts_pairs_and_halves_ties(model: ModuleType) -> None:
    clicks, predicted = np.array([1.0, 0, 1, 0, 0]), np.array([0.9, 0.5, 0.5, 0.1, 0.7])
    # of 2 x 3 pairs the first click wins 3; the second wins 1, ties 1, loses 1
    assert model.auc(clicks, predicted) == pytest.approx((3 + 1 + 0.5) / 6)


def test_log_loss_is_the_mean_negative_log_likelihood(model: ModuleType) -> None:
    found = model.log_loss(np.array([1.0, 0]), np.array([0.25, 0.5]))
    assert found == pytest.approx((np.log(4) + np.log(2)) / 2)


def test_the_machine_sums_products_of_pairs(model: ModuleType) -> None:
    import torch

    from headrace.encoding.info import FeatureInfo

    def info(name: str) -> FeatureInfo:
        return FeatureInfo(name, "categorical", "int64", (), 3, 0, None, None, None, (), "", "")

    machine = model.FactorizationMachine({name: info(name) for name in "abc"}, ["x"], 2, 0.5)
    for number, table in enumerate(machine.vectors.values()):
        torch.nn.init.constant_(table.weight, number + 1.0)
    batch = {**{name: torch.zeros(1, dtype=torch.int64) for name in "abc"}, "x": torch.zeros(1)}
    assert machine(batch).item() == pytest.approx(2 * (1 * 2 + 1 * 3 + 2 * 3))  # two dimensions, no bias
