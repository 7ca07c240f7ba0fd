"""Real processes over small data: a log with every kind of column, and a driver that makes builds small."""

from __future__ import annotations

import json
import random  # noqa: TID251 - draws test data
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DRIVER = Path(__file__).with_name("driver.py")
SECONDS_A_ROW = 20
SECONDS = 240
"""When a process that a test started counts as hanging; far more than it needs on a busy machine."""


@dataclass(frozen=True)
class Done:
    """How a process ended."""

    code: int
    """0, an exit code, or the negative number of the signal that killed it."""
    out: str
    err: str


@pytest.fixture(scope="session")
def run() -> Callable[..., Done]:
    """Runs a command in a process of its own, and holds that it ends."""

    def run(*command: object, **options: Any) -> Done:
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, timeout=SECONDS, check=False, **options
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def headrace(run: Callable[..., Done]) -> Callable[..., Done]:
    """Runs the command line: ``headrace("build", spec, "--out", out)``."""

    def headrace(*arguments: object, **options: Any) -> Done:
        return run(sys.executable, "-c", "from headrace.cli import main; main()", *arguments, **options)

    return headrace


class Forks:
    """A process that has built a store once, and forks a child for each job: real processes, started fast."""

    def __init__(self, spec: Path, out: Path) -> None:
        command = [sys.executable, str(DRIVER), str(spec), str(out)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, *job: Any) -> int:
        """Start a job, as ``driver.py`` lists them; return the process id of the child that does it."""
        return int(self._ask("start", *job))

    def wait(self, child: int) -> str:
        """Wait for a child to end; return ``""``, what it raised, or ``"killed by 9"``."""
        return str(self._ask("wait", child))

    def do(self, *job: Any) -> str:
        """Start a job and wait for its end."""
        return self.wait(self.start(*job))

    def _ask(self, *question: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question, default=str), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        """End the process."""
        self._process.communicate(timeout=SECONDS)


@pytest.fixture(scope="session")
def forks(job: Job, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Starts jobs in processes of their own; the job's store is built once, before any of them."""
    forks = Forks(job.spec, tmp_path_factory.mktemp("first") / "store")
    yield forks
    forks.end()


def log(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows with a column for every kind of feature and label; a few of them are bad."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        seen = [f"item {draw.randrange(60)}" for _ in range(draw.randrange(6))]
        row: dict[str, Any] = {
            "request": f"request {number}",
            "second": SECONDS_A_ROW * number,
            "user": draw.choice([None, draw.randrange(50), f"user {draw.randrange(30)}"]),
            "item": f"item {draw.randrange(60)}",
            "history": draw.choice([None, seen]),
            "tags": draw.sample("abcdefgh", draw.randrange(4)),
            "interest": {str(draw.randrange(20)): draw.random() for _ in range(3)},
            "price": draw.choice([None, draw.randrange(4000) / 8]),
            "image": draw.choice([None, [draw.random(), 0.5]]),
            "click": draw.randrange(2),
            "bought": draw.choice([None, SECONDS_A_ROW * number + draw.randrange(900)]),
            "rating": draw.choice(["good", "bad", None]),
            "weight": draw.randrange(1, 9) / 4,
        }
        if number % 97 == 50:
            row["price"] = "a lot"
        rows.append(row)
    return rows


def declaration(files: Sequence[str], items: str, rows: int) -> dict[str, Any]:
    """A spec with every kind of feature, label and file that a store can have."""
    edge = SECONDS_A_ROW * rows * 7 // 10
    later = edge + 300 + SECONDS_A_ROW * rows // 10
    price = {"kind": "numeric", "column": "price"}
    return {
        "name": "every kind",
        "source": {"files": list(files), "max_bad_fraction": 0.2},
        "time": {"column": "second"},
        "split": {
            "by": "time",
            "train": {"until": edge},
            "valid": {"from": edge + 300, "until": later},
            "test": {"from": later},
        },
        "tables": {"items": {"format": "csv", "files": items, "key": "item", "max_bad_fraction": 0.2}},
        "vocabularies": {"item": {"min_count": 2, "unseen": "hash", "unknown_buckets": 3}},
        "features": {
            "user": {"kind": "categorical", "min_count": 2},
            "item": {"kind": "categorical", "vocabulary": "item"},
            "colour": {"kind": "categorical", "column": "items.colour", "missing": "unknown"},
            "cost": {"kind": "numeric", "column": "items.cost", "missing": 0.0},
            "history": {"kind": "sequence", "vocabulary": "item", "max_length": 4},
            "tags": {"kind": "set", "max_length": 3},
            "interest": {"kind": "weighted_set", "max_length": 3},
            "price": {**price, "transform": "standardize"},
            "price_bucket": {**price, "transform": "bucketize", "buckets": 4},
            "hour": {"kind": "time", "column": "second", "part": "hour"},
            "pair": {"kind": "cross", "columns": ["user", "item"], "buckets": 30},
            "device": {"kind": "hashed", "column": "user", "buckets": 7},
            "image": {"kind": "vector", "dim": 2},
        },
        "labels": {
            "click": {"kind": "binary"},
            "sale": {
                "kind": "attribution",
                "click_time": "second",
                "convert_time": "bought",
                "window": "5m",
                "given": "click",
                "weight": "weight",
            },
            "rating": {"kind": "class"},
        },
        "weight": {"column": "weight"},
        "id": {"column": "request"},
    }


@dataclass(frozen=True)
class Job:
    """A spec and the files that it reads."""

    folder: Path
    spec: Path
    """A JSON file: what ``Spec.from_dict`` takes."""
    toml: Path
    """The same, for the command line."""
    files: tuple[Path, ...]
    rows: int


@pytest.fixture(scope="session")
def make_job() -> Callable[..., Job]:
    """Writes raw files and their spec into a folder: ``make_job(folder, rows=300, files=2)``."""

    def make_job(folder: Path, rows: int = 300, files: int = 2) -> Job:
        folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(row) + "\n" for row in log(rows)]
        size = -(-rows // files)
        paths = [folder / f"log{number}.jsonl" for number in range(files)]
        for number, path in enumerate(paths):
            path.write_text("".join(lines[number * size : (number + 1) * size]))
        items = folder / "items.csv"
        items.write_text(
            "item,colour,cost\n"
            + "".join(f"item {n},{'red' if n % 3 else 'blue'},{n}.5\n" for n in range(55))
            + "item 55,red,much\n"
        )
        declared = declaration([str(path) for path in paths], str(items), rows)
        (folder / "spec.json").write_text(json.dumps(declared))
        (folder / "spec.toml").write_text(toml(declared))
        return Job(folder, folder / "spec.json", folder / "spec.toml", tuple(paths), rows)

    return make_job


def toml(table: Any) -> str:
    """Write a declaration as TOML: JSON's texts, numbers and lists are TOML's too; tables inline."""

    def value(one: Any) -> str:
        if isinstance(one, dict):
            return "{" + ", ".join(f"{json.dumps(key)} = {value(item)}" for key, item in one.items()) + "}"
        if isinstance(one, list):
            return "[" + ", ".join(map(value, one)) + "]"
        return json.dumps(one)

    return "".join(f"{json.dumps(key)} = {value(one)}\n" for key, one in table.items())


@pytest.fixture(scope="session")
def to_toml() -> Callable[[Any], str]:
    return toml


@pytest.fixture(scope="session")
def job(make_job: Callable[..., Job], tmp_path_factory: pytest.TempPathFactory) -> Job:
    """One log for every test that does not change its files."""
    return make_job(tmp_path_factory.mktemp("job"))


@pytest.fixture(scope="session")
def store(job: Job, forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of ``job``, undisturbed; to be read only."""
    out = tmp_path_factory.mktemp("whole") / "store"
    assert forks.do("build", job.spec, out) == ""
    assert len(list(out.glob("train/*.arrow"))) >= 4
    assert len(list((out / ".build" / "parsed" / "rows").glob("0*"))) >= 4
    return out


@pytest.fixture(scope="session")
def steps(forks: Forks, job: Job, tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many steps on the file system a build takes."""
    return int(forks.do("steps", "build", job.spec, tmp_path_factory.mktemp("steps") / "store"))


@pytest.fixture(scope="session")
def bytes_of() -> Callable[[Path], dict[str, bytes]]:
    """Every file of a store by name, but for what a build leaves for the next one."""

    def bytes_of(folder: Path) -> dict[str, bytes]:
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        names = {path.relative_to(folder).as_posix(): path for path in paths}
        return {name: path.read_bytes() for name, path in names.items() if not name.startswith(".build/")}

    return bytes_of


@pytest.fixture(scope="session")
def listing() -> Callable[[Path], dict[str, tuple[int, int]]]:
    """What lies below a folder: inode and modification time by relative path."""

    def listing(folder: Path) -> dict[str, tuple[int, int]]:
        found = {}
        for path in folder.rglob("*"):
            status = path.lstat()
            found[path.relative_to(folder).as_posix()] = (status.st_ino, status.st_mtime_ns)
        return found

    return listing
