"""What names a split or a part of one: ``"train"``, ``"train[:10%]"``, ``"train[9:]+test"``, ``"all"``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.errors import SourceError, did_you_mean

_PART = re.compile(r"(?P<name>\w+(?:\.\w+)*)(?:\[(?P<begin>-?\d+%?)?:(?P<end>-?\d+%?)?\])?")
_ALL = "all"
_WHOLE = 100


@dataclass(frozen=True)
class SplitPart:
    """A split, or rows of it from one place to another."""

    name: str
    begin: str | None = None
    """A row, counted from the end where negative, or a share such as ``"10%"``; None: the first."""
    end: str | None = None
    """The row before which it ends; None: after the last."""

    @property
    def is_cut(self) -> bool:
        """Whether it may be less than the split."""
        return self.begin is not None or self.end is not None

    def rows(self, count: int) -> range:
        """Return the rows of the part in a split of ``count`` rows; a share is rounded to the nearest row."""
        return range(_place(self.begin, 0, count), _place(self.end, count, count))


def _place(text: str | None, default: int, count: int) -> int:
    """Return the row that a border means, in ``[0, count]``."""
    if text is None:
        return default
    share = text.endswith("%")
    place = round(int(text[:-1]) * count / _WHOLE) if share else int(text)
    return min(max(place + count, 0) if place < 0 else place, count)


def parts_of_split(split: str, names: Sequence[str]) -> list[SplitPart]:
    """Return the parts that a split's text names, in order.

    Args:
        split: What the user wrote.
        names: The splits that are there.

    Raises:
        SourceError: It names no split that is there, or is no such text.
    """
    return [part for text in split.split("+") for part in _parts(text, split, names)]


def _parts(text: str, split: str, names: Sequence[str]) -> list[SplitPart]:
    match = _PART.fullmatch(text)
    if match is None:
        raise SourceError(
            f"split={split!r}: expected a name such as 'train', with or without rows: 'train[:100]', "
            "'train[10%:20%]', several joined by '+'."
        )
    part = SplitPart(match["name"], match["begin"], match["end"])
    _check_borders(part, split)
    if text == _ALL and _ALL not in names:
        return [SplitPart(name) for name in names]
    if part.name not in names:
        raise SourceError(
            f"split={split!r}: there is no split {part.name!r}, only {', '.join(names)}."
            + did_you_mean(part.name, names)
        )
    return [part]


def _check_borders(part: SplitPart, split: str) -> None:
    borders = [border for border in (part.begin, part.end) if border is not None]
    shares = [border for border in borders if border.endswith("%")]
    if len(shares) not in (0, len(borders)) or any(abs(int(share[:-1])) > _WHOLE for share in shares):
        raise SourceError(f"split={split!r}: both borders are rows, or both shares from -100% to 100%.")
