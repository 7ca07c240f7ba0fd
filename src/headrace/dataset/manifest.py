"""The manifest ``headrace.json``: what a store holds. Written last, so that a store is whole or is none.

Its last key, ``xxh3``, is the XXH3-64 of the file itself with 16 zeros in that place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import xxhash

from headrace import disk
from headrace.dataset.shard import FileEntry
from headrace.errors import StoreError

MANIFEST_NAME = "headrace.json"
FORMAT_VERSION = 1
_CHECKSUM_KEY = "xxh3"
_NO_CHECKSUM = "0" * 16
_LIBRARIES = ("headrace", "numpy", "pyarrow", "numba", "duckdb")


@dataclass(frozen=True)
class Manifest:
    """What a store holds and where it came from."""

    kind: str
    """``"rows"`` (built from a spec), ``"tokens"`` (from text) or ``"table"`` (saved as it was)."""
    fingerprint: str
    """Hexadecimal digest of the declaration and the data that the store was made from."""
    splits: Mapping[str, tuple[FileEntry, ...]]
    """The shards of each split, in row order."""
    files: tuple[FileEntry, ...] = ()
    """Every other file: vocabularies, statistics, quarantine."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What the kind of store adds, JSON-able: spec, sources, row accounting, tokenizer, ..."""
    versions: Mapping[str, str] = field(default_factory=lambda: library_versions())
    """Versions of the libraries that wrote the store; they do not change its bytes."""
    format_version: int = FORMAT_VERSION

    def rows(self, split: str) -> int:
        """Return the number of rows of a split."""
        return sum(entry.rows for entry in self.splits[split])

    def entries(self) -> Iterator[FileEntry]:
        """Yield every file that the manifest pins."""
        for shards in self.splits.values():
            yield from shards
        yield from self.files


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that a store's bytes come through."""
    from importlib.metadata import version

    return {name: version(name) for name in _LIBRARIES}


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write ``headrace.json``: from now on the folder is a store."""
    empty = disk.json_bytes({**asdict(manifest), _CHECKSUM_KEY: _NO_CHECKSUM})
    disk.write_bytes(folder / MANIFEST_NAME, _with_checksum(empty, xxhash.xxh3_64_hexdigest(empty)))


def _with_checksum(content: bytes, checksum: str) -> bytes:
    """Return a manifest's bytes with another checksum in their last key."""
    end = content.rfind(b'"')
    return content[: end - len(checksum)] + checksum.encode() + content[end:]


def _own_difference(content: bytes, told: object) -> str:
    """Return how a manifest's bytes differ from the checksum that they tell; nothing where they do not."""
    if not isinstance(told, str) or len(told) != len(_NO_CHECKSUM):
        return f"has no {_CHECKSUM_KEY} of itself"
    found = xxhash.xxh3_64_hexdigest(_with_checksum(content, _NO_CHECKSUM))
    return "" if found == told else f"XXH3 {found}, itself it says {told}"


def read_manifest(folder: Path) -> Manifest:
    """Read ``headrace.json``.

    Raises:
        StoreError: The folder is no store, a half-built one, of another format
            version, or its manifest names files outside the folder.
    """
    path = folder / MANIFEST_NAME
    try:
        content = path.read_bytes()
        parsed = json.loads(content)
        manifest = parse_manifest(parsed, path)
        difference = _own_difference(content, parsed[_CHECKSUM_KEY]) if _CHECKSUM_KEY in parsed else ""
        if difference:
            raise StoreError(f"{path}: damaged ({difference}). Restore the file, or build the store again.")
        return manifest
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(_why_missing(folder)) from None
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror}).") from None
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{path}: not a headrace manifest ({error!r}). Build the store again.") from None


def _why_missing(folder: Path) -> str:
    if folder.is_file():
        return f"{folder}: a file, expected the folder of a store."
    if not folder.is_dir():
        return f"{folder}: no such folder. Build the store with `headrace build SPEC --out {folder}`."
    return (
        f"{folder}: no {MANIFEST_NAME} in it: not a store, or one whose build has not ended. "
        "Run the build again; it goes on where it stopped."
    )


_SOURCE_KEYS = {"name", "size", "modified", "version", "xxh3"}


def _check_rows(details: Mapping[str, Any]) -> None:
    """Raise ``TypeError`` or ``KeyError`` where details of a store of rows are not what is read from them."""
    _table(details["spec"])
    _text(details["spec_fingerprint"])
    for entries in [details["sources"]["rows"], *_table(details["sources"]).values()]:
        for entry in entries:
            if not _table(entry).keys() >= _SOURCE_KEYS:
                raise TypeError(f"{entry!r}, expected a source file")
            _text(entry["name"])


def parse_manifest(content: Any, path: Path) -> Manifest:
    """Return the manifest that was read from ``path`` as JSON; errors as those of ``read_manifest``."""
    if content["format_version"] != FORMAT_VERSION:
        raise StoreError(
            f"{path}: format version {content['format_version']}, this headrace reads {FORMAT_VERSION}. "
            "Build the store again, or install the headrace that wrote it."
        )
    if content["kind"] == "rows":
        _check_rows(_table(content["details"]))
    return Manifest(
        kind=_text(content["kind"]),
        fingerprint=_text(content["fingerprint"]),
        splits={
            _plain_name(name, path): _entries(shards, path) for name, shards in content["splits"].items()
        },
        files=_entries(content["files"], path),
        details=_table(content["details"]),
        versions=_table(content["versions"]),
        format_version=content["format_version"],
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r}, expected text")
    return value


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r}, expected an object")
    return value


def _entries(entries: Iterable[Mapping[str, Any]], path: Path) -> tuple[FileEntry, ...]:
    return tuple(
        FileEntry(
            name=_inside(str(entry["name"]), path),
            bytes=int(entry["bytes"]),
            xxh3=str(entry["xxh3"]),
            rows=int(entry["rows"]),
        )
        for entry in entries
    )


def _plain_name(name: str, path: Path) -> str:
    if "/" in name or name in ("", ".", ".."):
        raise StoreError(f"{path}: a split is named {name!r}, expected one plain folder name.")
    return name


def _inside(name: str, path: Path) -> str:
    pure = PurePosixPath(name)
    if not pure.parts or pure.is_absolute() or ".." in pure.parts or "\\" in name or "\0" in name:
        raise StoreError(f"{path}: names the file {name!r}, which lies outside the store. Do not open it.")
    return name


def differing_files(folder: Path, manifest: Manifest) -> list[str]:
    """Re-read every file of a store; return one line for each that is not as the manifest says."""
    lines = [_manifest_difference(folder), *(_difference(folder, entry) for entry in manifest.entries())]
    return [line for line in lines if line]


def _manifest_difference(folder: Path) -> str:
    content = (folder / MANIFEST_NAME).read_bytes()
    difference = _own_difference(content, json.loads(content).get(_CHECKSUM_KEY))
    return f"{MANIFEST_NAME}: {difference}" if difference else ""


def _difference(folder: Path, entry: FileEntry) -> str:
    path = folder / entry.name
    try:
        size = path.stat().st_size
        if size != entry.bytes:
            return f"{entry.name}: {size} bytes, the manifest says {entry.bytes}"
        found = disk.checksum(path)
    except OSError as error:
        return f"{entry.name}: cannot be read ({error.strerror})"
    return "" if found == entry.xxh3 else f"{entry.name}: XXH3 {found}, the manifest says {entry.xxh3}"
