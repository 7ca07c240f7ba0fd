"""The torchrun example: killed in the middle of an epoch, and resumed on other numbers of processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import headrace as hr

torch = pytest.importorskip("torch")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "torchrun_train.py"
DYING = Path(__file__).with_name("dying_example.py")
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


def run(store: Path, out: Path, processes: int, *script: Path) -> subprocess.CompletedProcess:
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
    command += [*map(str, script), "--store", str(store), "--out", str(out), "--epochs", str(EPOCHS)]
    command += ["--global-batch-size", str(BATCH), "--save-every", "5"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


def finish(store: Path, out: Path, processes: int) -> None:
    finished = run(store, out, processes, EXAMPLE)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def kill_in_the_middle(store: Path, out: Path) -> int:
    """Have the workers of a run of two die at their third checkpoint; return the position that was saved."""
    finished = run(store, out, 2, DYING, EXAMPLE)
    assert finished.returncode != 0
    assert "SIGKILL" in finished.stderr, finished.stderr
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
    assert position in (10 * BATCH, 15 * BATCH)
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
