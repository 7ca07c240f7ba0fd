"""What one stored id stands for: a raw value, or something that has a name but no value."""

from __future__ import annotations

from typing import NamedTuple

from headrace.encoding.ids import FIRST, MISSING, UNKNOWN, table_size
from headrace.errors import StoreError
from headrace.fit.fitted import Fitted
from headrace.fit.rules import PAD, Rules
from headrace.fit.vocabulary import Vocabulary
from headrace.spec import TIME_PARTS, Cross, Feature, Hashed, Numeric, TimePart

_OWN_RULES = Rules(unknown_id=UNKNOWN, missing_id=MISSING)


class Token(NamedTuple):
    """What an id stands for: exactly one of the two is there."""

    raw: str | int | None
    """The raw value."""
    name: str | None
    """``"PAD"``, ``"UNKNOWN"``, ``"MISSING"``, ``"bucket 3 of 100"``; ``"PAD/UNKNOWN"``: they are merged."""


def vocabulary_token(vocabulary: Vocabulary, token_id: int) -> Token:
    """Return what an id of a vocabulary stands for.

    Raises:
        StoreError: The id is beyond the table.
    """
    check_id(token_id, len(vocabulary))
    rules, values = vocabulary.rules, len(vocabulary.values)
    if token_id < rules.first_id:
        return Token(None, reserved_name(rules, token_id))
    place = token_id - rules.first_id
    if place < values:
        return Token(str(vocabulary.values[place]), None)
    return Token(None, f"bucket {place - values} of {rules.unknown_buckets}")


def check_id(token_id: int, size: int) -> None:
    """Raise ``StoreError`` where an id is not in ``[0, size)``: no build writes such a one."""
    if not 0 <= token_id < size:
        raise StoreError(
            f"the id {token_id} is stored where there are ids 0 to {size - 1}: the shard is damaged. "
            "Run `headrace verify` on the store; restore the file, or build again."
        )


def reserved_name(rules: Rules, token_id: int) -> str:
    """Return the names of a reserved id, as ``"UNKNOWN"``; ``"PAD/UNKNOWN"`` where they are merged."""
    ids = {"PAD": PAD, "UNKNOWN": rules.unknown_id, "MISSING": rules.missing_id}
    return "/".join(name for name, reserved in ids.items() if reserved == token_id)


def own_token(feature: Feature, name: str, fitted: Fitted, token_id: int) -> Token:
    """Return what an id of a feature without a vocabulary stands for.

    Raises:
        StoreError: The id is beyond the table.
    """
    check_id(token_id, table_size(feature, None) or 0)
    if token_id < FIRST:
        return Token(None, reserved_name(_OWN_RULES, token_id))
    number = token_id - FIRST
    match feature:
        case Hashed() | Cross():
            return Token(None, f"bucket {number} of {feature.buckets}")
        case TimePart():
            return Token(TIME_PARTS[feature.part].first + number, None)
        case Numeric():
            return Token(interval(fitted.statistics[name].boundaries, number), None)
    raise TypeError(type(feature))


def interval(boundaries: tuple[float, ...], bucket: int) -> str:
    """Return the values of a quantile bucket, as ``"(1.5, 3]"``."""
    low = f"({boundaries[bucket - 1]:.7g}" if bucket else "(-inf"
    high = f"{boundaries[bucket]:.7g}]" if bucket < len(boundaries) else "inf)"
    return f"{low}, {high}"
