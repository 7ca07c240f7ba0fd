"""Plans beside the tokens: made once, checked when read, made again where they cannot be trusted."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace.dataset.splits import load_from_disk
from headrace.errors import TextError
from headrace.text import DynamicStride, Tokens, Windows, tokenize

Everything = Callable[..., dict[str, Any]]
NAMES = ("input_ids", "labels", "document", "start", "length")


def letters(text: str) -> dict[str, Any]:
    raw = list(text.encode())
    return {"input_ids": raw, "offsets": [(n, n + 1) for n in range(len(raw))]}


letters.vocab_size, letters.eos_token_id = 256, 0  # type: ignore[attr-defined]


class Vowels:
    """A density that says what it is."""

    def __init__(self, weight: float = 2.0) -> None:
        self.weight = weight
        self.calls = 0

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        self.calls += 1
        return np.where(np.isin(ids, [97, 101, 105]), self.weight, 1.0)

    def __fingerprint__(self) -> str:
        return f"vowels {self.weight}"


WAYS: dict[str, dict[str, Any]] = {
    "best_fit": {"pack": "best_fit"},
    "aligned": {"align": "sentence", "stride": 20},
    "aligned and joined": {"align": "sentence", "pack": "concat", "offset": 3, "tail": "shift"},
    "edges": {"stride": DynamicStride("edges", mean=9.0)},
    "surprisal": {"stride": DynamicStride("surprisal", mean=9.0, minimum=2)},
    "a function": {"stride": DynamicStride(Vowels(), mean=9.0)},
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    texts = [f"It was number {n}. " * (n % 9) + "Hi! " * (n % 3) for n in range(60)]
    tokenize(texts, letters, tmp_path / "store", sentences=True, shard_bytes=900)
    return tmp_path / "store"


def plans(store: Path) -> list[Path]:
    return sorted((store / "plans").glob("*.arrow"))


def same(left: dict[str, Any], right: dict[str, Any]) -> None:
    for name in NAMES:
        np.testing.assert_array_equal(left[name], right[name])


@pytest.fixture
def forbidden(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """After a call of it nothing can be planned."""

    def refuse(*_: Any) -> None:
        raise AssertionError("planned again")

    def forbid() -> None:
        for name in (
            "packing.plan_packing",
            "aligned.aligned_starts",
            "dynamic.dynamic_starts",
            "cuts.list_windows",
        ):
            monkeypatch.setattr(f"headrace.text.{name}", refuse)

    yield forbid
    monkeypatch.undo()


@pytest.mark.parametrize("way", WAYS)
def test_a_plan_is_made_once_for_stores_and_datasets(
    store: Path, everything: Everything, forbidden: Callable[[], None], way: str
) -> None:
    how = {"window": 32, "outputs": NAMES, **WAYS[way]}
    in_memory = Tokens.open(store)
    in_memory = Tokens(in_memory.values, in_memory.offsets, in_memory.special, sentences=in_memory.sentences)
    right = everything(Windows(in_memory, **how))
    same(everything(Windows(store, **how)), right)
    assert len(plans(store)) == 1
    forbidden()
    same(everything(Windows(store, **how)), right)
    same(everything(Windows(load_from_disk(store)["train"], **how)), right)
    same(everything(copy.deepcopy(Windows(load_from_disk(store)["train"], **how))), right)
    assert len(plans(store)) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_kept_plan_is_mapped(store: Path, way: str) -> None:
    how = {"window": 32, **WAYS[way]}
    for _ in range(2):
        cut = Windows(store, **how).at(0, 0).cut
        assert not cut.position.flags.writeable  # type: ignore[attr-defined]
        assert not cut.size.flags.writeable  # type: ignore[attr-defined]


def test_whatever_changes_windows_has_a_plan_of_its_own(store: Path) -> None:
    ways: list[dict[str, Any]] = [
        {"window": 32, "align": "sentence"},
        {"window": 33, "align": "sentence"},
        {"window": 32, "align": "sentence", "stride": 31},
        {"window": 32, "align": "sentence", "offset": 1},
        {"window": 32, "align": "sentence", "tail": "drop"},
        {"window": 32, "align": "sentence", "min_remainder": 3},
        {"window": 32, "align": "sentence", "eos": 7},
        {"window": 32, "align": "sentence", "pack": "concat"},
        {"window": 32, "pack": "best_fit"},
        {"window": 32, "pack": "best_fit", "eos": False},
        {"window": 32, "stride": DynamicStride("edges", mean=9.0)},
        {"window": 32, "stride": DynamicStride("edges", mean=9.5)},
        {"window": 32, "stride": DynamicStride("edges", mean=9.0, minimum=2)},
        {"window": 32, "stride": DynamicStride("edges", mean=9.0, maximum=20)},
        {"window": 32, "stride": DynamicStride("surprisal", mean=9.0)},
        {"window": 32, "stride": DynamicStride(Vowels(), mean=9.0)},
        {"window": 32, "stride": DynamicStride(Vowels(3.0), mean=9.0)},
    ]
    for number, how in enumerate(ways, 1):
        len(Windows(store, **how))
        assert len(plans(store)) == number
    assert len({Windows(store, **how).fingerprint for how in ways}) == len(ways)


def test_windows_that_differ_only_in_what_is_done_with_them_share_a_plan(store: Path) -> None:
    for more in ({}, {"labels": "same"}, {"outputs": ("start",)}, {"positions": "document"}, {"pad_id": 3}):
        len(Windows(store, 32, align="sentence", stride=9, **more))  # type: ignore[arg-type]
    assert len(plans(store)) == 1


def test_a_function_that_does_not_say_what_it_is_keeps_no_plan(store: Path) -> None:
    calls: list[int] = []

    def density(ids: np.ndarray) -> np.ndarray:
        calls.append(ids.size)
        return np.ones(ids.size)

    one = Windows(store, 32, DynamicStride(density, mean=9.0))
    len(one)
    assert plans(store) == []
    first = len(calls)
    assert one.fingerprint
    assert len(calls) == first
    other = Windows(store, 32, DynamicStride(lambda ids: 1.0 + (ids == 32), mean=9.0))
    assert other.fingerprint != one.fingerprint


def test_a_function_in_a_later_bucket_counts(store: Path) -> None:
    def windows(density: Any) -> Windows:
        return Windows(store, [16, 32], [16, DynamicStride(density, mean=9.0)])

    flat, steep = (lambda ids: np.ones(ids.size)), (lambda ids: 1.0 + 5 * (np.arange(ids.size) < 20))
    assert windows(flat).fingerprint != windows(steep).fingerprint
    assert windows(Vowels()).fingerprint != windows(Vowels(9.0)).fingerprint


def test_random_cuts_are_of_one_epoch_and_not_kept(store: Path) -> None:
    windows = Windows(store, 32, 9, align="sentence", offset="random")
    for epoch in range(3):
        windows.at(0, epoch)
    assert plans(store) == []


def test_where_the_store_cannot_be_written_a_plan_stays_in_memory(
    store: Path, everything: Everything
) -> None:
    right = everything(Windows(store, 32, pack="best_fit", outputs=NAMES))
    for path in plans(store):
        path.unlink()
    (store / "plans").rmdir()
    (store / "plans").write_text("a file where the folder would be: nothing can be written there")
    same(everything(Windows(store, 32, pack="best_fit", outputs=NAMES)), right)


def test_tokens_in_memory_and_selections_leave_the_store_alone(store: Path) -> None:
    some = load_from_disk(store)["train"].select([5, 3, 8])
    assert len(Windows(some, 32, pack="best_fit")) > 0
    assert len(Windows([[1, 2]], 32, pack="best_fit", eos=0)) == 1
    assert not (store / "plans").exists()


@pytest.mark.parametrize("way", ["best_fit", "aligned"])
def test_any_flipped_byte_of_a_plan_is_found_or_without_effect(
    store: Path, everything: Everything, way: str
) -> None:
    how = {"window": 32, "outputs": NAMES, **WAYS[way]}
    right = everything(Windows(store, **how))
    (path,) = plans(store)
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        same(everything(Windows(store, **how)), right)
        assert len(plans(store)) == 1
    path.write_bytes(whole[: len(whole) // 2])
    same(everything(Windows(store, **how)), right)
    assert path.read_bytes() == whole


def write_plan(path: Path, offsets: list[int], columns: dict[str, np.ndarray]) -> None:
    from headrace.text.plans import RunPlan, _write

    assert _write(path, "any", RunPlan(np.array(offsets, np.int64), columns))


@pytest.mark.parametrize(
    ("position", "size", "offsets"),
    [
        ([-1], [4], [0, 1]),
        ([1 << 40], [4], [0, 1]),
        ([(1 << 63) - 2], [4], [0, 1]),
        ([0], [0], [0, 1]),
        ([0], [33], [0, 1]),
        ([0, 4], [20, 20], [0, 2]),
        ([0, 4], [4, 4], [0, 3]),
        ([0, 4], [4, 4], [0, 2, 1]),
        ([], [], []),
    ],
)
def test_a_strangers_plan_cannot_lead_outside(
    store: Path,
    everything: Everything,
    monkeypatch: pytest.MonkeyPatch,
    position: list[int],
    size: list[int],
    offsets: list[int],
) -> None:
    monkeypatch.setattr("headrace.text.plans._checksum", lambda key, plan: "right, whatever it is")
    right = everything(Windows(store, 32, pack="best_fit", outputs=NAMES))
    (path,) = plans(store)
    columns = {"position": np.array(position, np.int64), "size": np.array(size, np.int32)}
    if not offsets:
        path.write_bytes(b"")
    elif offsets[-1] == len(position) and sorted(offsets) == offsets:
        write_plan(path, offsets, columns)
    else:
        pa.ipc.new_file(path, pa.schema([])).close()
    same(everything(Windows(store, 32, pack="best_fit", outputs=NAMES)), right)


def test_a_plan_that_was_renamed_is_no_other_plan(store: Path, everything: Everything) -> None:
    def rows(**how: Any) -> dict[str, Any]:
        return everything(
            Windows(store, align="sentence", outputs=NAMES, **{"window": 32, "stride": 20, **how})
        )

    rows()
    (other,) = plans(store)
    for how in ({"stride": 21}, {"window": 40}, {"tail": "drop"}):
        right = rows(**how)
        (path,) = set(plans(store)) - {other}
        path.write_bytes(other.read_bytes())
        same(rows(**how), right)
        path.unlink()


def test_appending_makes_other_plans_and_takes_the_old_ones_away(store: Path) -> None:
    rows = len(Windows(store, 32, pack="best_fit"))
    before = load_from_disk(store)["train"]
    opened = Windows(store, 32, pack="best_fit")
    tokenize(["a new document. " * 20], letters, store, sentences=True, shard_bytes=900, append=True)
    assert plans(store) == []
    assert len(Windows(store, 32, pack="best_fit")) > rows
    assert len(Windows(before, 32, pack="best_fit")) == rows
    assert len(plans(store)) == 1
    with pytest.raises(TextError, match="was changed while it was in use"):
        copy.deepcopy(opened)


def test_several_may_plan_at_once(store: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda _: len(Windows(store, 32, align="sentence")), range(8)))
    assert len(set(counts)) == 1
    assert len(plans(store)) == 1


@pytest.mark.parametrize("way", ["best_fit", "aligned"])
def test_choices_that_are_compared_leave_nothing_beside_the_tokens(store: Path, way: str) -> None:
    windows = Windows(store, 24, **WAYS[way])
    len(windows)
    kept = plans(store)
    compared = windows.plan([16, 24, 32])
    assert plans(store) == kept
    rest = {name: value for name, value in WAYS[way].items() if name != "stride"}
    assert [row.samples for row in compared] == [len(Windows(store, size, **rest)) for size in (16, 24, 32)]
