"""Parsed parts that outlive a power cut, or are known not to have.

A part is not flushed to the disk: that would cost more than to parse it again. While the machine
runs, what was written is what is read, also after ``kill -9``. After a power cut a file may have its
name and its size and not its bytes; so a part is sealed with its checksums, and with the
boot it was written in. In another boot the bytes are read and compared before they are used.

    00000/seal.json    {"boot": "7c1e...", "files": {"rows.arrow": "91b0...", ...}}
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headrace import disk

_SEAL = "seal.json"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def current_boot() -> str:
    """Return what names the time since the machine was started; "" where the system does not tell."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def seal(folder: Path) -> None:
    """Note the checksums of the files of a folder that has not got its name yet."""
    content = {"boot": current_boot(), "files": _checksums(folder)}
    (folder / _SEAL).write_bytes(disk.json_bytes(content))


def is_sealed(folder: Path) -> bool:
    """Return whether a folder holds what it held when it was sealed."""
    try:
        content: Any = json.loads((folder / _SEAL).read_bytes())
        boot, files = content["boot"], content["files"]
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return bool(boot and boot == current_boot()) or files == _checksums(folder)


def _checksums(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.iterdir() if path.name != _SEAL)
    return {path.name: disk.checksum(path) for path in paths}
