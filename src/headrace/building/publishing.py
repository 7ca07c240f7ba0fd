"""A finished store moves from its staging folder to where it is opened, and can be interrupted anywhere.

From the first step on ``.build/publishing.json`` says what is to be done; until the
manifest is written, last, the folder is no store.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

from headrace import disk
from headrace.dataset.layout import WORK
from headrace.dataset.manifest import MANIFEST_NAME, Manifest, parse_manifest, read_manifest, write_manifest
from headrace.errors import BuildError, StoreError

_JOURNAL = "publishing.json"


def staging_folder(out: Path) -> Path:
    """Return where the files of the store at ``out`` are made."""
    return out / WORK / "store"


def publish(out: Path, manifest: Manifest) -> None:
    """Put the staged files and their manifest in the place of what was at ``out``."""
    disk.write_json(out / WORK / _JOURNAL, {"new": asdict(manifest), "old": _old_names(out)})
    finish_publishing(out)


def finish_publishing(out: Path) -> None:
    """Do what is left of a ``publish`` that was interrupted; nothing where none was."""
    _remove_torn(out)
    journal = out / WORK / _JOURNAL
    if not journal.exists():
        return
    manifest, old = _read(journal)
    (out / MANIFEST_NAME).unlink(missing_ok=True)
    staging = staging_folder(out)
    staged = sorted(staging.iterdir()) if staging.is_dir() else []
    for name in {*old, *(path.name for path in staged)} - _moved(manifest, staged):
        _remove(out / name)
    for path in staged:
        path.rename(out / path.name)
    disk.sync_folder(out)
    write_manifest(out, manifest)
    staging.with_name("store.fingerprint").unlink(missing_ok=True)
    shutil.rmtree(staging, ignore_errors=True)
    journal.unlink()


def _read(journal: Path) -> tuple[Manifest, list[str]]:
    """Return the new manifest and the names to remove, each one directly below the store's folder."""
    try:
        content = json.loads(journal.read_bytes())
        manifest, old = parse_manifest(content["new"], journal), list(content["old"])
        if all(_is_plain(name) for name in old):
            return manifest, old
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
        pass
    raise BuildError(
        f"{journal}: damaged, or no journal of headrace's. Remove the folder {journal.parent} and "
        "build again; the files of the store beside it can stay."
    )


def _remove_torn(out: Path) -> None:
    """Remove what a killed process was writing: a manifest, a journal or a fingerprint."""
    for path in [
        *out.glob(f"{MANIFEST_NAME}.*{disk.TEMPORARY_SUFFIX}"),
        *(out / WORK).glob(f"*{disk.TEMPORARY_SUFFIX}"),
    ]:
        if path.is_file():
            path.unlink(missing_ok=True)


def _is_plain(name: str) -> bool:
    """Return whether a name is one directly below a folder, and not the one that a build works in."""
    return name not in ("", ".", "..", WORK) and "/" not in name


def _old_names(out: Path) -> list[str]:
    """Return what the store at ``out`` has directly below its folder; other files there are the user's."""
    try:
        manifest = read_manifest(out)
    except StoreError:
        return []
    return _top_names(manifest)


def _top_names(manifest: Manifest) -> list[str]:
    return sorted({entry.name.partition("/")[0] for entry in manifest.entries()})


def _moved(manifest: Manifest, staged: list[Path]) -> set[str]:
    """Return the names that an interrupted run has moved already."""
    return set(_top_names(manifest)) - {path.name for path in staged}


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
