"""``--memory``: a log of 300 MB with 1.2 million different ids under 128 MiB, sampled from outside.

The numbers are bytes of anonymous memory of the build's processes; nothing here depends on time.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from headrace.building.settings import Settings

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "memory.py"
SIZE, IDS = 300_000_000, 1_200_000
MEMORY = 128 << 20

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="this system does not tell anonymous memory"
)


@pytest.fixture(scope="module")
def memory() -> ModuleType:
    """The benchmark of memory, whose generator and sampler are used here on a smaller log."""
    spec = importlib.util.spec_from_file_location("benchmark_of_memory", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_memory_is_bounded_by_what_is_given_and_not_by_the_data(memory: ModuleType, tmp_path: Path) -> None:
    """The first build compiles kernels, for which the compiler takes memory too: the second is measured."""
    (tmp_path / "ids.toml").write_text(memory.SPEC)
    rows = memory.write_log(tmp_path / "ids.jsonl", SIZE, IDS)
    memory.peak_of(memory.build_command(tmp_path / "ids.toml", tmp_path / "first", "128MiB", threads=2))
    base = memory.base_of(tmp_path / "base", "128MiB", threads=2)
    command = memory.build_command(tmp_path / "ids.toml", tmp_path / "store", "128MiB", threads=2)
    peak, printed = memory.peak_of(command)
    users, items, counted = map(int, printed.split())
    assert users == IDS + 3  # PAD, UNKNOWN and MISSING
    assert IDS // 4 < items <= IDS // 4 + 3
    assert counted == rows
    assert (tmp_path / "ids.jsonl").stat().st_size >= SIZE
    allowed = max(MEMORY, base + Settings(memory=MEMORY).data_memory)  # other libraries may take more
    assert peak < allowed, f"{peak >> 20} MiB, of which {base >> 20} MiB without data"
    (tmp_path / "ids.jsonl").unlink()
