"""A run of batches that is gathered in one pass is what its batches are one by one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import LoaderError
from headrace.fit.vocabulary import Vocabulary
from headrace.loading import Bitmap, Fixed, Label, Loader, Mixture, Ragged, Rows, Scalar
from headrace.loading.checks import needed_order
from headrace.loading.pool import Pool
from headrace.order import Block, LengthBucketed
from headrace.testing import Counting, assert_batches_equal
from headrace.text import MLM, Tokens, Windows
from headrace.word2vec import CBOW, SkipGram


def rows(**options: Any) -> Rows:
    sizes = [30, 0, 41]
    lengths = [np.arange(size) * 7 % 6 for size in sizes]
    offsets = [np.concatenate([[0], np.cumsum(each)]) for each in lengths]
    present = [Bitmap.pack(np.arange(size) % 3 > 0) for size in sizes]
    columns = [
        Scalar("user", [np.arange(size, dtype=np.uint16) for size in sizes], present),
        Ragged("tags", offsets, [np.arange(each[-1], dtype=np.uint32) for each in offsets], 4, "left"),
        Fixed("vector", [np.ones((size, 3), np.float32) * size for size in sizes]),
        Label("click", [np.arange(size, dtype=np.float32) for size in sizes], present),
    ]
    return Rows(columns, sizes, "runs", **options)


def windows(**options: Any) -> Windows:
    documents = [list(range(1 + number % 4, 4 + number * 5 % 23)) for number in range(40)]
    return Windows(Tokens.from_documents(documents, vocab_size=30, eos=0, mask=29), **options)


def words(kind: type[SkipGram] | type[CBOW], **options: Any) -> SkipGram | CBOW:
    sentences = [[f"w{(number * place) % 19}" for place in range(number % 9)] for number in range(30)]
    vocabulary = Vocabulary.fit([word for sentence in sentences for word in sentence])
    return kind(sentences, vocabulary, window=2, negatives=3, subsample=None, **options)


FIVE = ("input_ids", "labels", "attention_mask", "segment_ids", "position_ids", "document", "start", "length")
SPACES = {
    "rows": rows,
    "rows, tight": lambda: rows(pad_to="batch"),
    "rows, jagged": lambda: rows(layout="jagged"),
    "rows, masks": lambda: rows(masks=True, id_dtype="int32"),
    "rows, selected": lambda: rows().select(np.arange(60) * 7 % 71),
    "counting": lambda: Counting(71),
    "mixture": lambda: Mixture({"a": rows(), "b": rows()}, {"a": 0.6, "b": 0.4}),
    "windows": lambda: windows(window=5, stride=2),
    "windows, all outputs": lambda: windows(window=5, outputs=FIVE, mask_dtype="bool", overlap_labels=False),
    "windows, packed": lambda: windows(window=7, pack="best_fit", outputs=FIVE),
    "windows, several lengths": lambda: windows(window=[3, 6]),
    "windows, masked": lambda: windows(window=6, objective=MLM()),
    "skip-gram": lambda: words(SkipGram),
    "skip-gram, one width": lambda: words(SkipGram, width="max"),
    "CBOW": lambda: words(CBOW),
}


@pytest.mark.parametrize("name", SPACES)
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_a_run_is_its_batches_one_by_one(name: str, data: st.DataObject) -> None:
    space = SPACES[name]().at(3, 1)
    gather_run = getattr(space, "gather_run", None)
    if gather_run is None:
        return
    sizes = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=5))
    bounds = np.cumsum([0, *sizes])
    indices = np.array(
        data.draw(
            st.lists(st.integers(0, len(space) - 1), min_size=int(bounds[-1]), max_size=int(bounds[-1]))
        ),
        np.int64,
    )
    keys = np.arange(7, 7 + indices.size, dtype=np.uint64)
    batches = gather_run(indices, keys, bounds, Pool())
    assert len(batches) == len(sizes)
    for batch, (first, end) in zip(batches, pairwise(bounds.tolist()), strict=True):
        assert_batches_equal(batch, space.gather(indices[first:end], keys[first:end]))
    arrays = [array for batch in batches for array in batch.values() if array.size]
    assert not any(np.shares_memory(left, right) for left, right in pairwise(arrays))


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("last", ["keep", "pad"])
def test_threads_that_make_runs_deliver_what_single_steps_do(name: str, last: str) -> None:
    options = {"batch_size": 3, "seed": 5, "rank": 1, "world_size": 2, "last": last}
    space = SPACES[name]()
    options["shuffle"] = needed_order(space) or (False if name == "mixture" else "global")
    single = list(Loader(space, threads=0, **options))
    runs = list(Loader(SPACES[name](), threads=1, **options))
    assert len(single) > 5
    for left, right in zip(single, runs, strict=True):
        assert_batches_equal(left, right)


@pytest.mark.parametrize("shuffle", [Block(4, 2, 3), LengthBucketed(np.arange(71) % 7)])
def test_orders_that_know_their_batch(shuffle: Any) -> None:
    loaders = [Loader(Counting(71), batch_size=4, shuffle=shuffle, threads=threads) for threads in (0, 1)]
    for left, right in zip(*map(list, loaders), strict=True):
        assert_batches_equal(left, right)


class Broken(Counting):
    """Fails at one index, and counts what it is asked for."""

    def gather_run(self, indices, keys, bounds, memory):
        if 777 in indices:
            raise ValueError("sample 777 is bad")
        return [self.gather(indices[a:b], keys[a:b]) for a, b in pairwise(bounds.tolist())]


def test_a_failure_inside_a_run_comes_after_the_batches_before_it() -> None:
    loader = Loader(Broken(10_000), batch_size=10, threads=1)
    delivered = []
    message = r"step 77, positions \[770, 780\) of rank 0: ValueError: sample 777"
    with pytest.raises(LoaderError, match=message):
        delivered.extend(batch["index"][0] for batch in loader)
    assert delivered == list(range(0, 770, 10))
    assert loader.state_dict()["position"] == 770


@pytest.mark.parametrize("threads", [1, 3])
def test_a_state_counts_delivered_batches_and_not_runs(threads: int) -> None:
    loader = Loader(Counting(5000), batch_size=5, shuffle="global", threads=threads)
    whole = [batch["index"].tolist() for batch in Loader(Counting(5000), batch_size=5, shuffle="global")]
    for step, _ in enumerate(loader, start=1):
        assert loader.state_dict()["position"] == 5 * step
        if step == 99:
            state = loader.state_dict()
            break
    resumed = Loader(Counting(5000), batch_size=5, shuffle="global", threads=threads)
    resumed.load_state_dict(state)
    assert [batch["index"].tolist() for batch in resumed] == whole[99:]
