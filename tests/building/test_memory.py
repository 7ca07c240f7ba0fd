"""``--memory``: a log of 300 MB with 1.2 million different ids under 128 MiB, sampled from outside;
joined tables and bad rows that are larger than what is given; what cannot be kept.

The numbers are bytes of anonymous memory of the build's processes; nothing here depends on time.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import headrace as hr
from headrace.building.settings import Settings

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "memory.py"
SIZE, IDS = 300_000_000, 1_200_000
MEMORY = 128 << 20

tells_memory = pytest.mark.skipif(
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


@tells_memory
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


TABLE = """
name = "table"

[source]
files = "rows.jsonl"
max_bad_fraction = 1.0

[tables.user]
files = "users.csv"
key = "user"

[features.user]
kind = "categorical"

[features.segment]
kind = "categorical"
column = "user.segment"

[features.spent]
kind = "numeric"
column = "user.spent"
"""
BUILD = """
import sys
import headrace as hr
splits = hr.build(sys.argv[1], out=sys.argv[2], memory=sys.argv[3], threads=int(sys.argv[4]))
print(splits.accounting["quarantined"], len(splits.vocabularies["segment"]))
"""


@tells_memory
def test_large_tables_bad_rows_and_many_threads(memory: ModuleType, tmp_path: Path) -> None:
    """A table of 60 MB took 400 MiB, bad rows of 40 MB took 230, and 64 threads took 430, under 128 MiB."""
    users = 2_000_000
    with (tmp_path / "users.csv").open("w") as file:
        file.write("user,segment,spent\n")
        file.writelines(
            f"{10_000_000 + user},segment {user % 100_000},{user * 0.37:.5f}\n" for user in range(users)
        )
    with (tmp_path / "rows.jsonl").open("w") as file:
        file.writelines(f'{{"user":{10_000_000 + row * 7}}}\n' for row in range(200_000))
        file.writelines(f'{{"user":{"x" * 200}\n' for _ in range(200_000))
    (tmp_path / "table.toml").write_text(TABLE)
    command = [sys.executable, "-c", BUILD, str(tmp_path / "table.toml")]
    peaks = []
    for out in ("first", "second"):  # kernels are compiled by the first one
        peak, printed = memory.peak_of([*command, str(tmp_path / out), "128MiB", "64"])
        assert printed.split() == ["200000", str(100_000 + 3)]
        peaks.append(peak)
    base = memory.base_of(tmp_path / "base", "128MiB", threads=2)
    allowed = max(MEMORY, base + Settings(memory=MEMORY).data_memory) * 1.25
    assert peaks[1] < allowed, f"{peaks[1] >> 20} MiB, of which {base >> 20} MiB without data"


@pytest.mark.parametrize(
    ("mebibytes", "threads", "workers"),
    [(128, 1, 1), (128, 64, 3), (107, 64, 1), (1, 64, 1), (1024, 64, 64), (1024, 500, 77)],
)
def test_threads_that_memory_has_no_part_for_do_not_work(mebibytes: int, threads: int, workers: int) -> None:
    settings = Settings(memory=mebibytes << 20, threads=threads)
    assert settings.workers == workers
    assert settings.part_bytes * 12 * (workers + 1) <= max(settings.data_memory, 24 << 20)


@pytest.mark.parametrize("given", ["106MiB", 1, "0.5"])
def test_memory_that_cannot_be_kept_is_told(tmp_path: Path, given: int | str) -> None:
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n')
    spec = {
        "name": "little",
        "source": {"files": str(tmp_path / "rows.jsonl")},
        "features": {"a": {"kind": "categorical"}},
    }
    little = r"^memory is .*, and the program alone takes about 80MiB: .* Give it 107MiB or more\.$"
    with pytest.warns(UserWarning, match=little) as told:
        hr.build(spec, out=tmp_path / "store", memory=given)
    assert [one.filename for one in told] == [__file__]
    with pytest.warns(UserWarning, match=little) as told:
        hr.encode(tmp_path / "store", tmp_path / "rows.jsonl", tmp_path / "new", memory=given)
    assert [one.filename for one in told] == [__file__]
    hr.build(spec, out=tmp_path / "store", memory="107MiB")
