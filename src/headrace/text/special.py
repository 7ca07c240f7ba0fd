"""What a model must know about ids, and no id tells: how many there are, and which mean something."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.errors import TextError

MOST_IDS = 1 << 63
"""Number of ids that batches can hold: they are int64."""


@dataclass(frozen=True)
class Special:
    """What a model must know about the ids: given with the tokens, since no id tells it."""

    vocab_size: int | None = None
    """Number of ids; every id is below it. None: not known."""
    eos: int | None = None
    """Id that ends a document."""
    pad: int | None = None
    """Id for padding."""
    mask: int | None = None
    """Id that stands for a masked token."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.integer):
                object.__setattr__(self, name, int(value))


def check_special(special: Special) -> None:
    """Check that special tokens are ids of the vocabulary.

    Raises:
        TextError: One is not.
    """
    for name in ("vocab_size", "eos", "pad", "mask"):
        value = getattr(special, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer))):
            raise TextError(f"{name}={value!r}: expected an integer.")
    if special.vocab_size is not None and not 1 <= special.vocab_size <= MOST_IDS:
        raise TextError(
            f"vocab_size={special.vocab_size}: expected the number of ids, at least 1 and at most {MOST_IDS}."
        )
    size = special.vocab_size or MOST_IDS
    for name in ("eos", "pad", "mask"):
        value = getattr(special, name)
        if value is not None and not 0 <= value < size:
            raise TextError(
                f"{name}={value} is outside the vocabulary of {size} ids; "
                f"give an id in [0, {size}), or a vocab_size that holds it."
            )
