"""Reading ahead: the windows that a block order begins, and the pages of their rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.loading import Bitmap, Label, Loader, Ragged, Rows, Scalar
from headrace.order import Block, Budget


def covered(ranges: np.ndarray) -> list[int]:
    return [index for first, end in ranges.tolist() for index in range(first, end)]


@settings(deadline=None, max_examples=60)
@given(
    size=st.integers(1, 400),
    block=st.integers(1, 20),
    window=st.integers(1, 5),
    lanes=st.integers(1, 9),
    stops=st.lists(st.integers(1, 60), min_size=1, max_size=30),
)
def test_what_is_read_ahead_is_every_sample_once_and_in_time(size, block, window, lanes, stops) -> None:
    order = Block(block, window, lanes).at(size, 2, 0, Budget(10))
    asked: list[int] = []
    start = 0
    for length in [*stops, size]:
        stop = min(start + length, size)
        asked += covered(order.read_ahead(start, stop, open_too=start == 0))
        needed = order.indices(np.arange(start, stop), start, stop)
        assert set(needed.tolist()) <= set(asked)
        start = stop
    assert sorted(asked) == list(range(size))


def test_windows_in_use_are_asked_for_when_a_pass_begins_in_the_middle() -> None:
    order = Block(4, 4, 2).at(200, 2, 0, Budget(10))
    asked = set(covered(order.read_ahead(50, 60, open_too=True)))
    assert set(order.indices(np.arange(50, 60), 50, 60).tolist()) <= asked
    assert len(order.read_ahead(200, 300, open_too=False)) == 0


def test_rows_of_several_shards_are_read_without_touching_them() -> None:
    counts = [40, 0, 60]
    offsets = [np.arange(count + 1) * 3 for count in counts]
    rows = Rows(
        [
            Scalar("user", [np.arange(count, dtype=np.uint32) for count in counts]),
            Ragged("tags", offsets, [np.ones(count * 3, np.uint8) for count in counts], 3),
            Label(
                "click",
                [np.zeros(count, np.float32) for count in counts],
                [Bitmap.pack(np.ones(count, bool)) if count else None for count in counts],
            ),
        ],
        counts,
        "rows",
    )
    rows.will_read(np.array([[0, 100], [39, 41], [99, 100], [5, 5]]))
    rows.select([1, 2]).will_read(np.array([[0, 2]]))
    batches = list(Loader(rows, batch_size=16, shuffle=Block(8, 2, 4)))
    assert sorted(index for batch in batches for index in batch["sample_id"].tolist()) == list(range(100))


def test_windows_of_lanes_begin_one_after_the_other() -> None:
    order = Block(block=8, window=8, lanes=8).at(8192, 0, 0, Budget(64))
    begun = [len(order.read_ahead(start, start + 64, open_too=False)) for start in range(512, 7680, 64)]
    assert max(begun) <= 3 * 9
    assert sum(count > 0 for count in begun) > len(begun) // 2
