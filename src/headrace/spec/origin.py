"""Where a spec was written: its file, and the line of each key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from headrace.spec.problems import Path, Problem


class Origin(NamedTuple):
    """The TOML file of a spec.

    Attributes:
        file: Its name as the user gave it.
        lines: The line, from 1, of every key and table.
    """

    file: str
    lines: Mapping[Path, int]

    def line_of(self, place: Path) -> int:
        """Return the line of a key, or of the nearest table around it that is written; else 1."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def message(self, problem: Problem) -> str:
        """Return a mistake on one line, after file and line number."""
        return problem.line(f"{self.file}:{self.line_of(problem.place)}")
