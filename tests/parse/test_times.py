"""Times read from texts: each row by itself, and by Python's own datetime."""

from __future__ import annotations

import datetime
import zoneinfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.parse.times import local_times, read_times

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)
ZONES = ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "+05:30", "-03:00"]


def read(texts: list[str | None], unit: str = "s", zone: str | None = None) -> list[int | None]:
    values, valid, faults = read_times(pa.array(texts, pa.string()), "t", unit, None, zone)  # type: ignore[arg-type]
    present = [text is not None for text in texts]
    assert sorted(faults.rows) == [row for row in range(len(texts)) if present[row] and not valid[row]]
    return [int(value) if ok else None for value, ok in zip(values, valid, strict=True)]


def by_python(text: str, zone: str | None = None) -> int | None:
    if text.isdigit():  # a number of seconds, before it is ISO 8601
        return int(text) * 1_000_000
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        fixed = zone is not None and zone[0] in "+-"
        tz = datetime.datetime.fromisoformat(f"2000-01-01T00:00:00{zone}").tzinfo if fixed else None
        moment = moment.replace(tzinfo=tz or (zoneinfo.ZoneInfo(zone) if zone else datetime.UTC))
    try:
        return (moment - EPOCH) // MICROSECOND
    except OverflowError:
        return None


MOMENT = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1))
ISO = st.builds(
    lambda moment, separator, digits, offset: moment.isoformat(separator, digits) + offset,
    MOMENT,
    st.sampled_from(["T", " "]),
    st.sampled_from(["seconds", "milliseconds", "microseconds", "minutes"]),
    st.sampled_from(["", "Z", "+00:00", "-05:00", "+0545", "+09", "+05:30"]),
)
ODD = st.sampled_from(
    [
        "2024-02-30",
        "2024-02-29",
        "20240229",
        "2024-W09-4",
        "2024-01-01T24:00:00",
        "2024-01-01T00:00:60Z",
        "0001-01-01",
        "9999-12-31T23:59:59.999999Z",
        "10000-01-01",
        "2024-1-1",
        "2024-01-01T00",
        "2024-01-01 00:00:00.1234567",
        "now",
        "",
        "2024-01-01T00:00:00 Z",
        "2024-01-01T00:00:00z",
        "2024-06-01T00:00:00.5",
        "-2024-01-01",
        "2024-01-01T00:00:00+25:00",
    ]
)


@given(texts=st.lists(ISO | ODD | MOMENT.map(lambda m: m.date().isoformat()), min_size=1, max_size=5))
@settings(deadline=None, max_examples=150)
def test_a_text_means_the_same_alone_and_among_others(texts: list[str]) -> None:
    together = read(list(texts))
    assert together == [read([text])[0] for text in texts]
    for text, found in zip(texts, together, strict=True):
        assert found == by_python(text), text


@given(moment=MOMENT, zone=st.sampled_from(ZONES))
@example(moment=datetime.datetime(2024, 10, 27, 2, 30), zone="Europe/Berlin")
@example(moment=datetime.datetime(2024, 3, 31, 2, 30), zone="Europe/Berlin")
@example(moment=datetime.datetime(2024, 4, 7, 1, 45), zone="Australia/Lord_Howe")
@example(moment=datetime.datetime(2024, 10, 6, 2, 15), zone="Australia/Lord_Howe")
@settings(deadline=None, max_examples=100)
def test_local_times(moment: datetime.datetime, zone: str) -> None:
    text = moment.isoformat()
    assert read([text], zone=zone) == [by_python(text, zone)]
    assert read([text, "2024-06-01T00:00:00Z"], zone=zone)[0] == by_python(text, zone)
    values, valid, _ = read_times(pa.array([moment, None], pa.timestamp("us")), "t", "s", None, zone)
    assert values.tolist() == [by_python(text, zone), 0]
    assert valid.tolist() == [True, False]


@given(number=st.integers(-(2**62), 2**62), unit=st.sampled_from(["s", "ms", "us", "ns"]))
@settings(deadline=None, max_examples=100)
def test_integers_are_exact_as_text_and_as_numbers(number: int, unit: str) -> None:
    exact = number // 1000 if unit == "ns" else number * {"s": 10**6, "ms": 1000, "us": 1}[unit]
    expected = exact if abs(exact) < 2**63 else None
    assert read([str(number)], unit) == [expected]
    assert read([f" {number} ", "2024-01-01"], unit)[0] == expected
    values, valid, faults = read_times(pa.array([number]), "t", unit, None, None)  # type: ignore[arg-type]
    assert (values.tolist() if valid[0] else [None]) == [expected]
    assert len(faults) == (expected is None)


def test_unsigned_numbers() -> None:
    values, valid, _ = read_times(pa.array([2**64 - 1, 5], pa.uint64()), "t", "ns", None, None)
    assert (values.tolist(), valid.tolist()) == ([(2**64 - 1) // 1000, 0], [True, True])
    values, valid, faults = read_times(pa.array([2**64 - 1, 5], pa.uint64()), "t", "s", None, None)
    assert (values.tolist(), valid.tolist()) == ([0, 5_000_000], [False, True])
    assert faults.reasons == ["t is '18446744073709551615' s, too far from 1970 for a time"]


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("1.5", "s", 1_500_000),
        ("0.0000004", "s", 0),
        ("0.0000006", "s", 1),
        ("-1.5", "ms", -1500),
        ("1e3", "s", 1_000_000_000),
        ("1511544070.123456", "s", 1_511_544_070_123_456),
        ("nan", "s", None),
        ("inf", "s", None),
        ("1e300", "s", None),
        ("0x10", "s", None),
    ],
)
def test_numbers_with_a_fraction_go_to_the_nearest_microsecond(
    text: str, unit: str, expected: int | None
) -> None:
    assert read([text], unit) == [expected]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([-1, 1_500], pa.timestamp("ns")), [-1, 1]),
        (pa.array([-1], pa.timestamp("ms", "Asia/Tokyo")), [-1000]),
        (pa.array([1], pa.timestamp("s")), [1_000_000]),
        (pa.array([-1, 1], pa.date32()), [-86_400_000_000, 86_400_000_000]),
        (pa.array([86_400_000], pa.date64()), [86_400_000_000]),
    ],
)
def test_typed_times(array: pa.Array, expected: list[int]) -> None:
    values, valid, faults = read_times(array, "t", "s", None, None)
    assert values.tolist() == expected
    assert valid.all()
    assert len(faults) == 0


def test_nulls_and_nothing() -> None:
    for array in (
        pa.nulls(2),
        pa.array([None, None], pa.string()),
        pa.array([None, None], pa.timestamp("us")),
    ):
        values, valid, faults = read_times(array, "t", "s", None, "Europe/Berlin")
        assert (values.tolist(), valid.tolist(), len(faults)) == ([0, 0], [False, False], 0)
    values, valid, _ = read_times(pa.array([], pa.string()), "t", "s", None, None)
    assert (values.dtype, len(valid)) == (np.int64, 0)


@given(
    moments=st.lists(st.datetimes(datetime.datetime(1950, 1, 1), datetime.datetime(2300, 1, 1)), max_size=4),
    zone=st.sampled_from([*ZONES, "UTC"]),
)
@settings(deadline=None, max_examples=60)
def test_moments_in_a_zone(moments: list[datetime.datetime], zone: str) -> None:
    times = np.array([(m.replace(tzinfo=datetime.UTC) - EPOCH) // MICROSECOND for m in moments], np.int64)
    fixed = zone[0] in "+-"
    tz = (
        datetime.datetime.fromisoformat(f"2000-01-01T00:00:00{zone}").tzinfo
        if fixed
        else zoneinfo.ZoneInfo(zone)
    )
    expected = [m.replace(tzinfo=datetime.UTC).astimezone(tz).replace(tzinfo=None) for m in moments]
    assert local_times(times, zone).to_pylist() == expected
    assert len(local_times(np.array([2**62], np.int64), zone)) == 1


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([2024.05, None, 2023.12]), ["2024-05", None, "2023-12"]),
        (pa.array(["2024.05", "x"]), ["2024-05", None]),
        (pa.array(["2024.05"], pa.large_string()), ["2024-05"]),
        (pa.array([202405.0, 7.25]), [None, None]),
        (pa.array([17], pa.int64()), [None]),
        (pa.array([datetime.datetime(2024, 5, 1)], pa.timestamp("s")), ["2024-05"]),
        (pa.nulls(1), [None]),
    ],
)
def test_a_format_is_for_the_text_of_a_value(array: pa.Array, expected: list[str | None]) -> None:
    values, valid, faults = read_times(array, "t", "s", "%Y.%m", None)
    found = [
        (EPOCH + int(value) * MICROSECOND).strftime("%Y-%m") if ok else None
        for value, ok in zip(values, valid, strict=True)
    ]
    assert found == expected
    wrong = [place for place, one in enumerate(expected) if one is None and array[place].is_valid]
    assert faults.rows == wrong
