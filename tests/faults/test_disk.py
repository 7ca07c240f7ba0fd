"""Disks that are full, folders that cannot be written: words, nothing half-written, a run that goes on."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import StoreError


@contextlib.contextmanager
def mounted(folder: Path, *options: str) -> Iterator[bool]:
    """Mount something at ``folder`` while the block runs; gives whether that is permitted here."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["mount", *options, str(folder)], capture_output=True, check=False)
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def more_room(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)


def unfinished(out: Path) -> None:
    """What a build that failed leaves is no store, and shows no file outside ``.build``."""
    with pytest.raises(StoreError):
        hr.load_from_disk(out)
    assert [path.name for path in out.iterdir()] in ([], [".build"])
    staged = out / ".build" / "store"
    assert all(path.name.endswith(".arrow") or path.is_dir() for path in staged.rglob("*"))


@pytest.fixture(scope="module")
def built(headrace: Any, job: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job's store as the command line makes it; to be read only."""
    out = tmp_path_factory.mktemp("built") / "store"
    assert headrace("build", job.toml, "--out", out).code == 0
    return out


@pytest.mark.parametrize("size", ["64k", "160k", "260k"])
def test_a_full_disk(headrace: Any, job: Any, built: Path, bytes_of: Any, tmp_path: Path, size: str) -> None:
    """Where mounting is not permitted, a limit on the size of a file stands for the end of the disk."""
    out = tmp_path / "disk" / "store"
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", f"size={size}", "tmpfs") as permitted:
        if permitted:
            done = headrace("build", job.toml, "--out", out)
            assert "No space left on device" in done.err
        else:
            done = headrace("build", job.toml, "--out", out, preexec_fn=only_small_files)
            assert "File too large" in done.err
        assert done.code == 1
        assert done.err.startswith("error: ")
        assert "Traceback" not in done.err
        assert str(tmp_path / "disk") in done.err
        assert "run the same again: what is finished is kept." in done.err
        unfinished(out)
        if permitted:
            more_room(tmp_path / "disk")
        assert headrace("build", job.toml, "--out", out).code == 0
        assert bytes_of(out) == bytes_of(built)


def only_small_files() -> None:
    """Let this process write files of at most 8 KiB: writing more fails, as on a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, 8_192))


def test_no_file_may_grow(headrace: Any, job: Any, built: Path, bytes_of: Any, tmp_path: Path) -> None:
    """A quota on files fails at the first large one, wherever that is."""
    out = tmp_path / "store"
    done = headrace("build", job.toml, "--out", out, preexec_fn=only_small_files)
    assert done.code == 1
    assert done.err.startswith("error: ")
    assert "File too large" in done.err
    unfinished(out)
    assert headrace("build", job.toml, "--out", out).code == 0
    assert bytes_of(out) == bytes_of(built)


def test_a_full_disk_in_python(forks: Any, job: Any, tmp_path: Path) -> None:
    """An error of headrace's own, from ``build`` and from ``encode``."""
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=192k", "tmpfs") as permitted:
        if not permitted:
            pytest.skip("mounting is not permitted here; test_no_file_may_grow covers the same path")
        raised = forks.do("build", job.spec, tmp_path / "disk" / "store")
    assert raised.startswith("BuildError: ")
    assert "No space left on device" in raised


@pytest.fixture
def open_path(tmp_path: Path) -> Iterator[Path]:
    """A folder that another user can reach."""
    changed = []
    for folder in [tmp_path, *tmp_path.parents]:
        mode = folder.stat().st_mode & 0o777
        if mode & 0o005 != 0o005 and folder.stat().st_uid == os.getuid():
            folder.chmod(mode | 0o055)
            changed.append((folder, mode))
    yield tmp_path
    for folder, mode in changed:
        folder.chmod(mode)


def test_arrays_in_files_are_refused_and_kill_nothing(forks: Any, tmp_path: Path) -> None:
    """A map over a file with holes would end the process with SIGBUS where the disk is full."""
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=128k", "tmpfs") as permitted:
        if not permitted:
            pytest.skip("mounting is not permitted here")
        assert forks.do("scratch", tmp_path / "disk", 50_000) == ""
        raised = forks.do("scratch", tmp_path / "disk", 500_000)
    assert raised == "UNEXPECTED OSError(28, 'No space left on device')"


def test_a_folder_that_may_not_be_written(forks: Any, make_job: Any, open_path: Path) -> None:
    job = make_job(open_path / "job", rows=20)
    folder = open_path / "theirs"
    folder.mkdir(mode=0o555)
    raised = forks.do("as_nobody", "build", job.spec, folder / "store")
    assert raised.startswith(f"BuildError: {folder / 'store'} cannot be written (Permission denied). Choose")
    assert list(folder.iterdir()) == []


def test_a_file_that_may_not_be_read(forks: Any, make_job: Any, open_path: Path) -> None:
    job = make_job(open_path / "job")
    job.files[1].chmod(0o000)
    (open_path / "out").mkdir()
    (open_path / "out").chmod(0o777)
    raised = forks.do("as_nobody", "build", job.spec, open_path / "out" / "store")
    assert raised.startswith("SourceError: ")
    assert f"{job.files[1]}' cannot be read: Permission denied" in raised


def test_a_disk_that_is_mounted_to_be_read(
    headrace: Callable[..., Any], job: Any, built: Path, bytes_of: Any, tmp_path: Path
) -> None:
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs") as permitted:
        if not permitted:
            pytest.skip("mounting is not permitted here; a folder without permission is another test")
        done = headrace("build", job.toml, "--out", tmp_path / "disk" / "store")
        assert done.code == 1
        assert done.err.startswith(f"error: {tmp_path / 'disk' / 'store'} cannot be written (Read-only file")


def test_a_store_on_a_disk_that_cannot_be_written_is_read(
    forks: Any, job: Any, store: Path, tmp_path: Path
) -> None:
    """Opening, verifying and encoding with a store write nothing into it."""
    with mounted(tmp_path / "disk", "--bind", "-o", "ro", str(store)) as permitted:
        if not permitted:
            pytest.skip("mounting is not permitted here")
        place = tmp_path / "disk"
        subprocess.run(["mount", "-o", "remount,ro,bind", str(place)], check=True)
        assert forks.do("encode", place, [str(job.files[0])], tmp_path / "new") == ""
        assert hr.verify(place) == []
        assert len(hr.load_from_disk(place)["train"].to_list()) > 0
