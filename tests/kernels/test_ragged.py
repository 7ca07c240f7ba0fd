"""Ragged columns counted, cut and made sets, against plain Python."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.kernels import ragged
from headrace.kernels.lookup import NULL_CODE

CODES = 6
CODE = st.none() | st.integers(0, CODES - 1)
COLUMNS = st.lists(st.lists(CODE, max_size=8), max_size=6)


def flat(rows: list[list[int | None]]) -> tuple[np.ndarray, np.ndarray]:
    codes = [NULL_CODE if code is None else code for row in rows for code in row]
    return np.array(codes, np.uint32), np.cumsum([0, *map(len, rows)]).astype(np.int64)


def chosen_of(rows: list[list[int | None]], mask: int) -> list[int]:
    return [number for number in range(len(rows)) if mask >> number & 1]


@given(rows=COLUMNS, mask=st.integers(0, 63))
@settings(deadline=None, max_examples=60)
def test_counts_are_those_of_a_counter(rows: list[list[int | None]], mask: int) -> None:
    codes, offsets = flat(rows)
    chosen = chosen_of(rows, mask)
    places = np.array(chosen, np.int64)
    every, distinct = np.zeros(CODES + 1, np.int64), np.zeros(CODES + 1, np.int64)
    ragged.count_codes(codes, offsets, places, every)
    ragged.count_distinct_codes(codes, offsets, places, distinct, np.full(CODES + 1, -1, np.int64))
    counted = Counter(code for row in chosen for code in rows[row])
    once = Counter(code for row in chosen for code in set(rows[row]))
    names = [*range(CODES), None]
    assert every.tolist() == [counted[name] for name in names]
    assert distinct.tolist() == [once[name] for name in names]


@given(rows=COLUMNS, mask=st.integers(0, 63), length=st.integers(1, 9), last=st.booleans())
@settings(deadline=None, max_examples=60)
def test_sequences_are_slices(rows: list[list[int | None]], mask: int, length: int, last: bool) -> None:
    codes, offsets = flat(rows)
    chosen = chosen_of(rows, mask)
    places = np.array(chosen, np.int64)
    ids = np.arange(10, 10 + CODES, dtype=np.uint16)
    lengths = np.empty(len(chosen), np.int64)
    ragged.kept_lengths(offsets, places, length, lengths)
    borders = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    out = np.empty(borders[-1], np.uint16)
    ragged.cut_sequences(codes, offsets, places, ids, 2, last, borders, out)
    found = [out[a:b].tolist() for a, b in itertools.pairwise(borders)]
    encoded = [[2 if code is None else 10 + code for code in rows[row]] for row in chosen]
    assert found == [row[-length:] if last else row[:length] for row in encoded]


# Ids 0 to 2 are reserved, 3 to 6 values by falling count, 7 and 8 buckets.
IDS = st.lists(st.integers(0, 8), min_size=CODES, max_size=CODES)


@given(rows=COLUMNS, ids=IDS, null=st.integers(0, 2), length=st.integers(1, 5))
@settings(deadline=None, max_examples=80)
def test_sets_keep_values_then_reserved_ids_then_buckets(
    rows: list[list[int | None]], ids: list[int], null: int, length: int
) -> None:
    codes, offsets = flat(rows)
    borders, out = np.empty(len(rows) + 1, np.int64), np.empty(len(codes), np.uint8)
    table = np.array(ids, np.uint8)
    places = np.arange(len(rows), dtype=np.int64)
    ragged.cut_sets(codes, offsets, places, table, null, 3, 7, length, borders, out)
    found = [out[a:b].tolist() for a, b in itertools.pairwise(borders)]

    def importance(token: int) -> tuple[int, int]:
        return (0 if 3 <= token < 7 else 1 if token < 3 else 2, token)

    sets = [{null if code is None else ids[code] for code in row} for row in rows]
    assert found == [sorted(sorted(tokens, key=importance)[:length]) for tokens in sets]


@given(
    rows=st.lists(st.lists(st.tuples(CODE, st.integers(-8, 8)), max_size=8), max_size=6),
    ids=IDS,
    length=st.integers(1, 5),
)
@settings(deadline=None, max_examples=80)
def test_weighted_sets_keep_the_largest_sums(
    rows: list[list[tuple[int | None, int]]], ids: list[int], length: int
) -> None:
    codes, offsets = flat([[code for code, _ in row] for row in rows])
    weights = np.array([weight / 4 for row in rows for _, weight in row], np.float64)
    borders = np.empty(len(rows) + 1, np.int64)
    out, out_weights = np.empty(len(codes), np.uint8), np.empty(len(codes), np.float32)
    places = np.arange(len(rows), dtype=np.int64)
    ragged.cut_weighted_sets(
        codes, weights, offsets, places, np.array(ids, np.uint8), 2, length, borders, out, out_weights
    )
    for number, row in enumerate(rows):
        sums: dict[int, float] = {}
        for code, weight in row:
            token = 2 if code is None else ids[code]
            sums[token] = sums.get(token, 0.0) + weight / 4
        kept = sorted(sorted(sums, key=lambda token: (-sums[token], token))[:length])
        assert out[borders[number] : borders[number + 1]].tolist() == kept
        assert out_weights[borders[number] : borders[number + 1]].tolist() == [sums[token] for token in kept]


def test_long_rows_take_the_other_sort_and_give_the_same() -> None:
    draw = np.arange(1000) * 7919 % 501
    codes, offsets = draw.astype(np.uint32), np.array([0, 1000], np.int64)
    weights = (np.arange(1000) % 13).astype(np.float64)
    borders, out, out_weights = np.empty(2, np.int64), np.empty(1000, np.uint16), np.empty(1000, np.float32)
    ids = np.arange(3, 504, dtype=np.uint16)
    rows = np.zeros(1, np.int64)
    ragged.cut_weighted_sets(codes, weights, offsets, rows, ids, 2, 1000, borders, out, out_weights)
    sums: dict[int, float] = {}
    for code, weight in zip(draw.tolist(), weights.tolist(), strict=True):
        sums[code + 3] = sums.get(code + 3, 0.0) + weight
    assert out[: borders[1]].tolist() == sorted(sums)
    assert out_weights[: borders[1]].tolist() == [sums[token] for token in sorted(sums)]
    ragged.cut_sets(codes, offsets, rows, ids, 2, 3, 504, 40, borders, out)
    assert out[: borders[1]].tolist() == list(range(3, 43))


@given(
    rows=st.lists(
        st.tuples(st.lists(st.integers(0, 6), max_size=5), st.none() | st.integers(0, 7)), max_size=6
    ),
    known=st.booleans(),
)
@settings(deadline=None, max_examples=80)
def test_disorder(rows: list[tuple[list[int], int | None]], known: bool) -> None:
    times = np.array([time for row, _ in rows for time in row], np.int64)
    offsets = np.cumsum([0, *(len(row) for row, _ in rows)]).astype(np.int64)
    limits = np.array([7 if limit is None else limit for _, limit in rows], np.int64)
    valid = np.empty(0, bool) if known else np.array([limit is not None for _, limit in rows], bool)
    verdicts = np.empty(len(rows), np.uint8)
    ragged.first_disorder(times, offsets, limits, valid, verdicts)
    for (row, limit), verdict in zip(rows, verdicts.tolist(), strict=True):
        end = 7 if limit is None else limit
        ascending = row == sorted(row)
        before = all(time < end for time in row) or (limit is None and not known)
        assert (verdict == 0) == (ascending and before)
        assert verdict != 1 or not ascending
        assert verdict != 2 or not before
