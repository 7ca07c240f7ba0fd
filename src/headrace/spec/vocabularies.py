"""Vocabularies: which values get an id, and what becomes of the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field

from headrace.spec.base import LARGEST_INTEGER, Count, Declared, Text
from headrace.spec.problems import Problem

Unseen: TypeAlias = Literal["unknown", "hash", "error"]


class ReservedIds(NamedTuple):
    """The ids before a vocabulary's first value."""

    pad: int
    unknown: int
    missing: int | None
    """None where no feature on the vocabulary has ``missing = "own"``."""
    first: int
    """The id of the most frequent value."""


class Reserved(Declared):
    """Merges PAD, UNKNOWN and MISSING where a model wants it: ``{ pad = 0, unknown = 0 }``."""

    pad: Literal[0] = 0
    """PAD is always 0."""

    unknown: Literal[0, 1] = 1
    """0 merges UNKNOWN with PAD."""

    missing: Literal[0, 1, 2] | None = None
    """An id of PAD or UNKNOWN merges MISSING with it; None is the next free id."""

    def mistakes(self) -> Iterable[Problem]:
        """Find a gap between the reserved ids."""
        if self.missing is not None and self.missing > self.unknown + 1:
            yield Problem(
                ("missing",),
                f"expected at most {self.unknown + 1}, found {self.missing}: no id may be left out.",
            )

    def ids(self, *, has_missing: bool) -> ReservedIds:
        """Return the reserved ids of a vocabulary that holds MISSING or not."""
        if not has_missing:
            return ReservedIds(self.pad, self.unknown, None, self.unknown + 1)
        missing = self.unknown + 1 if self.missing is None else self.missing
        return ReservedIds(self.pad, self.unknown, missing, max(self.unknown, missing) + 1)


class VocabularyKeys(Declared):
    """The keys of ``[vocabularies.*]``; they may stand in a feature that has a vocabulary of its own."""

    min_count: Count = 1
    """Fewest times that a value must stand in the train split."""

    max_size: Count | None = None
    """Most values kept: the most frequent, ties by value in byte order. None: no limit."""

    unseen: Unseen = "unknown"
    """What becomes of a value that has no id: UNKNOWN, one of the unknown buckets, or an error."""

    unknown_buckets: Annotated[int, Field(ge=0, le=LARGEST_INTEGER)] = 0
    """With ``unseen = "hash"``: the number of buckets, which are the last ids."""

    reserved: Reserved = Field(default_factory=Reserved)
    """Which of PAD, UNKNOWN and MISSING are merged; by default none."""

    def mistakes(self) -> Iterable[Problem]:
        """Find ``hash`` without buckets, and buckets without ``hash``."""
        if self.unseen == "hash" and not self.unknown_buckets:
            yield Problem(
                (), "unseen = \"hash\" needs the key 'unknown_buckets', at least 1.", at=("unseen",)
            )
        if self.unseen != "hash" and self.unknown_buckets:
            yield Problem(
                ("unknown_buckets",),
                f'has no meaning with unseen = "{self.unseen}". Write unseen = "hash", or leave it out.',
            )


VOCABULARY_KEYS = tuple(VocabularyKeys.model_fields)
"""The keys that fit a vocabulary: they have no meaning where it is taken from elsewhere."""


def fitted_keys_beside(declared: VocabularyKeys, elsewhere: str) -> Iterable[Problem]:
    """Find keys of fitting beside the key ``elsewhere``, which says where the fitted vocabulary is."""
    for key in VOCABULARY_KEYS:
        if declared.written(key):
            yield Problem(
                (key,),
                f"has no meaning beside '{elsewhere}': the keys of that vocabulary hold. Leave it out.",
            )


class VocabularySpec(VocabularyKeys):
    """What several features share, or what one feature has to itself."""

    from_: Text | None = None
    """Folder of another store, whose vocabulary of the same name is taken instead of fitting one."""

    description: str = ""
    """What its values are, for people."""

    def mistakes(self) -> Iterable[Problem]:
        """Find also keys of fitting where nothing is fitted."""
        yield from super().mistakes()
        if self.from_ is not None:
            yield from fitted_keys_beside(self, "from")
