"""Parsed parts that are what was written, or are known not to be.

A part is not flushed to the disk: that would cost more than to parse it again. After a power cut a file may
have its name and its size and not its bytes, and a disk may give back other ones; so a part is
sealed with its checksums, and they are compared before an earlier run's part is used.

    00000/seal.json    {"files": {"rows.arrow": "91b0...", ...}}
"""

from __future__ import annotations

import json
from pathlib import Path

from headrace import disk

_SEAL = "seal.json"


def seal(folder: Path) -> None:
    """Note the checksums of the files of a folder that has not got its name yet."""
    (folder / _SEAL).write_bytes(disk.json_bytes({"files": _checksums(folder)}))


def is_sealed(folder: Path) -> bool:
    """Return whether a folder holds what it held when it was sealed."""
    try:
        files: object = json.loads((folder / _SEAL).read_bytes())["files"]
        return files == _checksums(folder)
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _checksums(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.iterdir() if path.name != _SEAL)
    return {path.name: disk.checksum(path) for path in paths}
