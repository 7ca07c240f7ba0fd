"""Whether a store is what its spec and sources would give, and if not, why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xxhash

from headrace.dataset.manifest import FORMAT_VERSION, Manifest
from headrace.sources import SourceFile
from headrace.spec import Spec

SourceEntry = dict[str, Any]
"""Name, size, modification time and checksum of one source file, as the manifest holds it."""


def describe_files(files: list[SourceFile], known: Mapping[str, SourceEntry]) -> list[SourceEntry]:
    """Describe source files; an unchanged size and time, or version, spares the checksum.

    Args:
        files: The files as they are now.
        known: What an earlier manifest says of them, by name.
    """
    return [_describe(file, known.get(file.name)) for file in files]


def _describe(file: SourceFile, known: SourceEntry | None) -> SourceEntry:
    entry = {"name": file.name, "size": file.size, "modified": file.modified, "version": file.version}
    told = file.modified or file.version
    if told and known is not None and all(known[key] == value for key, value in entry.items()):
        return dict(known)
    return {**entry, "xxh3": file.checksum()}


def store_fingerprint(spec: Spec, sources: Mapping[str, list[SourceEntry]]) -> str:
    """Return the digest of everything that a store's bytes depend on."""
    content = {
        name: [[entry["name"], entry["size"], entry["xxh3"]] for entry in entries]
        for name, entries in sources.items()
    }
    parts = [FORMAT_VERSION, spec.fingerprint, sorted(content.items())]
    return xxhash.xxh3_128_hexdigest(repr(parts).encode())


def reasons_to_build(manifest: Manifest, spec: Spec, sources: Mapping[str, list[SourceEntry]]) -> list[str]:
    """Return why the store must be built again, one line a reason; nothing when it is up to date."""
    reasons = _spec_reasons(manifest, spec)
    for name, entries in sources.items():
        reasons += _file_reasons(manifest.details["sources"].get(name, []), entries)
    if not reasons and manifest.fingerprint != store_fingerprint(spec, sources):
        reasons.append("the store was built from other data")
    return reasons


def _spec_reasons(manifest: Manifest, spec: Spec) -> list[str]:
    before, now = manifest.details["spec"], spec.to_dict()
    if manifest.details["spec_fingerprint"] == spec.fingerprint:
        return []
    return [f"the spec changed: {name}" for name in _differences(before, now)] or ["the spec changed"]


def _differences(before: Any, now: Any, path: str = "") -> list[str]:
    """Return the dotted keys whose values differ, as deep as both sides are tables."""
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        return [] if before == now else [path]
    names = list(dict.fromkeys([*before, *now]))
    found = [
        difference
        for name in names
        for difference in _differences(
            before.get(name), now.get(name), f"{path}.{name}" if path else str(name)
        )
    ]
    return found or ([path or "order of keys"] if list(before) != list(now) else [])


def _file_reasons(before: list[SourceEntry], now: list[SourceEntry]) -> list[str]:
    old, new = ({entry["name"]: entry["xxh3"] for entry in entries} for entries in (before, now))
    reasons = [f"{name} is new" for name in new if name not in old]
    reasons += [f"{name} is gone" for name in old if name not in new]
    return reasons + [f"{name} changed" for name in new if name in old and old[name] != new[name]]
