"""Builds that are killed, and stores that are not whole."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace import disk
from headrace.building import ingest, publishing, writing
from headrace.building.settings import Settings
from headrace.errors import BuildError, StoreError

build_module: Any = importlib.import_module("headrace.building.build")


class Killed(BaseException):
    """Stands for a kill: no code of the build catches it."""


def killing(function: Callable[..., Any], after: int) -> Callable[..., Any]:
    """Let ``function`` run ``after`` times, then kill the build."""
    calls = iter(range(after))

    def killed(*arguments: Any, **options: Any) -> Any:
        if next(calls, None) is None:
            raise Killed
        return function(*arguments, **options)

    return killed


@pytest.fixture(scope="module", autouse=True)
def small(ads: hr.DatasetDict) -> Iterator[None]:
    """Several parts and several shards, from little data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "part_bytes", property(lambda _: 60_000))
        patch.setattr(Settings, "block_bytes", property(lambda _: 20_000))
        patch.setattr(writing, "MAXIMUM_BYTES", 12_000)
        yield


@pytest.fixture(scope="module")
def whole(
    small: None, ads_spec: Any, tmp_path_factory: pytest.TempPathFactory, store_bytes: Any
) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("whole") / "store"
    hr.build(ads_spec, out=out, threads=1)
    content: dict[str, bytes] = store_bytes(out)
    return content


STAGES = [
    (ingest, "save_part", 0),
    (ingest, "save_part", 2),
    (build_module, "fit", 0),
    (build_module, "save_fitted", 0),
    (writing, "write_shard", 0),
    (writing, "write_shard", 3),
    (build_module, "write_quarantines", 0),
    (build_module, "publish", 0),
    (publishing, "finish_publishing", 0),
    (publishing, "write_manifest", 0),
]


@pytest.mark.parametrize(("module", "name", "after"), STAGES)
def test_a_second_run_finishes_what_a_killed_one_began(
    whole: dict[str, bytes],
    ads_spec: Any,
    tmp_path: Path,
    store_bytes: Any,
    module: Any,
    name: str,
    after: int,
) -> None:
    out = tmp_path / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, killing(getattr(module, name), after))
        with pytest.raises(Killed):
            hr.build(ads_spec, out=out, threads=1)
    with pytest.raises(StoreError, match=r"no headrace\.json .* Run the build again; it goes on where it"):
        hr.load_from_disk(out)
    finished = {path: path.stat().st_mtime_ns for path in out.rglob("*.arrow")}
    hr.build(ads_spec, out=out, threads=1)
    assert store_bytes(out) == whole
    assert hr.verify(out) == []
    work = out / ".build"
    moved = {
        (out / path.relative_to(work / "store") if (work / "store") in path.parents else path): time
        for path, time in finished.items()
    }
    kept = [
        path for path in moved if path.parent.name in ("train", "valid", "test") or "parsed" in path.parts
    ]
    assert all(path.stat().st_mtime_ns == moved[path] for path in kept)
    if name in ("write_shard", "publish", "write_manifest") and after != 0:
        assert sum(path.parent.name == "train" for path in kept) >= 3


@pytest.mark.parametrize("renames", range(7))
def test_killed_between_any_two_renames_of_publishing(
    whole: dict[str, bytes], ads_spec: Any, tmp_path: Path, store_bytes: Any, renames: int
) -> None:
    """An older store, with a split more, is in the place: what is left is never a mixture that opens."""
    out = tmp_path / "store"
    older = {**ads_spec, "version": 9, "split": {**ads_spec["split"], "later": {"from": 9_000}}}
    older["split"]["test"] = {**older["split"]["test"], "until": 9_000}
    hr.build(older, out=out, threads=1)
    assert (out / "later").is_dir()
    (out / "notes.txt").write_text("the user's own")
    rename = Path.rename

    def counted(path: Path, target: Path) -> Path:
        return steps(path, target) if Path(target).parent == out else rename(path, target)

    steps = killing(rename, renames)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "rename", counted)
        try:
            hr.build(ads_spec, out=out, threads=1)
        except Killed:
            with pytest.raises(StoreError):
                hr.load_from_disk(out)
    hr.build(ads_spec, out=out, threads=1)
    assert (out / "notes.txt").read_text() == "the user's own"
    (out / "notes.txt").unlink()
    assert store_bytes(out) == whole


def test_what_a_killed_writer_left_is_no_part_of_the_store(
    whole: dict[str, bytes], ads_spec: Any, tmp_path: Path, store_bytes: Any
) -> None:
    """Half a shard, half a part (a folder) and a torn fingerprint stand where a kill leaves them."""
    out = tmp_path / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "write_shard", killing(writing.write_shard, 1))
        with pytest.raises(Killed):
            hr.build(ads_spec, out=out, threads=1)
    parts = out / ".build" / "parsed" / "rows"
    last = sorted(parts.glob("[0-9]*"))[-1]
    last.rename(last.with_name(f"{last.name}{disk.TEMPORARY_SUFFIX}"))
    (out / ".build" / "store" / "train" / f"00001.arrow.abc{disk.TEMPORARY_SUFFIX}").write_bytes(b"ARROW1")
    hr.build(ads_spec, out=out, threads=1)
    assert store_bytes(out) == whole


def test_shards_of_another_spec_are_not_taken_up(ads_spec: Any, tmp_path: Path, store_bytes: Any) -> None:
    other = json.loads(json.dumps(ads_spec))
    other["features"]["history"]["max_length"] = 2
    hr.build(other, out=tmp_path / "direct", threads=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "write_shard", killing(writing.write_shard, 3))
        with pytest.raises(Killed):
            hr.build(ads_spec, out=tmp_path / "store", threads=1)
    hr.build(other, out=tmp_path / "store", threads=1)
    assert store_bytes(tmp_path / "store") == store_bytes(tmp_path / "direct")


def test_an_encode_that_was_killed_is_finished(ads: hr.DatasetDict, ads_file: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "write_shard", killing(writing.write_shard, 2))
        with pytest.raises(Killed):
            hr.encode(ads.folder, ads_file, out=tmp_path / "new", threads=1)
    with pytest.raises(StoreError):
        hr.load_from_disk(tmp_path / "new")
    new = hr.encode(ads.folder, ads_file, out=tmp_path / "new", threads=1)
    again = hr.encode(ads.folder, ads_file, out=tmp_path / "again", threads=1)
    assert new.to_arrow().equals(again.to_arrow())


def test_a_killed_rebuild_leaves_the_old_store_open(ads_spec: Any, tmp_path: Path, store_bytes: Any) -> None:
    """Until publishing begins, the store that is there stays whole."""
    hr.build(ads_spec, out=tmp_path / "store")
    before = store_bytes(tmp_path / "store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_module, "publish", killing(build_module.publish, 0))
        with pytest.raises(Killed):
            hr.build({**ads_spec, "version": 2}, out=tmp_path / "store")
    assert store_bytes(tmp_path / "store") == before
    assert hr.load_from_disk(tmp_path / "store").spec.version == 1


def test_a_finished_store_is_opened_and_nothing_is_written(ads_spec: Any, tmp_path: Path) -> None:
    out = tmp_path / "store"
    hr.build(ads_spec, out=out)
    before = {
        path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file() and path.name != "lock"
    }
    hr.build(ads_spec, out=out, threads=3, memory="1GiB")
    after = {
        path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file() and path.name != "lock"
    }
    assert after == before


def _build_to_be_killed(spec: Any, out: Path, started: Any) -> None:
    def progress(stage: str, share: float) -> None:
        if stage == "encoding":
            started.set()
            os.kill(os.getpid(), 9)

    hr.build(spec, out=out, threads=1, progress=progress)


def test_a_process_that_is_killed(
    whole: dict[str, bytes], ads_spec: Any, tmp_path: Path, store_bytes: Any
) -> None:
    context = multiprocessing.get_context("fork")
    started = context.Event()
    process = context.Process(target=_build_to_be_killed, args=(ads_spec, tmp_path / "store", started))
    process.start()
    process.join(60)
    assert started.is_set()
    assert process.exitcode == -9
    hr.build(ads_spec, out=tmp_path / "store", threads=1)
    assert store_bytes(tmp_path / "store") == whole


def test_two_builders_of_one_store(ads_spec: Any, tmp_path: Path) -> None:
    out = tmp_path / "store"
    messages = []

    def progress(stage: str, share: float) -> None:
        if not messages:
            with pytest.raises(BuildError) as caught:
                hr.build(ads_spec, out=out)
            messages.append(str(caught.value))

    hr.build(ads_spec, out=out, progress=progress)
    assert messages[0].startswith(f"{out} is being written by another process (lock file ")
    assert messages[0].endswith("Wait for it to end, or choose another --out.")
    assert hr.verify(out) == []


def test_verify_names_each_file_that_differs(ads: hr.DatasetDict, tmp_path: Path) -> None:
    out = tmp_path / "store"
    shutil.copytree(ads.folder, out)
    assert hr.verify(out) == []
    for number, entry in enumerate(list(ads.manifest.entries())):
        path = out / entry.name
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1 << number % 8
        path.write_bytes(content)
        (line,) = hr.verify(out)
        assert line.startswith(f"{entry.name}: XXH3 ")
        path.write_bytes((ads.folder / entry.name).read_bytes())
    (out / "train" / "00000.arrow").unlink()
    with (out / "statistics.arrow").open("ab") as file:
        file.write(b"\0")
    size = (out / "statistics.arrow").stat().st_size
    assert hr.verify(out) == [
        "train/00000.arrow: cannot be read (No such file or directory)",
        f"statistics.arrow: {size} bytes, the manifest says {size - 1}",
    ]


def test_a_lost_shard_is_a_reason_to_build(ads_spec: Any, tmp_path: Path, store_bytes: Any) -> None:
    out = tmp_path / "store"
    hr.build(ads_spec, out=out)
    before = store_bytes(out)
    (out / "valid" / "00000.arrow").unlink()
    with pytest.raises(StoreError, match=r"valid/00000\.arrow: the shard is missing\. Build the store again"):
        hr.load_from_disk(out)["valid"]
    assert hr.why_stale(ads_spec, out) == ["valid/00000.arrow is missing"]
    hr.build(ads_spec, out=out)
    assert store_bytes(out) == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format_version": 1}', b"null", b"\xff"])
def test_a_damaged_manifest_opens_no_store_and_is_built_anew(
    ads_spec: Any, tmp_path: Path, content: bytes
) -> None:
    out = tmp_path / "store"
    out.mkdir()
    (out / "headrace.json").write_bytes(content)
    with pytest.raises(StoreError, match="Build the store again"):
        hr.load_from_disk(out)
    splits = hr.build(ads_spec, out=out)
    assert splits.num_rows["train"] > 0


def test_folders_that_hold_something_else(ads_spec: Any, tmp_path: Path) -> None:
    foreign = tmp_path / "photos"
    foreign.mkdir()
    (foreign / "cat.jpg").write_bytes(b"miaow")
    with pytest.raises(
        BuildError, match=r"photos is not empty and holds no store\. Choose an empty or new folder"
    ):
        hr.build(ads_spec, out=foreign)
    assert [path.name for path in foreign.iterdir()] == ["cat.jpg"]
    with pytest.raises(BuildError, match=r"cat\.jpg is a file\. Choose a folder"):
        hr.build(ads_spec, out=foreign / "cat.jpg")
    with pytest.raises(StoreError, match=r"cat\.jpg: a file, expected the folder of a store"):
        hr.load_from_disk(foreign / "cat.jpg")
    with pytest.raises(StoreError, match=r"nowhere: no such folder\. Build the store with `headrace build"):
        hr.load_from_disk(tmp_path / "nowhere")


def test_a_store_of_tokens_is_not_overwritten(ads_spec: Any, tmp_path: Path) -> None:
    out = tmp_path / "tokens"
    out.mkdir()
    manifest = {
        "kind": "tokens",
        "fingerprint": "0",
        "splits": {},
        "files": [],
        "details": {},
        "versions": {},
        "format_version": 1,
    }
    (out / "headrace.json").write_text(json.dumps(manifest))
    with pytest.raises(BuildError, match=r"holds a store of tokens, not of rows\. Choose another folder"):
        hr.build(ads_spec, out=out)
    assert json.loads((out / "headrace.json").read_text()) == manifest
