"""Lightning, Accelerate and plain torch over two real processes: nothing twice, nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from headrace.loading import Loader
from headrace.testing import Counting

for package in ("torch", "lightning", "accelerate"):
    pytest.importorskip(package)

WORKER = Path(__file__).with_name("two_ranks.py")
FRAMEWORKS = ["threads", "fork", "persistent", "accelerate", "lightning"]


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> list[dict[str, list[list[list[int]]]]]:
    """What each of two ranks saw, by framework and epoch."""
    folder = tmp_path_factory.mktemp("ranks")
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    environment |= {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    finished = subprocess.run(
        [*command, str(WORKER), str(folder)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_sample_once_over_two_ranks(found, framework: str) -> None:
    for epoch in range(2):
        ids = [index for rank in found for batch in rank[framework][epoch] for index in batch]
        assert sorted(ids) == list(range(103))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_each_rank_sees_its_own_part_of_each_step(found, framework: str) -> None:
    for rank in range(2):
        loader = Loader(Counting(103), batch_size=8, shuffle="global", seed=5, rank=rank, world_size=2)
        for epoch in range(2):
            expected = [batch["index"].tolist() for batch in loader]
            assert found[rank][framework][epoch] == expected
            assert sum(map(len, chain(expected))) in (51, 52)


@pytest.mark.parametrize("strategy", ["ddp", "ddp_fork"])
def test_loaders_that_are_made_before_lightning_starts_its_processes(strategy: str, tmp_path: Path) -> None:
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    script = Path(__file__).with_name("launched_by_lightning.py")
    finished = subprocess.run(
        [sys.executable, str(script), strategy, str(tmp_path)],
        env=environment | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    for rank in range(2):
        loader = Loader(Counting(103), batch_size=8, shuffle="global", seed=5, rank=rank, world_size=2)
        seen = json.loads((tmp_path / f"rank-{rank}.json").read_text())
        assert seen == [[batch["index"].tolist() for batch in loader] for _ in range(2)]
