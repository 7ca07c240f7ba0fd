"""What turns counts into a vocabulary, and which ids are reserved in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from headrace.errors import VocabularyError

PAD = 0
UNKNOWN = 1

Unseen = Literal["unknown", "hash", "error"]


@dataclass(frozen=True)
class Rules:
    """What turns counts into a vocabulary."""

    min_count: int = 1
    """Values counted fewer times are left out."""
    max_size: int | None = None
    """At most so many values, the most frequent ones; ``None``: no limit."""
    unseen: Unseen = "unknown"
    """What a value that is not in the vocabulary becomes."""
    unknown_buckets: int = 0
    """With ``unseen="hash"``: how many ids at the end share such values."""
    unknown_id: int = UNKNOWN
    """0 merges UNKNOWN with PAD."""
    missing_id: int | None = None
    """The id of MISSING, by default ``unknown_id + 1``; ``None``: missing values have no id of their own."""

    @property
    def null_id(self) -> int:
        """The id of a missing value: MISSING, or UNKNOWN where that is not reserved."""
        return self.unknown_id if self.missing_id is None else self.missing_id

    @property
    def first_id(self) -> int:
        """The id of the most frequent value."""
        return max(self.unknown_id, self.null_id) + 1

    def kind_of(self, token_id: int, values: int) -> str:
        """Return ``"pad"``, ``"unknown"``, ``"missing"``, ``"value"`` or ``"bucket"``."""
        place = token_id - self.first_id
        if place >= 0:
            return "value" if place < values else "bucket"
        if token_id == PAD:
            return "pad"
        return "unknown" if token_id == self.unknown_id else "missing"

    def check(self) -> None:
        """Raise ``VocabularyError`` where the rules do not fit together."""
        if not _is_integer(self.min_count) or self.min_count < 1:
            raise VocabularyError(f"min_count is {self.min_count!r}; it must be an integer of at least 1.")
        if self.max_size is not None and (not _is_integer(self.max_size) or self.max_size < 0):
            raise VocabularyError(
                f"max_size is {self.max_size!r}; it must be an integer of at least 0, or None for no limit."
            )
        if self.unseen not in ("unknown", "hash", "error"):
            raise VocabularyError(f"unseen is {self.unseen!r}; it must be 'unknown', 'hash' or 'error'.")
        if not _is_integer(self.unknown_buckets):
            raise VocabularyError(f"unknown_buckets is {self.unknown_buckets!r}; it must be an integer.")
        if (self.unseen == "hash") != (self.unknown_buckets > 0):
            raise VocabularyError(
                f"unseen is {self.unseen!r} and unknown_buckets is {self.unknown_buckets}: "
                "unseen='hash' needs unknown_buckets of at least 1, and the others 0."
            )


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
