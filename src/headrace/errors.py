"""The error tree: everything that headrace raises on purpose.

    HeadraceError
    ├── SpecError        what the user declared cannot be
    ├── SourceError      raw files cannot be read as declared
    ├── BuildError       a build cannot go on (too many bad rows, another builder, a full disk)
    ├── StoreError       a store is missing, half-built, damaged or of another format
    ├── VocabularyError  a token or id is not in a vocabulary where it must be
    ├── OrderError       ranks, batch sizes, epochs or positions that do not fit together
    ├── LoaderError      a batch could not be made
    ├── StateError       a loader's state belongs to another dataset, seed or order
    ├── TextError        tokens, windows or tokenizers that do not fit together
    └── CorpusError      a corpus or a setting that word2vec cannot learn from

Each message says where, what was found, what is allowed and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "BuildError",
    "CorpusError",
    "HeadraceError",
    "LoaderError",
    "OrderError",
    "SourceError",
    "SpecError",
    "StateError",
    "StoreError",
    "TextError",
    "VocabularyError",
    "did_you_mean",
]


class HeadraceError(Exception):
    """Base of every error that headrace raises on purpose."""


class SpecError(HeadraceError, ValueError):
    """The declaration of the data is impossible; one line for each mistake."""


class SourceError(HeadraceError, ValueError):
    """Raw files are missing or cannot be read as the spec declares them."""


class BuildError(HeadraceError, RuntimeError):
    """A build cannot go on; what was finished is kept for the next run."""


class StoreError(HeadraceError, ValueError):
    """A store is missing, half-built, damaged or of another format version."""


class VocabularyError(HeadraceError, KeyError):
    """A token or an id is not in a vocabulary that must hold it."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class OrderError(HeadraceError, ValueError):
    """Ranks, batch sizes, epochs or positions do not fit together."""


class LoaderError(HeadraceError, RuntimeError):
    """A batch could not be made; the message names the positions."""


class StateError(HeadraceError, ValueError):
    """A loader's state belongs to another dataset, seed or order."""


class TextError(HeadraceError, ValueError):
    """Tokens, windows or tokenizers do not fit together."""


class CorpusError(HeadraceError, ValueError):
    """A corpus or a setting cannot give word2vec samples."""


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the candidate nearest to ``name``, or ``""``."""
    nearest = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.5)
    return f" Did you mean '{nearest[0]}'?" if nearest else ""
