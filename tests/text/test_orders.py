"""Orders that windows need: one length a batch, no document twice in a batch."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import OrderError
from headrace.order.sampler import Budget
from headrace.text.orders import OneLength, SeparateDocuments
from headrace.text.windows import Windows


def walk(order: Any, batch: int) -> list[list[int]]:
    """Return the global batches of an epoch."""
    size = len(order)
    cuts = order.cuts if order.cuts is not None else [*range(0, size, batch), size]
    found = []
    for start, stop in pairwise(cuts):
        positions = np.arange(start, stop, dtype=np.int64)
        found.append(order.indices(positions, int(start), int(stop)).tolist())
    return found


@given(st.lists(st.integers(0, 6), max_size=12), st.integers(1, 9), st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_no_document_comes_twice_in_a_batch(counts: list[int], batch: int, seed: int) -> None:
    total = sum(counts)
    sampler = SeparateDocuments(lambda *_: np.array(counts, np.int64), window=8)
    if max(counts, default=0) > max(1, -(-total // batch)):
        with pytest.raises(OrderError, match="separate_documents=True: document"):
            sampler.at(total, seed, 0, Budget(batch))
        return
    found = walk(sampler.at(total, seed, 0, Budget(batch)), batch)
    assert sorted(index for rows in found for index in rows) == list(range(total))
    document = np.repeat(np.arange(len(counts)), counts)
    for rows in found:
        assert len(set(document[rows].tolist())) == len(rows)


def test_a_document_with_a_window_for_every_batch_is_kept_apart() -> None:
    sampler = SeparateDocuments(lambda *_: np.array([3, 3, 3], np.int64), window=8)
    found = walk(sampler.at(9, 0, 0, Budget(4)), 4)
    assert [len(rows) for rows in found] == [3, 3, 3]
    assert all(len({row // 3 for row in rows}) == 3 for rows in found)


def test_documents_are_shuffled_by_seed_and_epoch() -> None:
    sampler = SeparateDocuments(lambda *_: np.full(40, 2, np.int64), window=8)
    orders = [walk(sampler.at(80, *at, Budget(8)), 8) for at in ((0, 0), (0, 0), (0, 1), (1, 0))]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert orders[0] != orders[3]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=4), st.integers(1, 7), st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_a_batch_holds_one_length(counts: list[int], batch: int, seed: int) -> None:
    sampler = OneLength(lambda *_: np.array(counts, np.int64), tuple(range(1, len(counts) + 1)))
    order = sampler.at(sum(counts), seed, 0, Budget(batch))
    found = walk(order, batch) if len(order) else []
    bucket = np.repeat(np.arange(len(counts)), counts)
    assert sorted(index for rows in found for index in rows) == list(range(sum(counts)))
    for rows in found:
        assert len(rows) <= batch
        assert len(set(bucket[rows].tolist())) == 1


def test_a_token_budget_gives_short_windows_larger_batches() -> None:
    sampler = OneLength(lambda *_: np.array([16, 8], np.int64), (4, 8))
    found = walk(sampler.at(24, 0, 0, Budget(None, tokens=32)), 0)
    assert sorted(len(rows) for rows in found) == [4, 4, 8, 8]
    with pytest.raises(OrderError, match="raise max_tokens"):
        sampler.at(24, 0, 0, Budget(None, tokens=7))


@pytest.mark.parametrize("how", [{"window": [4, 2]}, {"window": 4, "separate_documents": True}])
def test_batches_without_a_common_size_have_no_last_one_to_drop(how: dict[str, Any]) -> None:
    windows = Windows([[1] * 12, [2] * 12, [3] * 12], pad_id=0, **how)
    with pytest.raises(
        OrderError, match=r"last='drop': .* several window lengths or separate_documents=True"
    ):
        windows.loader(batch_size=4, last="drop")
    assert len(list(windows.loader(batch_size=4, last="keep"))) > 1
