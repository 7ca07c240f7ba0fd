"""The compiled rows against a plain Python version of the same draws, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.kernels import alias, skipgram
from headrace.kernels.rng import _philox_words

TWO32 = 1 << 32
KEY = 0x1234_5678_9ABC_DEF0
SENTENCES = st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=8)


def words(place: int, draw: int) -> tuple[int, int, int, int]:
    return _philox_words(
        (place % TWO32, place // TWO32, draw % TWO32, draw // TWO32), (KEY % TWO32, KEY // TWO32)
    )


def flat(sentences: list[list[int]], dtype: type) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([word for sentence in sentences for word in sentence], dtype)
    return ids, np.cumsum([0, *map(len, sentences)]).astype(np.int64)


def plain_kept(sentences: list[list[int]], first: int, thresholds: list[int]) -> list[list[int]]:
    token, kept = first, []
    for sentence in sentences:
        row = []
        for word in sentence:
            if words(token // 4, 0)[token % 4] < thresholds[word]:
                row.append(word)
            token += 1
        kept.append(row)
    return kept


def marked(sentences: list[list[int]], bits: int) -> list[int]:
    return [
        word | (1 << bits - 1 if place == 0 else 0)
        for sentence in sentences
        if len(sentence) > 1
        for place, word in enumerate(sentence)
    ]


@settings(deadline=None, max_examples=60)
@given(
    SENTENCES,
    st.lists(st.sampled_from([0, TWO32 // 4, TWO32 // 2, TWO32]), min_size=10, max_size=10),
    st.sampled_from([0, 1, 1022, 2**32 - 3, 2**40]),
    st.sampled_from([np.uint8, np.uint16, np.uint32, np.uint64]),
    st.sampled_from([np.uint16, np.uint32]),
)
def test_keep_tokens(
    sentences: list[list[int]], thresholds: list[int], first: int, dtype: type, kept_dtype: type
) -> None:
    ids, offsets = flat(sentences, dtype)
    kept = np.empty(len(ids) + 1, kept_dtype)
    limits = np.array(thresholds, np.uint64)
    length = skipgram.keep_tokens(ids, offsets, first, limits, np.uint64(KEY), kept, 0)
    expected = plain_kept(sentences, first, thresholds)
    assert kept[:length].tolist() == marked(expected, 8 * kept.itemsize)
    short = skipgram.keep_tokens(ids, offsets, first, limits, np.uint64(KEY), kept[:length], 0)
    assert short in (-1, length)  # the last token of all may need a place that it then gives back
    lengths = skipgram.kept_lengths(ids, offsets, first, limits, np.uint64(KEY))
    assert lengths.tolist() == [len(row) for row in expected]


@settings(deadline=None, max_examples=30)
@given(SENTENCES, st.integers(0, 8))
def test_shards_do_not_matter(sentences: list[list[int]], cut: int) -> None:
    limits = np.full(10, TWO32 // 2, np.uint64)
    size = sum(map(len, sentences)) + 1
    whole, parts = np.zeros(size, np.uint16), np.zeros(size, np.uint16)
    length = skipgram.keep_tokens(*flat(sentences, np.uint16), 0, limits, np.uint64(KEY), whole, 0)
    middle = sum(map(len, sentences[:cut]))
    first = skipgram.keep_tokens(*flat(sentences[:cut], np.uint16), 0, limits, np.uint64(KEY), parts, 0)
    both = skipgram.keep_tokens(
        *flat(sentences[cut:], np.uint16), middle, limits, np.uint64(KEY), parts, first
    )
    assert whole[:length].tolist() == parts[:both].tolist()


def plain_row(
    sentence: list[int],
    centre: int,
    place: int,
    *,
    window: int,
    per_context: int,
    per_center: int,
    exclude_center: bool,
    weights: np.ndarray,
) -> tuple[list[int], list[int] | None]:
    """The contexts of one centre, and its negatives (None where no word is left)."""
    size = 1 + (words(place, 0)[0] * window >> 32)
    contexts = [
        sentence[k]
        for k in range(max(0, centre - size), min(len(sentence), centre + size + 1))
        if k != centre
    ]
    wanted = len(contexts) * per_context + per_center
    masses = alias.integer_masses(weights)
    table = alias.alias_table(masses).tolist()

    def aliased(a: int, b: int) -> int:
        scaled = (a << 32 | b) * len(table) >> 32
        column, coin = scaled >> 32, scaled % TWO32
        return column if coin < table[column] >> 32 else table[column] % TWO32

    banned = {*contexts, *([sentence[centre]] if exclude_center else [])}
    stream = [word for draw in range(wanted // 2 + 1) for word in words(place, draw)]
    draw = wanted // 2 + 1
    negatives = []
    for k in range(wanted):
        drawn, tries = aliased(stream[2 * k + 2], stream[2 * k + 3]), 1
        while drawn in banned:
            a, b, _, _ = words(place, draw)
            draw += 1
            if tries == skipgram.TRIES:
                left = [0 if word in banned else int(mass) for word, mass in enumerate(masses)]
                if not any(left):
                    return contexts, None
                unit = (a << 32 | b) * sum(left) >> 64
                drawn = next(word for word in range(len(left)) if sum(left[: word + 1]) > unit)
                break
            drawn, tries = aliased(a, b), tries + 1
        negatives.append(drawn)
    return contexts, negatives


@settings(deadline=None, max_examples=80)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=9), min_size=1, max_size=5),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(0, 4),
    st.booleans(),
    st.lists(st.sampled_from([0.0, 1.0, 1e-3, 30.0]), min_size=10, max_size=10).filter(any),
    st.sampled_from([np.uint16, np.uint32]),
    st.sampled_from([0, 2**32 - 2, 2**40]),
)
def test_rows_are_the_plain_rows(
    sentences: list[list[int]],
    window: int,
    per_context: int,
    per_center: int,
    exclude_center: bool,
    weights: list[float],
    dtype: type,
    first_place: int,
) -> None:
    kept = np.array(marked(sentences, 8 * np.dtype(dtype).itemsize), dtype)
    order = [len(kept) - 1, *range(len(kept))]
    indices = np.array(order, np.int64)
    places = np.arange(len(order), dtype=np.uint64) + np.uint64(first_place)
    reach, most = skipgram.draw_windows(kept, indices, places, np.uint64(KEY), window)
    assert most == reach.sum(axis=1).max()
    width = most * (1 + per_context) + per_center
    rows = [np.full((len(order), columns), -5, np.int64) for columns in (1, width, width, width)]
    masses = alias.integer_masses(np.array(weights))
    exhausted = skipgram.fill_batch(
        kept,
        indices,
        places,
        reach,
        np.uint64(KEY),
        per_context,
        per_center,
        exclude_center,
        alias.alias_table(masses),
        np.cumsum(masses),
        *rows,
    )
    homes = [(s, k) for s, sentence in enumerate(sentences) for k in range(len(sentence))]
    first_without = -1
    for row, index in enumerate(order):
        sentence, centre = homes[index]
        contexts, negatives = plain_row(
            sentences[sentence],
            centre,
            first_place + row,
            window=window,
            per_context=per_context,
            per_center=per_center,
            exclude_center=exclude_center,
            weights=np.array(weights),
        )
        if negatives is None:
            first_without = row if first_without < 0 else first_without
        live = [*contexts, *(negatives or [])]
        rest = [0] * (width - len(live))
        assert rows[0][row].tolist() == [sentences[sentence][centre]]
        assert rows[1][row].tolist() == live + rest
        assert rows[2][row].tolist() == [1] * len(live) + rest
        assert rows[3][row].tolist() == [1] * len(contexts) + [0] * (width - len(contexts))
    assert exhausted == first_without


def test_count_tokens_stops_at_the_first_impossible_id() -> None:
    counts = np.zeros(3, np.int64)
    assert skipgram.count_tokens(np.array([2, 0, 2], np.uint8), counts) == -1
    assert counts.tolist() == [1, 0, 2]
    assert skipgram.count_tokens(np.array([1, 3, 1], np.uint64), counts) == 1


@pytest.mark.parametrize("window", [1, 5])
def test_no_rows(window: int) -> None:
    none = np.empty(0, np.int64)
    reach, most = skipgram.draw_windows(
        np.array([1], np.uint16), none, none.astype(np.uint64), np.uint64(KEY), window
    )
    assert (reach.shape, most) == ((0, 2), 0)
