"""A process that builds a store once, and then forks one child for each job that it is asked to start.

Each line of standard input is a question in JSON, answered by one line of JSON:

    ["start", "build", SPEC, OUT]             -> the process id of the child
    ["start", "encode", STORE, [FILES], OUT]
    ["start", "killed", N, "build", ...]      a job that kills itself at its Nth step on the file system
    ["start", "stopped", N, "build", ...]     one that stops itself there (SIGSTOP) until it is told to go on
    ["start", "steps", "build", ...]          a job that "raises" how many such steps it took
    ["start", "flips", STORE, ROWS, [[FILE, PLACE, MASK], ...], NOTE]   see ``flips``
    ["start", "scratch", FOLDER, BYTES]       a job that fills an array which lies in a file
    ["start", "as_nobody", "build", ...]      a job without the rights of root
    ["wait", PROCESS]                         -> "", what the job raised, or "killed by 9"

Parts and shards are tiny, so that little data has many of them.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.building.settings import Settings
from headrace.errors import HeadraceError, StoreError
from headrace.report.row_text import row_lines
from headrace.report.rows import shown_rows
from headrace.scratch import Scratch

NOBODY = 65_534
PART_BYTES, BLOCK_BYTES, SHARD_BYTES = 20_000, 8_000, 6_000


def make_small() -> None:
    """Have several parts and several shards from little data."""
    writing: Any = importlib.import_module("headrace.building.writing")
    settings: Any = Settings
    settings.part_bytes = property(lambda _: PART_BYTES)
    settings.block_bytes = property(lambda _: BLOCK_BYTES)
    writing.MAXIMUM_BYTES = SHARD_BYTES


def build(spec: str, out: str, threads: int = 2) -> None:
    """Build a store from a spec in a JSON file."""
    hr.build(json.loads(Path(spec).read_text()), out=out, threads=threads)


def encode(store: str, files: list[str], out: str, threads: int = 2) -> None:
    """Encode files with a store."""
    hr.encode(store, files, out=out, threads=threads)


def killed(step: int, name: str, *arguments: Any) -> None:
    """Do a job, and kill this process when it is about to take a step on the file system."""
    _signalled(signal.SIGKILL, step, name, *arguments)


def stopped(step: int, name: str, *arguments: Any) -> None:
    """Do a job, and stop this process when it is about to take a step on the file system."""
    _signalled(signal.SIGSTOP, step, name, *arguments)


def _signalled(sent: signal.Signals, step: int, name: str, *arguments: Any) -> None:
    counted = count(1)

    def hook(event: str, details: tuple[Any, ...]) -> None:
        if _is_step(event, details) and next(counted) == step:
            os.kill(os.getpid(), sent)

    sys.addaudithook(hook)
    JOBS[name](*arguments)


def steps(name: str, *arguments: Any) -> None:
    """Do a job, and say how many steps it took."""
    counted = count()

    def hook(event: str, details: tuple[Any, ...]) -> None:
        if _is_step(event, details):
            next(counted)

    sys.addaudithook(hook)
    JOBS[name](*arguments)
    raise Told(next(counted))


def scratch(folder: str, size: int) -> None:
    """Fill an array which lies in a file without a name."""
    Scratch(Path(folder), limit=0).full(size, 7, "uint8")


def as_nobody(name: str, *arguments: Any) -> None:
    """Do a job as a user whom permissions hold back."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    JOBS[name](*arguments)


def _is_step(event: str, details: tuple[Any, ...]) -> bool:
    """Return whether an event makes, moves or removes a file, or opens one to write."""
    if event == "open":
        return bool(details[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    return event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree")


def flips(store: str, rows: str, wanted: list[tuple[str, int, int]], note: str) -> None:
    """Flip bits of one byte of a store at a time, use the store in every way, and put the byte back.

    Args:
        store: The store.
        rows: JSON Lines that its spec describes.
        wanted: File, place in it, and which bits of that byte.
        note: The file that says at which flip a crash came.
    """
    log = [json.loads(line) for line in Path(rows).read_text().splitlines()[:20]]
    wrong = []
    for flip in wanted:
        Path(note).write_text(repr(flip))
        name, place, mask = flip
        path = Path(store) / name
        content = path.read_bytes()
        place %= len(content)
        path.write_bytes(content[:place] + bytes([content[place] ^ mask]) + content[place + 1 :])
        wrong += [f"{name}[{place}] ^ {mask}: {what}" for what in _misbehaviour(Path(store), name, log)]
        path.write_bytes(content)
    if wrong:
        raise Told("\n".join(wrong))


def _misbehaviour(store: Path, changed: str, log: list[Any]) -> list[str]:
    """Use a store in which a file was changed; return what was raised that is no error of headrace's own."""
    wrong = []
    uses: list[Callable[[], object]] = [
        lambda: _verify(store, changed),
        lambda: hr.load_from_disk(store).embedding_sizes(),
        lambda: hr.load_from_disk(store).accounting,
        lambda: [[*vocabulary.decode(range(len(vocabulary)))] for vocabulary in _vocabularies(store)],
        lambda: [vocabulary.encode(["item 1", "7", None, "nowhere"]) for vocabulary in _vocabularies(store)],
        lambda: hr.Encoder(store, labels=True).encode(log),
        *(partial(_read, store, split) for split in ("train", "valid", "test")),
        *(partial(_show, store, split) for split in ("train", "valid", "test")),
        *(partial(_epoch, store, split) for split in ("train", "valid", "test")),
    ]
    for number, use in enumerate(uses):
        try:
            use()
        except HeadraceError:
            pass
        except BaseException as error:  # noqa: BLE001 - the test must see whatever it was
            where = traceback.extract_tb(error.__traceback__)
            frame = [where[-1], *(frame for frame in where if "headrace" in frame.filename)][-1]
            wrong.append(f"use {number}: {error!r} at {frame.filename}:{frame.lineno}")
    return wrong


def _verify(store: Path, changed: str) -> None:
    try:
        lines = hr.verify(store)
    except StoreError as error:
        lines = [str(error).removeprefix(f"{store}/")]
    assert any(line.startswith(changed) for line in lines), f"verify is silent: {lines}"


def _vocabularies(store: Path) -> list[Any]:
    return list(hr.load_from_disk(store).vocabularies.values())


def _read(store: Path, split: str) -> None:
    data = hr.load_from_disk(store)[split]
    data.to_list()
    if len(data):
        assert data[len(data) - 1]
        data.ids([0, len(data) - 1])


def _show(store: Path, split: str) -> None:
    data = hr.load_from_disk(store)[split]
    for row in shown_rows(data, range(len(data))):
        list(row_lines(row))


def _epoch(store: Path, split: str) -> None:
    data = hr.load_from_disk(store)[split]
    for options in ({"masks": True, "pad_to": "max"}, {"layout": "jagged"}):
        everything: Any = {"batch_size": 16, "shuffle": "global", "seed": 3, "output": "numpy", **options}
        for _ in data.loader(**everything):
            pass


class Told(BaseException):
    """What a job has to say."""


JOBS: dict[str, Callable[..., None]] = {
    "build": build,
    "encode": encode,
    "killed": killed,
    "stopped": stopped,
    "steps": steps,
    "flips": flips,
    "scratch": scratch,
    "as_nobody": as_nobody,
}


def start(name: str, *arguments: Any) -> int:
    """Fork a child that does a job; what it raises goes to a pipe."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        PIPES[child] = reading
        return child
    os.close(reading)
    try:
        JOBS[name](*arguments)
    except HeadraceError as error:
        os.write(writing, f"{type(error).__name__}: {error}".encode())
    except Told as told:
        os.write(writing, str(told).encode())
    except BaseException as error:  # noqa: BLE001 - the test must see whatever it was
        os.write(writing, f"UNEXPECTED {error!r}".encode())
    os._exit(0)


PIPES: dict[int, int] = {}


def wait(child: int) -> str:
    """Wait for a child; return what it raised, ``""`` for nothing, or which signal killed it."""
    with os.fdopen(PIPES.pop(child), "rb") as pipe:
        raised = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    return f"killed by {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else raised


def main() -> None:
    """Answer each line of standard input with one line."""
    make_small()
    warnings.simplefilter("ignore", DeprecationWarning)  # threads of Arrow are there when a child is forked
    build(sys.argv[1], sys.argv[2])
    for line in sys.stdin:
        question, *arguments = json.loads(line)
        print(json.dumps(start(*arguments) if question == "start" else wait(*arguments)), flush=True)


if __name__ == "__main__":
    main()
