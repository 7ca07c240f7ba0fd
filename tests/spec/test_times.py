"""Durations and moments by hand, and against the standard library."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import SpecError
from headrace.spec import Bounds, Time, TimePart
from headrace.spec.times import duration_text, parse_duration, to_microseconds

UTC = datetime.UTC


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("7d", 604_800_000_000),
        ("1w", 604_800_000_000),
        ("12h", 43_200_000_000),
        ("30m", 1_800_000_000),
        ("45s", 45_000_000),
        ("5ms", 5_000),
        ("5us", 5),
        ("0s", 0),
        ("1d12h", 129_600_000_000),
        ("1m30s", 90_000_000),
        ("1m1ms", 60_001_000),
    ],
)
def test_durations(text: str, microseconds: int) -> None:
    assert parse_duration(text) == datetime.timedelta(microseconds=microseconds)


@pytest.mark.parametrize(
    "text", ["", "7", "d", "7 d", "7 days", "-7d", "1.5h", "7D", "٧d", "7d\n", "999999999999999d"]
)
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match=r"^"):
        parse_duration(text)


@given(st.integers(0, 10**17))
def test_a_duration_has_one_text(microseconds: int) -> None:
    duration = datetime.timedelta(microseconds=microseconds)
    assert parse_duration(duration_text(duration)) == duration


def test_the_text_of_a_duration_has_its_largest_whole_unit() -> None:
    texts = ["168h", "24h", "90m", "60m", "3600s", "1500ms", "0s"]
    assert [duration_text(parse_duration(text)) for text in texts] == [
        "7d",
        "1d",
        "90m",
        "1h",
        "1h",
        "1500ms",
        "0d",
    ]


MIDNIGHT = 1_748_736_000_000_000
"""2025-06-01T00:00:00Z in microseconds: 20,240 days."""


@pytest.mark.parametrize(
    ("written", "unit", "microseconds"),
    [
        ("2025-06-01", "s", MIDNIGHT),
        ("2025-06-01T00:00:00", "s", MIDNIGHT),
        ("2025-06-01 00:00:00Z", "s", MIDNIGHT),
        ("2025-06-01T08:00:00+08:00", "s", MIDNIGHT),
        ("2025-06-01T00:00:00.000001", "s", MIDNIGHT + 1),
        ("2025-06-01T00:00:00.000001000", "s", MIDNIGHT + 1),
        (datetime.date(2025, 6, 1), "s", MIDNIGHT),
        (datetime.datetime(2025, 6, 1), "s", MIDNIGHT),
        (datetime.datetime(2025, 6, 1, tzinfo=UTC), "ns", MIDNIGHT),
        (1_748_736_000, "s", MIDNIGHT),
        (1_748_736_000.5, "s", MIDNIGHT + 500_000),
        (1.1, "s", 1_100_000),
        (1_748_736_000_000, "ms", MIDNIGHT),
        (MIDNIGHT, "us", MIDNIGHT),
        (MIDNIGHT * 1000, "ns", MIDNIGHT),
        (-1, "s", -1_000_000),
    ],
)
def test_moments(written: object, unit: str, microseconds: int) -> None:
    moment = Bounds(until=written).until
    assert moment is not None
    assert to_microseconds(moment, unit) == microseconds


@given(
    st.datetimes(min_value=datetime.datetime(1, 1, 2), max_value=datetime.datetime(9999, 12, 30)),
    st.integers(-14, 14),
)
def test_date_times_agree_with_the_standard_library(naive: datetime.datetime, hours: int) -> None:
    aware = naive.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=hours)))
    for written in (aware, aware.isoformat()):
        moment = Bounds(until=written).until
        assert moment is not None
        since = aware - datetime.datetime(1970, 1, 1, tzinfo=UTC)
        assert (
            to_microseconds(moment, "s") == (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
        )


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("yesterday", "is no ISO date or time"),
        ("2025-13-01", "is no ISO date or time"),
        ("2025-06-01T00:00:00.0000001", "is finer than a microsecond"),
        ("0001-01-01T00:00:00+10:00", "is not between the years 1 and 9999"),
        (True, "found true"),
        (datetime.time(1, 2), "found 01:02:00"),
        ([1], "expected a date-time"),
        (float("nan"), "expected a finite number"),
        (float("-inf"), "expected a finite number"),
        (2**63, "does not fit int64"),
    ],
)
def test_no_moments(written: object, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        Bounds(until=written)


@pytest.mark.parametrize(
    ("moment", "unit"), [(1, "ns"), (1_001, "ns"), (0.5, "us"), (1e-7, "s"), (2**62, "s")]
)
def test_moments_that_are_no_int64_microseconds(moment: float, unit: str) -> None:
    with pytest.raises(ValueError, match="microsecond"):
        to_microseconds(moment, unit)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "+08:00", "-03:30"])
def test_time_zones(zone: str) -> None:
    assert Time(column="ts", timezone=zone).timezone == zone


@pytest.mark.parametrize(
    "zone", ["", "Asia/Shangai", "+8", "+25:00", "../../etc/passwd", "/etc/localtime", "a\0b"]
)
def test_no_time_zones(zone: str) -> None:
    with pytest.raises(SpecError, match="there is no time zone"):
        Time(column="ts", timezone=zone)


def test_the_nearest_time_zone_is_named() -> None:
    with pytest.raises(SpecError, match=r"Did you mean 'Asia/Shanghai'\?"):
        TimePart(part="hour", timezone="Asia/Shangai")
