"""Raw values as int64 microseconds since 1970-01-01T00:00:00Z, with a fault for each row that is no time."""

from __future__ import annotations

import datetime
import zoneinfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headrace.arrays import numbers_of, texts_of, validity
from headrace.kernels import fields
from headrace.parse.faults import Faults, shown
from headrace.parse.numbers import judge
from headrace.sources.values import as_text
from headrace.spec.times import Unit

_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}
_LIMIT = float(2**63)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_ZONED = pa.timestamp("us", tz="UTC")
_LAST_OF_PYTHON = 253_402_128_000_000_000
"""9999-12-30 in microseconds."""
_LAST_OF_ARROW = 2_114_380_800_000_000
"""2037-01-01 in microseconds: Arrow knows the changes of a zone's offset up to 2037 only, Python all."""


def read_times(
    array: pa.Array, name: str, unit: Unit, form: str | None, timezone: str | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_], Faults]:
    """Read a scalar column as times.

    Args:
        array: string, integers, double, timestamp or date.
        name: The column, for the reasons.
        unit: What numbers count; text that is a number counts as one where no format is given.
        form: How text is written, as ``strptime`` has it; ``None``: ISO 8601 or numbers.
        timezone: The zone of text without an offset; ``None`` is UTC.

    Returns:
        ``(microseconds int64 [n], valid bool [n], faults)``; invalid rows hold 0.
    """
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64), np.zeros(len(array), bool), Faults()
    if pa.types.is_temporal(array.type):
        return _from_temporal(array, timezone)
    if form is not None:
        return _from_format(as_text(array), name, form, timezone)
    if pa.types.is_integer(array.type):
        return _from_integers(numbers_of(array), _present(array), array, name, unit)
    if pa.types.is_floating(array.type):
        return _from_floats(numbers_of(array).astype(np.float64), _present(array), array, name, unit)
    return _from_texts(array, name, unit, timezone)


def _present(array: pa.Array) -> NDArray[np.bool_]:
    valid = validity(array)
    return valid.copy() if len(valid) else np.ones(len(array), bool)


def _from_temporal(
    array: pa.Array, timezone: str | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_], Faults]:
    if pa.types.is_timestamp(array.type) and array.type.tz is None and timezone is not None:
        array = _in_zone(array.cast(pa.timestamp("us"), safe=False), timezone)
    present = _present(array)
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        values = numbers_of(array.view(pa.int64())) // 1000
    else:
        kind = pa.timestamp("us", tz=getattr(array.type, "tz", None))
        values = numbers_of(array.cast(kind, safe=False).view(pa.int64())).copy()
    values[~present] = 0
    return values, present, Faults()


def _from_integers(
    numbers: NDArray[np.int64] | NDArray[np.uint64],
    present: NDArray[np.bool_],
    array: pa.Array,
    name: str,
    unit: Unit,
) -> tuple[NDArray[np.int64], NDArray[np.bool_], Faults]:
    faults = Faults()
    if unit == "ns":
        values = (numbers // 1000).astype(np.int64)
    else:
        limit = (2**63 - 1) // _PER_UNIT[unit]
        far = np.flatnonzero(present & ((numbers > limit) | (numbers < -limit)))
        faults.add(
            far, lambda row: f"{name} is {shown(array[row].as_py())} {unit}, too far from 1970 for a time"
        )
        present[far] = False
        values = np.where(present, numbers, 0).astype(np.int64) * _PER_UNIT[unit]
    values[~present] = 0
    return values, present, faults


def _from_floats(
    numbers: NDArray[np.float64], present: NDArray[np.bool_], array: pa.Array, name: str, unit: Unit
) -> tuple[NDArray[np.int64], NDArray[np.bool_], Faults]:
    """Round numbers with a fraction to the nearest microsecond."""
    scaled = numbers / 1000 if unit == "ns" else numbers * _PER_UNIT[unit]
    far = np.flatnonzero(present & ~(np.abs(scaled) < _LIMIT))
    faults = Faults()
    faults.add(far, lambda row: f"{name} is {shown(array[row].as_py())}, expected a time in {unit}")
    present[far] = False
    values = np.rint(np.where(present, scaled, 0.0)).astype(np.int64)
    return values, present, faults


def _from_texts(
    array: pa.Array, name: str, unit: Unit, timezone: str | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_], Faults]:
    """Read texts: plain integers, other numbers, ISO 8601; each row by itself."""
    numbers, kinds, integers = judge(texts_of(array))
    present = _present(array)
    whole = kinds == fields.INTEGER
    values, valid, faults = _from_integers(integers, present & whole, array, name, unit)
    if whole.all():
        return values, valid, faults
    others = present & ~whole
    rounded, kept, wrong = _from_floats(numbers, others & (kinds != fields.NO_NUMBER), array, name, unit)
    values[others], valid[others] = rounded[others], kept[others]
    faults.rows += wrong.rows
    faults.reasons += wrong.reasons
    for row in np.flatnonzero(valid & (kinds == fields.UNUSUAL)):
        values[row] = _exact(array[row].as_py(), int(values[row]), unit)
    words = np.flatnonzero(present & (kinds == fields.NO_NUMBER))
    if len(words):
        values[words], valid[words] = _from_iso(array.take(pa.array(words)), timezone)
        wrong_rows = words[~valid[words]]
        faults.add(
            wrong_rows,
            lambda row: (
                f"{name} is {shown(array[row].as_py())}, expected a time: a number in {unit} or ISO 8601"
            ),
        )
    return values, valid, faults


def _exact(text: str, rounded: int, unit: Unit) -> int:
    """Return the microseconds of an integer of any length, which a float would round; else ``rounded``."""
    try:
        number = int(text)
    except ValueError:
        return rounded
    return number // 1000 if unit == "ns" else number * _PER_UNIT[unit]


def _from_iso(array: pa.Array, timezone: str | None) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Read ISO 8601 texts without nulls; what is none is not valid."""
    for kind in (_ZONED, pa.timestamp("us")):
        try:
            parsed = array.cast(kind)
        except pa.ArrowInvalid:
            continue
        if kind is not _ZONED and timezone is not None:
            parsed = _in_zone(parsed, timezone)
        return numbers_of(parsed.view(pa.int64())).copy(), np.ones(len(array), bool)
    return _one_by_one(array, lambda text: datetime.datetime.fromisoformat(text.strip()), timezone)


def _in_zone(local: pa.Array, timezone: str) -> pa.Array:
    """Return timestamps (us) without a zone as those of a zone.

    A time that comes twice is the earlier one; one that is skipped is counted with the
    offset before the gap, as Python's ``fold=0`` has it (PEP 495).
    """
    latest = pc.max(local.view(pa.int64())).as_py()
    try:
        if latest is not None and latest >= _LAST_OF_ARROW:
            raise pa.ArrowInvalid
        return pc.assume_timezone(local, timezone, ambiguous="earliest", nonexistent="raise")
    except pa.ArrowInvalid:
        zone = _zone(timezone)
        moments = [None if one is None else one.replace(tzinfo=zone) for one in local.to_pylist()]
        exact = [None if moment is None else (moment - _EPOCH) // _MICROSECOND for moment in moments]
        return pa.array(exact, pa.int64()).view(_ZONED)


def local_times(times: NDArray[np.int64], timezone: str) -> pa.Array:
    """Return moments as the local times of a zone, timestamp(us) without a zone."""
    local = pc.local_timestamp(pa.array(times).view(pa.timestamp("us", tz=timezone)))
    late = np.flatnonzero(times >= _LAST_OF_ARROW)
    if len(late) == 0:
        return local
    zone = _zone(timezone)
    shifted = numbers_of(local.view(pa.int64())).copy()
    for place in late:
        shifted[place] = times[place] + _offset(int(times[place]), zone)
    return pa.array(shifted).view(pa.timestamp("us"))


def _offset(time: int, zone: datetime.tzinfo) -> int:
    """Return a zone's offset from UTC at a time, in microseconds; after the year 9999 that of its end."""
    moment = _EPOCH + min(time, _LAST_OF_PYTHON) * _MICROSECOND
    return (moment.astimezone(zone).utcoffset() or datetime.timedelta()) // _MICROSECOND


def _from_format(
    array: pa.Array, name: str, form: str, timezone: str | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_], Faults]:
    """Read texts by ``strptime``, each different text once."""
    present = _present(array)
    coded = array.dictionary_encode()
    distinct, known = _one_by_one(
        coded.dictionary, lambda text: datetime.datetime.strptime(text, form), timezone
    )
    codes = coded.indices.fill_null(0).to_numpy()
    if len(distinct) == 0:
        return np.zeros(len(array), np.int64), present & False, Faults()
    valid = present & known[codes]
    faults = Faults()
    faults.add(
        np.flatnonzero(present & ~valid),
        lambda row: f"{name} is {shown(array[row].as_py())}, expected a time written as {form!r}",
    )
    return np.where(valid, distinct[codes], 0), valid, faults


def _one_by_one(  # type: ignore[no-untyped-def]
    array: pa.Array, parse, timezone: str | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Read texts with Python's parser; what it refuses is not valid."""
    values, valid = np.zeros(len(array), np.int64), np.ones(len(array), bool)
    zone = _zone(timezone)
    for place, text in enumerate(array.to_pylist()):
        try:
            moment = parse(text)
            moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
            values[place] = (moment - _EPOCH) // _MICROSECOND
        except (ValueError, OverflowError):
            valid[place] = False
    return values, valid


def _zone(timezone: str | None) -> datetime.tzinfo:
    if timezone is None:
        return datetime.UTC
    if timezone[0] in "+-":
        return datetime.datetime.fromisoformat(f"2000-01-01T00:00:00{timezone}").tzinfo or datetime.UTC
    return zoneinfo.ZoneInfo(timezone)
