"""Exit code 2, help, the version, a fast start, Ctrl-C, and a reader that goes away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

import headrace as hr

Run = Callable[..., Result]
START = [sys.executable, "-c", "import headrace.cli; headrace.cli.main()"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["build"], "Missing argument"),
        (["build", "{raw}/small.toml"], "Missing option '--out'"),
        (["build", "{raw}/smal.toml", "--out", "{new}"], "Did you mean 'small.toml'?"),
        (["build", "{raw}/small.toml", "--out", "{new}", "--memory", "lots"], "such as '4GiB'"),
        (
            ["build", "{raw}/small.toml", "--out", "{new}", "--memory", "0"],
            "memory is '0'; expected a size such as '4GiB'",
        ),
        (["build", "{raw}/small.toml", "--out", "{new}", "--threads", "0"], "--threads"),
        (["bild"], "No such command 'bild'"),
        (["encode", "{store}", "--out", "{new}"], "Missing argument"),
        (["encode", "{raw}/stor", "x.jsonl", "--out", "{new}"], "Did you mean 'store'?"),
        (["verify", "{raw}/stor"], "Did you mean 'store'?"),
        (["show", "{store}", "--split", "tran"], "there are train, test. Did you mean 'train'?"),
        (["show", "{store}", "--row", "2"], "train has rows 0 to 1"),
        (["show", "{store}", "--rows", "0"], "--rows"),
        (["show", "{store}", "--row", "-1"], "--row"),
    ],
)
def test_a_wrong_command_ends_with_2(
    raw: Path, store: Path, tmp_path: Path, run: Run, arguments: list[str], said: str
) -> None:
    filled = [one.format(raw=raw, store=store, new=tmp_path / "new") for one in arguments]
    done = run(*filled)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "new").exists()


def test_the_version(run: Run) -> None:
    assert run("--version").stdout == f"headrace {hr.__version__}\n"


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "headrace", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"headrace {hr.__version__}\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8:strict"])
@pytest.mark.parametrize("as_json", [False, True])
def test_characters_that_the_terminal_lacks_are_escaped(
    raw: Path, tmp_path: Path, encoding: str, as_json: bool
) -> None:
    out = Path(os.fsdecode(os.fsencode(tmp_path) + "/é€".encode() + b"\xff"))
    command = [*START, "build", str(raw / "small.toml"), "--out", str(out), *(["--json"] if as_json else [])]
    done = subprocess.run(
        command, capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": encoding}
    )
    said = done.stdout.decode(encoding.partition(":")[0])
    assert json.loads(said)["store"] == str(out) if as_json else r"\udcff: built in" in said


def test_help_names_every_command(run: Run) -> None:
    said = run("--help").stdout
    assert all(f"\n  {name} " in said for name in ("build", "encode", "verify", "show"))
    assert "..." not in said.partition("Commands:")[2]


def test_it_starts_without_the_libraries_that_are_slow_to_import() -> None:
    code = (
        "import sys, headrace.cli; print({'numpy', 'pyarrow', 'numba', 'rich', 'pydantic'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def hears_ctrl_c() -> None:
    """Undo what a shell does to commands in the background: they ignore Ctrl-C, and so do their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_says_what_is_kept(raw: Path, store: Path, tmp_path: Path) -> None:
    lines = (raw / "rows.jsonl").read_bytes()
    (tmp_path / "rows.jsonl").write_bytes(lines * 40_000)
    (tmp_path / "small.toml").write_bytes((raw / "small.toml").read_bytes())
    command = [*START, "build", str(tmp_path / "small.toml"), "--out", str(tmp_path / "store")]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=hears_ctrl_c
    )
    parsed = tmp_path / "store" / ".build" / "parsed"
    while process.poll() is None and not parsed.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert said.endswith(
        f"Interrupted. What was parsed and encoded is kept in {tmp_path}/store/.build; "
        "the same command goes on from there.\n"
    )
    with pytest.raises(hr.errors.StoreError):
        hr.load_from_disk(tmp_path / "store")


def test_a_reader_that_goes_away_is_no_traceback(store: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*START, "show", str(store)], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert "Traceback" not in done.stderr


def test_bars_are_shown_on_a_terminal(raw: Path, tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    controller, terminal = pty.openpty()
    command = [*START, "build", str(raw / "small.toml"), "--out", str(tmp_path / "store")]
    done = subprocess.run(command, stderr=terminal, stdout=subprocess.PIPE, text=True)
    os.close(terminal)
    assert done.returncode == 0
    assert b"encoding" in os.read(controller, 1 << 16)
    os.close(controller)
