"""The torchrun example: killed in the middle of an epoch, and resumed on other numbers of processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import psutil
import pytest

import headrace as hr

torch = pytest.importorskip("torch")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "torchrun_train.py"
ROWS, EPOCHS, BATCH = 3001, 1, 24


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    lines = [
        {
            "user": f"u{row * 7 % 53}",
            "item": f"i{row * 11 % 80}",
            "history": [f"i{(row + place) * 13 % 80}" for place in range(row % 7)],
            "click": row * row % 5 // 4,
        }
        for row in range(ROWS)
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    spec = {
        "name": "clicks",
        "version": 1,
        "source": {"format": "jsonl", "files": str(folder / "log.jsonl")},
        "split": {"by": "file", "train": "*.jsonl"},
        "vocabularies": {"item": {"min_count": 1}},
        "features": {
            "user": {"kind": "categorical"},
            "item": {"kind": "categorical", "vocabulary": "item"},
            "history": {"kind": "sequence", "vocabulary": "item", "max_length": 5, "pad": "left"},
        },
        "labels": {"click": {"kind": "binary", "column": "click"}},
    }
    hr.build(hr.Spec.from_dict(spec), out=folder / "store")
    return folder / "store"


def start(store: Path, out: Path, processes: int) -> subprocess.Popen:
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    environment |= {"OMP_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(processes),
    ]
    command += [str(EXAMPLE), "--store", str(store), "--out", str(out), "--epochs", str(EPOCHS)]
    command += ["--global-batch-size", str(BATCH), "--save-every", "5"]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(store: Path, out: Path, processes: int) -> None:
    process = start(store, out, processes)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output


def kill_in_the_middle(store: Path, out: Path) -> int:
    """Kill the workers of a run of two after its first checkpoints; return the position that was saved."""
    process = start(store, out, 2)
    deadline = time.monotonic() + 200
    while not (out / "checkpoint.pt").exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.005)
    for worker in psutil.Process(process.pid).children(recursive=True):
        worker.kill()
    process.communicate(timeout=100)
    assert process.returncode != 0
    state = json.loads(torch.load(out / "checkpoint.pt", weights_only=True)["loader"])
    return int(state["epoch"] * ROWS + state["position"])


def seen(out: Path) -> dict[tuple[int, int], set[int]]:
    """The samples of every step, of whichever run made it last."""
    records = [
        json.loads(line) for path in out.glob("seen-*.jsonl") for line in path.read_text().splitlines()
    ]
    steps: dict[tuple[int, int], set[int]] = defaultdict(set)
    for record in records:
        steps[record["epoch"], record["position"]] |= set(record["ids"])
    return steps


def weights(out: Path) -> dict[str, object]:
    return torch.load(out / "checkpoint.pt", weights_only=True)["model"]


def test_killed_and_resumed_on_four_and_on_two(store: Path, tmp_path: Path) -> None:
    whole, killed, resumed = (tmp_path / name for name in ("whole", "killed", "resumed"))
    finish(store, whole, 2)
    position = kill_in_the_middle(store, killed)
    assert 0 < position < EPOCHS * ROWS
    shutil.copytree(killed, resumed)
    finish(store, killed, 4)
    finish(store, resumed, 2)
    expected = seen(whole)
    for epoch in range(EPOCHS):
        ids = [each for (number, _), step in expected.items() if number == epoch for each in step]
        assert sorted(ids) == list(range(ROWS))
    assert seen(killed) == expected
    assert seen(resumed) == expected
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(resumed)[name]), name
        assert torch.allclose(tensor, weights(killed)[name], atol=1e-2), name
