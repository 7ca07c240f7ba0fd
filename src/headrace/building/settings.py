"""What changes how fast and in how much memory a build runs, and no byte of its result."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from headrace.engine.local import default_threads
from headrace.errors import BuildError
from headrace.scratch import Scratch

_MEBIBYTE = 1 << 20
_LARGEST_PART = 64 << 20
_SMALLEST_PART = 1 << 20
_MEMORY_PER_PART_BYTE = 12
"""Anonymous bytes that one thread needs for each raw byte of a part: blocks, columns, dictionaries."""
_ARRAYS_IN_MEMORY = 32
_MUCH_MEMORY = 1 << 29
"""From here on what allocators keep for later, tens of megabytes, is little."""
_PROGRAM = 80 << 20
"""Anonymous bytes of the process without data: Python, the libraries, machine code; measured on Linux."""
_LEAST_SHARE = 4
"""Where so little is given that the program takes most of it, data may take a quarter of it."""
LEAST_MEMORY = _PROGRAM * _LEAST_SHARE // (_LEAST_SHARE - 1)
"""Less than this cannot be kept: 107 MiB, the program and a quarter for data."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]i?B?|B)?", re.IGNORECASE)
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

Progress = Callable[[str, float], None]
"""Takes what is being done, and which share of it is done, 0 to 1."""


def no_progress(stage: str, share: float) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Settings:
    """Speed and memory."""

    memory: int = field(default_factory=lambda: machine_memory() // 4)
    """Bytes of anonymous memory that the build keeps under, the program itself included."""
    threads: int = field(default_factory=default_threads)
    progress: Progress = no_progress

    @property
    def is_little(self) -> bool:
        """Whether what is freed must go back to the system at once: to ask for it again costs time."""
        return self.memory < _MUCH_MEMORY

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is asked for that cannot be kept, one line each."""
        if self.memory >= LEAST_MEMORY:
            return ()
        given = f"{self.memory:,} bytes" if self.memory < _MEBIBYTE else f"{self.memory / _MEBIBYTE:.3g}MiB"
        least, program = -(-LEAST_MEMORY // _MEBIBYTE), _PROGRAM // _MEBIBYTE
        return (
            f"memory is {given}, and the program alone takes about {program}MiB: the build will take "
            f"more than it is given. Give it {least}MiB or more.",
        )

    @property
    def data_memory(self) -> int:
        """Bytes that are left for data, beside the program itself."""
        return max(self.memory - _PROGRAM, self.memory // _LEAST_SHARE)

    @property
    def workers(self) -> int:
        """Threads that work at once: ``threads``, or fewer where memory holds no part for each of them."""
        parts = self.data_memory // (_MEMORY_PER_PART_BYTE * _SMALLEST_PART)
        return max(1, min(self.threads, parts - 1))

    @property
    def part_bytes(self) -> int:
        """Raw bytes of one part."""
        share = self.data_memory // (_MEMORY_PER_PART_BYTE * (self.workers + 1))
        return max(_SMALLEST_PART, min(_LARGEST_PART, share))

    def scratch(self, folder: Path) -> Scratch:
        """Return where arrays lie that are large beside the memory."""
        return Scratch(folder, self.data_memory // _ARRAYS_IN_MEMORY)

    @property
    def longest_record(self) -> int:
        """Raw bytes of the longest row that is read: alone it is a part of one thread."""
        return self.memory // _MEMORY_PER_PART_BYTE

    @property
    def block_bytes(self) -> int:
        """Raw bytes that are parsed at once."""
        return max(1 << 18, min(4 << 20, self.part_bytes // 4))


def machine_memory() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def parse_size(text: str | int) -> int:
    """Return the bytes that ``"1GiB"``, ``"500 MB"`` or a number mean; K, M, G and T are powers of 1024.

    Raises:
        BuildError: It is no size, or nothing.
    """
    found = _SIZE.fullmatch(str(text).strip())
    if found is None or not float(found[1]) or not isinstance(text, str | int):
        raise BuildError(
            f"memory is {text!r}; expected a size such as '4GiB', '500MiB' or a number of bytes."
        )
    unit = (found[2] or "").lower().rstrip("b").rstrip("i")
    return int(float(found[1]) * _FACTORS[unit])
