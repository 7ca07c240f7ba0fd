"""Windows served by the loader: ranks, threads, resume, orders, torch."""

from __future__ import annotations

import copy
import json
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.errors import OrderError, TextError
from headrace.testing import check_sample_space
from headrace.text import MLM, DynamicStride, Tokens, Windows, tokenize

DOCUMENTS = [[(7 * d + i) % 97 for i in range(d * 11 % 60)] for d in range(40)]
TOKENS = Tokens.from_documents(DOCUMENTS, vocab_size=100, eos=98, mask=99)
OUTPUTS = (
    "input_ids",
    "labels",
    "attention_mask",
    "segment_ids",
    "position_ids",
    "document",
    "start",
    "length",
)


@pytest.mark.parametrize(
    "how",
    [
        {"window": 16},
        {"window": 16, "stride": 6, "offset": "random", "tail": "shift", "overlap_labels": False},
        {"window": 16, "pack": "concat", "mask_dtype": "bool"},
        {"window": 16, "pack": "best_fit", "positions": "document"},
        {"window": 16, "stride": 9, "objective": MLM(), "eos": 98},
        {"window": 16, "stride": DynamicStride("surprisal", mean=7.0)},
        {"window": 16, "spans": [[0, 1] if len(document) > 1 else [-1, -1] for document in DOCUMENTS]},
    ],
)
def test_the_laws_of_a_sample_space(how: dict[str, Any]) -> None:
    check_sample_space(Windows(TOKENS, outputs=OUTPUTS, **how))


def rows(windows: Windows, **options: Any) -> list[tuple[int, int]]:
    loader = windows.loader(**{"batch_size": 4, "shuffle": "global", "seed": 3, **options})
    return [
        (int(d), int(s))
        for batch in loader
        for d, s in zip(batch["document"], batch["start"], strict=True)
        if d >= 0
    ]


def test_every_window_once_on_any_number_of_ranks_and_threads() -> None:
    windows = Windows(TOKENS, 16, 7, outputs=OUTPUTS)
    whole = rows(windows, batch_size=6)
    assert len(whole) == len(set(whole)) == len(windows)
    assert rows(windows, batch_size=6, threads=0) == whole
    for last in ("keep", "pad"):
        parts = [rows(windows, batch_size=2, rank=rank, world_size=3, last=last) for rank in range(3)]
        assert sorted(row for part in parts for row in part) == sorted(whole)


def test_filling_rows_hold_padding_and_no_label() -> None:
    windows = Windows(TOKENS, 16, outputs=OUTPUTS)
    last = list(windows.loader(batch_size=64, last="pad"))[-1]
    filling = ~last["valid"]
    assert filling.any()
    assert (last["input_ids"][filling] == 98).all()
    assert (last["labels"][filling] == -100).all()
    assert not last["attention_mask"][filling].any()
    assert not last["segment_ids"][filling].any()


@pytest.mark.parametrize(
    "how", [{"window": 16, "offset": "random"}, {"window": [8, 16]}, {"window": 8, "pack": "best_fit"}]
)
def test_a_resumed_run_goes_on_with_the_same_batches(how: dict[str, Any]) -> None:
    windows = Windows(TOKENS, outputs=OUTPUTS, **how)
    options: dict[str, Any] = {"batch_size": 4, "shuffle": "global", "seed": 1, "epoch": 2}
    unbroken = list(windows.loader(**options))
    loader = windows.loader(**options)
    taken = iter(loader)
    for _ in range(3):
        next(taken)
    state = json.loads(json.dumps(loader.state_dict()))
    resumed = windows.loader(**options)
    resumed.load_state_dict(state)
    for left, right in zip(resumed, unbroken[3:], strict=True):
        for name in OUTPUTS:
            np.testing.assert_array_equal(left[name], right[name])


def test_a_batch_of_several_lengths_holds_one() -> None:
    windows = Windows(TOKENS, [8, 16, 32], outputs=OUTPUTS)
    widths = [batch["input_ids"].shape for batch in windows.loader(batch_size=8, seed=1)]
    assert {width for _, width in widths} == {8, 16, 32}
    assert sum(count for count, _ in widths) == len(windows)
    sizes = [batch["input_ids"].size for batch in windows.loader(max_tokens=64, seed=1)]
    assert max(sizes) == 64
    for shuffle in (False, "block", None, np.arange(3)):
        with pytest.raises(TextError, match="shuffle='global'"):
            windows.loader(batch_size=8, shuffle=shuffle)


@pytest.mark.parametrize("last", ["keep", "pad"])
@pytest.mark.parametrize("how", [{"window": [8, 16, 32]}, {"window": 8, "separate_documents": True}])
def test_orders_of_their_own_hold_on_several_ranks(how: dict[str, Any], last: str) -> None:
    windows = Windows(TOKENS, outputs=OUTPUTS, **how)
    whole = [
        sorted(zip(batch["document"].tolist(), batch["start"].tolist(), strict=True))
        for batch in windows.loader(batch_size=9, seed=2)
    ]
    loaders = [windows.loader(batch_size=3, seed=2, rank=rank, world_size=3, last=last) for rank in range(3)]
    for right, parts in zip(whole, zip(*loaders, strict=True), strict=True):
        found = [
            (int(d), int(s))
            for part in parts
            for d, s in zip(part["document"], part["start"], strict=True)
            if d >= 0
        ]
        assert sorted(found) == right
        assert len({part["input_ids"].shape[1] for part in parts if (part["document"] >= 0).any()}) == 1


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("batchsize", "Did you mean 'batch_size'"),
        ("layout", "shuffle"),
        ("space", "seed"),
        ("num_workers", "Use threads="),
        ("drop_last", "Use last='drop'"),
    ],
)
def test_an_option_that_windows_have_not_is_refused_by_name(option: str, advice: str) -> None:
    for windows in (Windows(TOKENS, 8), Windows(TOKENS, [8, 16])):
        with pytest.raises(TextError, match=f"loader\\({option}=3\\): windows have no such option.*{advice}"):
            windows.loader(**{"batch_size": 4, option: 3})


def test_a_token_budget_counts_whole_rows() -> None:
    windows = Windows(TOKENS, 16, outputs=OUTPUTS)
    shapes = [batch["input_ids"].shape for batch in windows.loader(max_tokens=64, shuffle="global")]
    assert max(shapes) == (4, 16)
    assert sum(count for count, _ in shapes) == len(windows)


def test_no_document_comes_twice_in_a_batch() -> None:
    windows = Windows(TOKENS, 8, separate_documents=True, outputs=OUTPUTS)
    for epoch in range(3):
        seen = []
        for batch in windows.loader(batch_size=8, seed=1, epoch=epoch):
            documents = batch["document"].tolist()
            assert len(set(documents)) == len(documents)
            seen += list(zip(documents, batch["start"].tolist(), strict=True))
        assert len(set(seen)) == len(seen) == len(windows)
    with pytest.raises(OrderError, match="separate_documents=True: document"):
        windows.loader(batch_size=64)


def test_torch_tensors_and_groups() -> None:
    torch = pytest.importorskip("torch")
    loader = Windows(TOKENS, 16, outputs=OUTPUTS).loader(batch_size=4, output="torch", group=True)
    batch = next(iter(loader))
    assert batch["inputs"]["input_ids"].dtype == torch.int64
    assert set(batch["targets"]) == {"labels"}
    assert set(batch["meta"]) == {"document", "start", "length"}


@pytest.mark.parametrize("how", [{}, {"pack": "concat"}, {"pack": "best_fit"}, {"window": [4, 8]}])
def test_another_process_gets_no_plan_and_no_offsets(tmp_path: Path, how: dict[str, Any]) -> None:
    tokenize([f"text {n}" for n in range(3000)], list_of_bytes, tmp_path / "store", vocab_size=256)
    windows = Windows(tmp_path / "store", eos=0, outputs=OUTPUTS, **{"window": 4, **how})
    right = rows(windows)
    assert len(ForkingPickler.dumps(windows)) < 3000
    again = copy.deepcopy(windows)
    assert rows(again) == right
    assert again.fingerprint == windows.fingerprint


def test_what_another_process_gets_opens_the_store_again(tmp_path: Path) -> None:
    windows = Windows(TOKENS, 16, outputs=OUTPUTS)
    again = copy.deepcopy(windows)
    assert rows(again) == rows(windows)

    tokenize(["a text", "another one"] * 9, list_of_bytes, tmp_path / "store", vocab_size=256)
    stored = Windows(tmp_path / "store", 4, outputs=OUTPUTS)
    len(stored)
    sent = copy.deepcopy(stored)
    assert sent.tokens.values[0].ctypes.data != stored.tokens.values[0].ctypes.data
    assert rows(sent) == rows(stored)


def list_of_bytes(text: str) -> list[int]:
    return list(text.encode())
