"""Machine code on disk: one file for each kernel, signature and machine.

    [0, 16)     XXH3-128 of what follows
    [16, 32)    fingerprint of what the code was made from
    [32, ...)   object code

A file that is torn, damaged or made from something else is as good as none. Files lie in
``__pycache__`` next to the kernels where that can be written, else in the user's cache folder;
``NUMBA_CACHE_DIR`` names another.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import xxhash
from llvmlite import __version__ as llvmlite_version
from llvmlite import binding

_CHECKSUM = 16
FINGERPRINT_BYTES = 16
_SUFFIX = ".native"


def read_code(name: str, fingerprint: bytes) -> bytes | None:
    """Return object code that was kept under a name, ``None`` where there is none of this fingerprint."""
    for folder in _folders():
        with contextlib.suppress(OSError):
            content = (folder / _file_name(name)).read_bytes()
            code = content[_CHECKSUM + FINGERPRINT_BYTES :]
            if content[:_CHECKSUM] == _checksum(fingerprint + code):
                return code
    return None


def keep_code(name: str, fingerprint: bytes, code: bytes) -> None:
    """Write object code for later processes, in the first folder that can be written, if there is one."""
    content = _checksum(fingerprint + code) + fingerprint + code
    for folder in _folders():
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / _file_name(name)
            temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
            try:
                temporary.write_bytes(content)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
            return


def digest(text: str) -> str:
    """Return 16 hexadecimal digits that stand for a text in a file's name."""
    return xxhash.xxh3_64_hexdigest(text.encode())


def _checksum(content: bytes) -> bytes:
    return xxhash.xxh3_128_digest(content)


def _file_name(name: str) -> str:
    return f"{name}-{_machine()}{_SUFFIX}"


@functools.cache
def _folders() -> tuple[Path, ...]:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return (Path(chosen),)
    beside = Path(__file__).resolve().parent.parent / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return beside, Path(home) / "headrace"


@functools.cache
def _machine() -> str:
    """Return 16 hexadecimal digits of everything but the kernel itself that machine code depends on."""
    parts = [
        sys.implementation.cache_tag,
        sys.hexversion,
        np.__version__,
        llvmlite_version,
        _numba_version(),
        binding.get_default_triple(),
        binding.get_host_cpu_name(),
        binding.get_host_cpu_features().flatten(),
        *(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))),
    ]
    return xxhash.xxh3_64_hexdigest(repr(parts).encode())


def _numba_version() -> str:
    """Return what stands in Numba's own file of its version; Numba is not imported."""
    found = find_spec("numba")
    if found is None or found.origin is None:
        return ""
    path = Path(found.origin).with_name("_version.py")
    return path.read_text(encoding="utf-8") if path.exists() else str(path.parent.stat().st_mtime_ns)
