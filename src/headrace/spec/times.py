"""Durations and moments as users write them. All times inside headrace are int64 microseconds, UTC."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, PlainValidator

from headrace.spec.problems import shown, wrong

Unit: TypeAlias = Literal["s", "ms", "us", "ns"]
"""What a number in a time column counts since 1970-01-01T00:00:00Z."""

MICROSECONDS_PER_UNIT: dict[str, Decimal] = {
    "s": Decimal(1_000_000),
    "ms": Decimal(1_000),
    "us": Decimal(1),
    "ns": Decimal("0.001"),
}

_DURATION_UNITS = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
_DURATION_PART = r"(\d{1,18})(w|d|h|ms|us|m|s)"
_DURATION = re.compile(rf"(?:{_DURATION_PART})+", re.ASCII)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_MORE_THAN_MICROSECONDS = re.compile(r"\.\d{6}0*[1-9]", re.ASCII)


def parse_duration(text: str) -> datetime.timedelta:
    """Return the duration that a text such as ``"7d"``, ``"12h"`` or ``"1d12h"`` means.

    Args:
        text: Whole numbers, each with a unit: w, d, h, m (minutes), s, ms, us.

    Raises:
        ValueError: The text is no duration, or longer than 999,999,999 days.
    """
    if not _DURATION.fullmatch(text):
        raise ValueError(text)
    parts = re.findall(_DURATION_PART, text, re.ASCII)
    microseconds = sum(int(number) * _DURATION_UNITS[unit] for number, unit in parts)
    try:
        return datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        raise ValueError(text) from None


def duration_text(duration: datetime.timedelta) -> str:
    """Return the one canonical text of a duration: its largest unit that is whole."""
    microseconds = duration // _MICROSECOND
    unit, size = next((u, s) for u, s in _DURATION_UNITS.items() if microseconds % s == 0 and u != "w")
    return f"{microseconds // size}{unit}"


def _duration(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return parse_duration(value)
    except ValueError:
        allowed = 'whole numbers with w, d, h, m, s, ms or us, such as "7d", "12h" or "1d12h"'
        raise wrong(f"{shown(value)} is no duration; write {allowed}.") from None


Duration: TypeAlias = Annotated[datetime.timedelta, BeforeValidator(_duration)]
"""Text such as ``"7d"``, or a ``datetime.timedelta``."""

Moment: TypeAlias = datetime.datetime | int | float
"""A time as declared: aware and in UTC, or a number in the unit of its column."""


def declared_moment(value: object) -> Moment:
    """Return a moment in its one form, or raise what is wrong with it."""
    if isinstance(value, str):
        return _moment_of_text(value)
    if isinstance(value, datetime.datetime):
        return _in_utc(value)
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _whole(value)
    raise wrong(f"expected a date-time, ISO text or a number in the column's unit, found {shown(value)}.")


def _moment_of_text(text: str) -> datetime.datetime:
    try:
        parsed = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise wrong(
            f"{shown(text)} is no ISO date or time, such as 2025-06-01 or 2025-06-01T12:00:00Z."
        ) from None
    if _MORE_THAN_MICROSECONDS.search(text):
        raise wrong(f"{shown(text)} is finer than a microsecond, which no time is here.")
    return _in_utc(parsed)


def _in_utc(value: datetime.datetime) -> datetime.datetime:
    if value.tzinfo is None:
        return value.replace(tzinfo=datetime.UTC)
    try:
        return value.astimezone(datetime.UTC)
    except (OverflowError, ValueError):
        raise wrong(f"{shown(value)} is not between the years 1 and 9999 in UTC.") from None


def _whole(value: int | float) -> int | float:
    """Return 3 for 3.0, so that one moment has one form."""
    if isinstance(value, float) and not value - value == 0:
        raise wrong(f"expected a finite number, found {shown(value)}.")
    if abs(value) >= 2**63:
        raise wrong(f"{shown(value)} does not fit int64.")
    return int(value) if value == int(value) else value


DeclaredMoment: TypeAlias = Annotated[Moment, PlainValidator(declared_moment)]
"""TOML date-times, ISO text (UTC unless an offset is written), or a number in the column's unit."""


def to_microseconds(moment: Moment, unit: Unit) -> int:
    """Return int64 microseconds since 1970-01-01T00:00:00Z.

    Args:
        moment: An aware date-time, or a number in ``unit``.
        unit: The unit of the column's numbers.

    Raises:
        ValueError: The moment is no whole number of microseconds, or does not fit int64.
    """
    if isinstance(moment, datetime.datetime):
        return (moment - _EPOCH) // _MICROSECOND
    microseconds = Decimal(repr(moment)) * MICROSECONDS_PER_UNIT[unit]
    if microseconds != int(microseconds):
        raise ValueError(f"{moment} {unit} is finer than a microsecond, which no time is here.")
    if abs(microseconds) >= 2**63:
        raise ValueError(f"{moment} {unit} does not fit int64 microseconds.")
    return int(microseconds)


def moment_json(moment: Moment) -> str | int | float:
    """Return the one JSON form of a moment: ISO text ending in Z, or the number."""
    if isinstance(moment, datetime.datetime):
        return moment.isoformat().replace("+00:00", "Z")
    return moment


DIRECTIVES = "%Y %y %m %b %B %d %j %H %I %p %M %S %f %z %%"
"""What a ``format`` may hold, as in ``strptime``."""


def unknown_directives(pattern: str) -> list[str]:
    """Return the directives of a time format that do not exist: ``["%Q"]`` of ``"%Y-%Q"``."""
    return [found for found in re.findall(r"%.?", pattern, re.DOTALL) if found not in DIRECTIVES.split()]
