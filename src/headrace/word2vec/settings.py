"""What a word2vec sample is, beside the corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from headrace.errors import CorpusError

NegativesPer: TypeAlias = Literal["pair", "center"]
Width: TypeAlias = Literal["batch", "max"]
Exhausted: TypeAlias = Literal["error", "mask"]


@dataclass(frozen=True)
class Settings:
    """What a sample is, beside the corpus."""

    window: int
    """Largest window; each centre draws its own uniformly from ``1..window``."""
    negatives: int
    """Noise words, for each pair or each centre."""
    negatives_per: NegativesPer
    """Whether each context has noise of its own, or the centre has one set."""
    subsample: float | None
    """Threshold t of the keep rule; ``None`` keeps every token."""
    power: float
    """Noise is drawn in proportion to count to this power."""
    width: Width
    """Rows as long as the longest in the batch, or as the longest possible."""
    exhausted: Exhausted
    """Where every word is a context of one centre: an error, or no negatives for it."""
    predicts_center: bool
    """Whether the centre is what is predicted (CBOW), so that it is never its own noise."""

    def check(self) -> None:
        """Raise ``CorpusError`` where a setting is impossible."""
        _check_integer("window", self.window, 1)
        _check_integer("negatives", self.negatives, 0)
        _check_choice("negatives_per", self.negatives_per, ("pair", "center"))
        _check_choice("width", self.width, ("batch", "max"))
        _check_choice("exhausted", self.exhausted, ("error", "mask"))

    @property
    def per_context(self) -> int:
        """Negatives for each context."""
        return self.negatives if self.negatives_per == "pair" else 0

    @property
    def per_center(self) -> int:
        """Negatives for each centre, beside those."""
        return self.negatives if self.negatives_per == "center" else 0

    def columns(self, contexts: int) -> int:
        """Return how many columns a row with so many contexts takes."""
        return contexts * (1 + self.per_context) + self.per_center


def is_number(value: Any) -> bool:
    """Whether a value is a number, and no boolean."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _check_integer(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise CorpusError(f"{name} is {value!r}; it must be an integer of at least {least}.")


def _check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise CorpusError(f"{name} is {value!r}; it must be {' or '.join(map(repr, allowed))}.")
