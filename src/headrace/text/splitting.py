"""Which split a document belongs to, from its content or from a field of its row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xxhash

from headrace.errors import TextError, did_you_mean
from headrace.text.documents import Document
from headrace.text.given_arrays import as_array
from headrace.text.settings import is_number

TRAIN = "train"
_HASH = "hash"


_TAKEN = frozenset(("plans", "tokenizer", "headrace.json", "tokenize.json"))
"""What lies in a store's folder beside its splits."""
_LONGEST = 100


def _names_a_folder(name: object) -> bool:
    """Whether a split can be called so: its shards lie in a folder of that name, on any system."""
    return (
        isinstance(name, str)
        and re.fullmatch(r"\w[\w. -]*(?<![. ])", name) is not None
        and len(name) <= _LONGEST
        and name not in _TAKEN
    )


@dataclass(frozen=True)
class Splitting:
    """Shares of documents by a hash: the same document is always on the same side, wherever it stands.

    shares={"valid": 0.01, "test": 0.01}    [0, 0.01) valid, [0.01, 0.02) test, the rest train
    """

    shares: Mapping[str, float]
    by: str = _HASH
    """``"hash"`` of the text, or the name of a field whose equal values stay together."""

    def __post_init__(self) -> None:
        plain = {name: s.item() if isinstance(s, np.generic) else s for name, s in self.shares.items()}
        object.__setattr__(self, "shares", plain)
        wrong = [name for name, share in self.shares.items() if not is_number(share) or not 0 <= share <= 1]
        total = 0.0 if wrong else sum(self.shares.values())
        if wrong or total > 1.0 + 1e-9 or (TRAIN in self.shares and abs(total - 1.0) > 1e-9):
            raise TextError(
                f"split={dict(self.shares)}: each share is in [0, 1] and together they are at most 1; the "
                f"rest is '{TRAIN}', which need not be named."
            )
        bad = [name for name in self.shares if not _names_a_folder(name)]
        if bad:
            raise TextError(
                f"split={dict(self.shares)}: {bad[0]!r} cannot name a split: expected letters, digits, '_', "
                f"'-' and '.', and none of {', '.join(sorted(_TAKEN))}, which a store has itself."
            )

    @property
    def names(self) -> list[str]:
        """The splits, ``train`` first."""
        return [TRAIN, *(name for name in self.shares if name != TRAIN)]

    @cached_property
    def _bounds(self) -> list[tuple[float, str]]:
        named = [(name, share) for name, share in self.shares.items() if name != TRAIN]
        ends = np.cumsum([share for _, share in named])
        return [(float(end), name) for end, (name, _) in zip(ends, named, strict=True)]

    def split_of(self, document: Document, content: int) -> str:
        """Return a document's split.

        Args:
            document: The document.
            content: 64-bit hash of its text.

        Raises:
            TextError: It lacks the field that decides.
        """
        if not self.shares:
            return TRAIN
        place = (content if self.by == _HASH else self._hash_of_field(document)) / 2.0**64
        return next((name for end, name in self._bounds if place < end), TRAIN)

    def _hash_of_field(self, document: Document) -> int:
        if self.by not in document.fields:
            raise TextError(
                f"{document.where}: split_by={self.by!r}, and there is no such field; it has "
                f"{sorted(map(str, document.fields)) or 'no fields'}. Use split_by='hash', or name a field."
                + did_you_mean(self.by, map(str, document.fields))
            )
        return xxhash.xxh3_64_intdigest(str(document.fields[self.by]).encode("utf-8", "surrogatepass"))


def content_hash(text: object) -> int:
    """Return 64 bits that stand for a text, an array's values, or how another thing is written."""
    written = text if isinstance(text, str) else _written(text)
    return xxhash.xxh3_64_intdigest(written.encode("utf-8", "surrogatepass"))


def _written(content: object) -> str:
    """Return what stands for something that is no text; ``repr`` leaves out most of a long array."""
    values = as_array(content) if hasattr(content, "__array__") else None
    if values is None or values.dtype.hasobject:
        return repr(content)
    return f"{values.dtype.str} {values.shape} {xxhash.xxh3_128_hexdigest(values.tobytes())}"
