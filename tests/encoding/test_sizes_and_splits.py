"""Small functions of the encoding room, by hand and against plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.encoding.declared import feature_places, source_columns
from headrace.encoding.ids import id_dtype, table_size
from headrace.encoding.split import OUTSIDE, _drawn, split_of_file
from headrace.errors import SpecError
from headrace.parse import readings
from headrace.spec import Cross, FileSplit, Hashed, Numeric, RandomSplit, Spec, TimePart, Vector


@pytest.mark.parametrize(
    ("size", "dtype"),
    [
        (1, np.uint8),
        (256, np.uint8),
        (257, np.uint16),
        (65_536, np.uint16),
        (65_537, np.uint32),
        (2**32, np.uint32),
        (2**32 + 1, np.uint64),
    ],
)
def test_the_smallest_dtype(size: int, dtype: type) -> None:
    assert id_dtype(size) is dtype
    assert np.array(size - 1).astype(dtype) == size - 1


@pytest.mark.parametrize(
    ("feature", "size"),
    [
        (Hashed(buckets=10), 13),
        (Cross(columns=("a", "b"), buckets=10), 13),
        (TimePart(part="hour"), 27),
        (TimePart(part="weekday"), 10),
        (TimePart(part="year"), 133),
        (Numeric(transform="bucketize", buckets=4), 7),
        (Numeric(), None),
        (Vector(dim=3), None),
    ],
)
def test_sizes_of_tables_without_a_vocabulary(feature: Any, size: int | None) -> None:
    assert table_size(feature, None) == size


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("train.csv", 0),
        ("raw/train.csv", 0),
        ("/data/raw/train.csv", 0),
        ("untrain.csv", OUTSIDE),
        ("raw/day=3/x.csv", 1),
        ("s3://bucket/raw/day=3/x.csv", 1),
        ("raw/day=30/x.csv", OUTSIDE),
        ("TRAIN.csv", OUTSIDE),
        ("t-1.csv", 2),
    ],
)
def test_globs_of_a_split_by_file(name: str, number: int) -> None:
    split = FileSplit(train=("train.csv",), valid=("day=3/*",), test=("t-[0-9].csv",))
    assert split_of_file(split, name) == number


@given(
    shares=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    seed=st.integers(0, 2**31),
)
@settings(deadline=None, max_examples=40)
def test_draws_fill_their_shares(shares: list[int], seed: int) -> None:
    total = max(100, sum(shares))
    names = ["train", "valid", "test"][: len(shares)]
    declared = {name: share / total for name, share in zip(names, shares, strict=True)}
    numbers = _drawn(RandomSplit(seed=seed, **declared), np.arange(20_000, dtype=np.uint64), "split")
    for number, share in enumerate(declared.values()):
        spread = 5 * (share * (1 - share) / 20_000) ** 0.5 + 1e-9
        assert abs((numbers == number).mean() - share) <= spread
    assert set(np.unique(numbers)) <= {OUTSIDE, *range(len(shares))}


def test_shares_of_one_leave_nothing_outside() -> None:
    split = RandomSplit(train=0.1, valid=0.2, test=0.7)
    numbers = _drawn(split, np.arange(200_000, dtype=np.uint64), "split")
    assert OUTSIDE not in numbers
    # A place keeps its side when a later split gives rows away.
    fewer = _drawn(RandomSplit(train=0.1, valid=0.2, test=0.3), np.arange(200_000, dtype=np.uint64), "split")
    assert (numbers[fewer != OUTSIDE] == fewer[fewer != OUTSIDE]).all()


def test_readings_of_one_column_share_it() -> None:
    number, flag, text = readings.Numbers("a", "int", "bad"), readings.Flags("a"), readings.Ids("a")
    (column,) = source_columns([("labels.a", flag), ("features.a", number)])
    assert (column.path, column.kind) == ("a", "number")
    (column,) = source_columns([("features.a", number), ("features.b", text)])
    assert column.kind == "text"
    (column,) = source_columns(
        [("features.a", readings.Vectors("a", 2, ",")), ("features.b", readings.IdLists("a", ","))]
    )
    assert column.kind == "texts"
    with pytest.raises(
        SpecError,
        match=r"features\.a and features\.b read the column 'a' in two ways .* one value, the other a list",
    ):
        source_columns([("features.a", text), ("features.b", readings.IdLists("a", ","))])


def test_places_of_columns_of_tables() -> None:
    spec = Spec.from_dict(
        {
            "name": "t",
            "source": {"files": "x.csv"},
            "tables": {"ad": {"files": "ad.csv", "key": "creative"}},
            "features": {
                "creative": {"kind": "categorical"},
                "industry": {"kind": "categorical", "column": "ad.industry"},
                "nested": {"kind": "categorical", "column": "user.city"},
                "mixed": {"kind": "cross", "columns": ["ad.industry", "slot"], "buckets": 9},
            },
        }
    )
    places = {name: feature_places(spec, feature) for name, feature in spec.features.items()}
    assert [(p.table, p.reading.path) for p in places["industry"]] == [("ad", "industry")]
    assert [(p.table, p.reading.path) for p in places["nested"]] == [(None, "user.city")]
    assert [(p.table, p.reading.path) for p in places["mixed"]] == [("ad", "industry"), (None, "slot")]
    assert len({place.key for group in places.values() for place in group}) == 4
