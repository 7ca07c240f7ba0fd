"""Plain text for people: aligned columns, counts, and values that a terminal shows as they are."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence

_LONGEST = 60


def counted(number: int, what: str) -> str:
    """Return ``"1 row"``, ``"2,000 rows"``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def quoted(text: str) -> str:
    """Return a raw value in double quotes, with control characters escaped and long ones cut."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    safe = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in cut)
    return json.dumps(safe, ensure_ascii=False) if safe == cut else f'"{safe}"'


def number_text(value: float) -> str:
    """Return a number with the seven digits that float32 holds."""
    return f"{value:.7g}"


def aligned(rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Return one line a row with its columns below each other.

    Args:
        rows: Cells; shorter rows end early.
        right: Numbers of the columns that are set flush right.
    """
    table = list(rows)
    columns = itertools.zip_longest(*table, fillvalue="")
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(
            cell.rjust(widths[place]) if place in right else cell.ljust(widths[place])
            for place, cell in enumerate(row)
        ).rstrip()
        for row in table
    ]


def indented(lines: Iterable[str]) -> list[str]:
    """Return lines two places further to the right."""
    return [f"  {line}" for line in lines]
