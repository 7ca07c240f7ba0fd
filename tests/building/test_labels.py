"""Labels, weights, ids and splits; expected values by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import SpecError
from headrace.sources.quarantine import read_quarantine

LENIENT = {"max_bad_fraction": 1.0}
X = {"x": {"kind": "categorical"}}


def batch_of(splits: hr.DatasetDict, split: str = "train", **options: Any) -> dict[str, Any]:
    dataset = splits[split]
    return next(iter(dataset.loader(batch_size=max(len(dataset), 1), output="numpy", masks=True, **options)))


def reasons(splits: hr.DatasetDict) -> dict[int, str]:
    paths = sorted(splits.folder.glob("quarantine/*.jsonl"))
    return {row.line: row.reason for path in paths for row in read_quarantine(path)}


def labelled(values: list[Any]) -> list[dict[str, Any]]:
    return [{"x": number, "y": value} for number, value in enumerate(values)]


def test_binary_labels(built: Any) -> None:
    values = [0, 1, True, "false", "1", "TRUE", 1.0, None, 2, "yes", 0.5, ""]
    splits = built(labelled(values), source=LENIENT, features=X, labels={"y": {"kind": "binary"}})
    batch = batch_of(splits)
    assert batch["y"].tolist() == [0, 1, 1, 0, 1, 1, 1, 0]
    assert batch["y_mask"].tolist() == [True] * 7 + [False]
    assert batch["y"].dtype == np.float32
    assert "y_present" not in batch
    assert reasons(splits) == {
        9: "y is '2', expected 0 or 1",
        10: "y is 'yes', expected a number",
        11: "y is '0.5', expected 0 or 1",
        12: "y is '', expected a number",
    }


def test_binary_labels_with_a_threshold(built: Any) -> None:
    values = [29.999, 30, "31", None, -5, "many"]
    label = {"kind": "binary", "at_least": 30}
    splits = built(labelled(values), source=LENIENT, features=X, labels={"y": label})
    assert batch_of(splits)["y"].tolist() == [0, 1, 1, 0, 0]
    assert batch_of(splits)["y_mask"].tolist() == [True, True, True, False, True]
    assert reasons(splits) == {6: "y is 'many', expected a number"}


def test_continuous_labels(built: Any) -> None:
    splits = built(
        labelled([1.5, "2", None, -0.25]), features=X, labels={"z": {"kind": "continuous", "column": "y"}}
    )
    assert batch_of(splits)["z"].tolist() == [1.5, 2, 0, -0.25]
    assert batch_of(splits)["z_mask"].tolist() == [True, True, False, True]
    assert splits["train"]["z"] == [1.5, 2, None, -0.25]


def test_class_labels(built: Any) -> None:
    rows = [
        {"x": 1, "t": t, "y": y}
        for t, y in [(0, "10"), (0, 9), (0, "é"), (0, "Z"), (0, None), (5, "9"), (5, "new")]
    ]
    options = {
        "time": {"column": "t"},
        "split": {"by": "time", "train": {"until": 3}, "test": {"from": 3}},
        "features": X,
    }
    learned = built(rows, **options, labels={"y": {"kind": "class"}})
    assert learned.fitted.classes == {"y": ("10", "9", "Z", "é")}
    train, test = batch_of(learned), batch_of(learned, "test")
    assert train["y"].tolist() == [0, 1, 3, 2, 0]
    assert train["y_mask"].tolist() == [True] * 4 + [False]
    assert train["y"].dtype == np.int64
    assert (test["y"].tolist(), test["y_mask"].tolist()) == ([1, 0], [True, False])
    assert learned.manifest.details["rows_without_class"] == {"y": {"test": 1}}
    given = built(rows, **options, labels={"y": {"kind": "class", "values": ["Z", "9", "10"]}})
    assert given.manifest.details["rows_without_class"] == {"y": {"train": 1, "test": 1}}
    assert batch_of(given)["y"].tolist() == [2, 1, 0, 0, 0]
    assert batch_of(given)["y_mask"].tolist() == [True, True, False, True, False]


# -- attribution ----------------------------------------------------------------------------------
#
# train is [0, 100), valid [100, 200), test from 200; a window of 30 seconds; the log ends at 300.

CLICKS: list[tuple[int, int | None, int | None]] = [
    # click time, conversion, clicked
    (10, 20, 1),  # converted in time
    (10, 40, 1),  # at the very end of the window
    (10, 41, 1),  # after it
    (10, None, 1),  # never
    (10, 9, 1),  # before the click
    (10, 10, 1),  # at once
    (70, 100, 1),  # mature at 100, converted at 100
    (71, 75, 1),  # not mature at 100, converted early
    (71, None, 1),  # not mature at 100
    (10, 20, 0),  # not clicked
    (10, 20, None),  # not known whether clicked
    (150, 160, 1),
    (190, 195, 1),  # not mature at 200
    (250, 300, 1),  # after the window
    (280, None, 1),  # not mature at 300
]


def attribution(**options: Any) -> dict[str, Any]:
    return {"kind": "attribution", "click_time": "click", "convert_time": "conv", "window": "30s", **options}


def attributed(built: Any, **options: Any) -> tuple[hr.DatasetDict, dict[str, list[Any]]]:
    rows = [{"x": 1, "click": click, "conv": conv, "clicked": clicked} for click, conv, clicked in CLICKS]
    splits = built(
        rows,
        time={"column": "click"},
        split={
            "by": "time",
            "train": {"until": 100},
            "valid": {"from": 100, "until": 200},
            "test": {"from": 200},
        },
        features=X,
        labels={"clicked": {"kind": "binary"}, "bought": attribution(**options)},
    )
    return splits, {split: splits[split]["bought"] for split in splits}


def test_attribution_masks_what_is_not_mature(built: Any) -> None:
    splits, bought = attributed(built)
    assert bought["train"] == [1, 1, 0, 0, 0, 1, 1, None, None, 1, 1]
    assert bought["valid"] == [1, None]
    assert bought["test"] == [0, None]
    batch = batch_of(splits)
    assert batch["bought"].tolist() == [1, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1]
    assert batch["bought_mask"].tolist() == [True] * 7 + [False] * 2 + [True] * 2
    assert splits.accounting["dropped"] == 0


def test_attribution_given_a_click(built: Any) -> None:
    _, bought = attributed(built, given="clicked")
    assert bought["train"] == [1, 1, 0, 0, 0, 1, 1, None, None, None, None]


def test_attribution_keeps_what_is_not_mature_as_it_is_known(built: Any) -> None:
    _, bought = attributed(built, censored="keep")
    assert bought["train"] == [1, 1, 0, 0, 0, 1, 1, 1, 0, 1, 1]
    assert bought["valid"] == [1, 1]
    assert bought["test"] == [0, 0]
    _, bought = attributed(built, censored="keep", given="clicked")
    assert bought["train"] == [1, 1, 0, 0, 0, 1, 1, 1, 0, None, None]


def test_attribution_drops_what_is_not_mature(built: Any) -> None:
    splits, bought = attributed(built, censored="drop")
    assert bought["train"] == [1, 1, 0, 0, 0, 1, 1, 1, 1]
    assert (bought["valid"], bought["test"]) == ([1], [0])
    assert splits.accounting == {
        "read": 15,
        "written": {"train": 9, "valid": 1, "test": 1},
        "quarantined": 0,
        "outside": 0,
        "dropped": 4,
    }
    splits, bought = attributed(built, censored="drop", given="clicked")
    assert bought["train"] == [1, 1, 0, 0, 0, 1, 1, None, None]
    assert splits.accounting["dropped"] == 4


@pytest.mark.parametrize(
    ("until", "train"),
    [
        ("log", [1, 1, 0, 0, 0, 1, 1, 1, 0, 1, 1]),
        (100, [1, 1, 0, 0, 0, 1, 1, None, None, 1, 1]),
        ("1970-01-01T00:01:40Z", [1, 1, 0, 0, 0, 1, 1, None, None, 1, 1]),
        (99, [1, 1, 0, 0, 0, 1, None, None, None, 1, 1]),
        (39, [None] * 11),
        (40, [1, 1, 0, 0, 0, 1, None, None, None, 1, 1]),
    ],
)
def test_attribution_observed_until(built: Any, until: Any, train: list[Any]) -> None:
    splits, bought = attributed(built, observed_until=until)
    assert bought["train"] == train
    if until == "log":
        assert bought["valid"] == [1, 1]
        assert bought["test"] == [0, None]
        assert splits.fitted.observed_until["bought"] == dict.fromkeys(("train", "valid", "test"), 300000000)


def test_the_end_of_the_log_is_the_largest_time_read(built: Any) -> None:
    """The last conversion counts as well as the last click, and in no split's rows too."""
    rows = [
        {"x": 1, "click": 0, "conv": None},
        {"x": 1, "click": 5, "conv": 31},
        {"x": 1, "click": 2, "conv": None},
    ]
    splits = built(rows, features=X, labels={"bought": attribution()})
    assert splits["train"]["bought"] == [0, None, None]
    assert splits.fitted.observed_until == {"bought": {"train": 31_000_000}}


def test_a_click_without_a_time_has_no_label(built: Any) -> None:
    rows = [{"x": 1, "click": None, "conv": 5}, {"x": 1, "click": 0, "conv": 100}]
    assert built(rows, features=X, labels={"bought": attribution()})["train"]["bought"] == [None, 0]


def test_new_data_is_labelled_by_its_own_log(built: Any, log: Any, tmp_path: Path) -> None:
    splits, _ = attributed(built)
    rows = [
        {"x": 1, "click": 1000, "conv": 1010, "clicked": 1},
        {"x": 2, "click": 1005, "conv": None, "clicked": 1},
        {"x": 1, "click": 1031, "conv": None, "clicked": 0},
    ]
    new = hr.encode(splits.folder, log(rows, "new.jsonl"), out=tmp_path / "new")
    assert new["bought"] == [1, None, None]
    assert new["clicked"] == [1, 1, 0]
    bare = hr.encode(
        splits.folder, log([{"x": 1, "click": 3}], "bare.jsonl"), out=tmp_path / "bare", labels=False
    )
    assert bare.column_names == ["x", "__file__", "__row__", "__time__"]


# -- weights and ids ------------------------------------------------------------------------------


def test_weights(built: Any) -> None:
    rows = [
        {"x": n, "y": 1, "w": w, "v": v}
        for n, (w, v) in enumerate([(1, 2), ("0.5", 0), (None, 1), (-1, 1), (0, None), (1e39, 1), ("x", 1)])
    ]
    splits = built(
        rows,
        source=LENIENT,
        features=X,
        labels={"y": {"kind": "binary", "weight": "v"}},
        weight={"column": "w"},
    )
    batch = batch_of(splits)
    assert batch["weight"].tolist() == [1, 0.5]
    assert batch["y_weight"].tolist() == [2, 0]
    assert batch["weight"].dtype == batch["y_weight"].dtype == np.float32
    assert reasons(splits) == {
        3: "w is missing",
        4: "w is -1; a weight must be at least 0",
        5: "v is missing",
        6: "w is 1e+39, beyond float32",
        7: "w is 'x', expected a number",
    }


def test_a_weight_is_optional_in_new_data(built: Any, log: Any, tmp_path: Path) -> None:
    splits = built(
        [{"x": 1, "w": 2, "y": 1, "v": 3}],
        features=X,
        weight={"column": "w"},
        labels={"y": {"kind": "binary", "weight": "v"}},
    )
    new = hr.encode(splits.folder, log([{"x": 1}], "new.jsonl"), out=tmp_path / "a")
    assert "weight" not in new.column_names
    assert len(new) == 1
    new = hr.encode(splits.folder, log([{"x": 1, "w": 4, "y": 0, "v": 2}], "n2.jsonl"), out=tmp_path / "b")
    assert (new["weight"], new["y"], new["y_weight"]) == ([4], [0], [2])


def test_ids(built: Any, log: Any) -> None:
    rows = [{"x": 1, "id": "r1"}, {"x": 1, "id": 2}, {"x": 1, "id": None}]
    named = built(rows, features=X, id={"column": "id"})
    assert named["train"].ids([2, 0, 1]) == [None, "r1", "2"]
    paths = [log(rows[:2], "a.jsonl"), log(rows[2:], "b.jsonl")]
    plain = built(paths[0], source={"files": paths}, features=X)
    assert plain["train"].ids(np.array([0, 2, 1])) == [f"{paths[0]}:0", f"{paths[1]}:0", f"{paths[0]}:1"]
    batch = batch_of(plain, shuffle="global", seed=3)
    assert [plain["train"].ids([row])[0] for row in batch["sample_id"]] == plain["train"].ids(
        batch["sample_id"]
    )


# -- splits ---------------------------------------------------------------------------------------


def test_a_split_by_time(built: Any) -> None:
    rows = [{"x": x, "t": t} for x, t in enumerate([0, 9, 10, 11, 12, 19, 20, -5, 99])]
    splits = built(
        rows,
        time={"column": "t"},
        split={
            "by": "time",
            "train": {"until": 10},
            "valid": {"from": 12, "until": 20},
            "test": {"from": "1970-01-01T00:00:20Z"},
        },
        features=X,
    )
    assert {
        split: [int(n.rpartition(":")[2]) for n in splits[split].ids(range(len(splits[split])))]
        for split in splits
    } == {
        "train": [0, 1, 7],
        "valid": [4, 5],
        "test": [6, 8],
    }
    assert splits.accounting["outside"] == 2


def test_a_split_by_another_time(built: Any) -> None:
    rows = [{"x": 1, "t": 1, "ms": 9_999}, {"x": 2, "t": 2, "ms": 10_000}, {"x": 3, "t": 3, "ms": None}]
    splits = built(
        rows,
        source=LENIENT,
        time={"column": "t"},
        split={
            "by": "time",
            "column": "ms",
            "unit": "ms",
            "train": {"until": 10_000},
            "test": {"from": "1970-01-01T00:00:10"},
        },
        features=X,
    )
    assert splits.num_rows == {"train": 1, "test": 1}
    assert splits["test"]["__time__"] == [2_000_000]
    assert reasons(splits) == {3: "ms is missing"}


def test_a_split_by_column(built: Any) -> None:
    rows = [{"x": 1, "fold": fold} for fold in [1, "1", 2, "b", None, 1.0, "other"]]
    splits = built(
        rows, split={"by": "column", "column": "fold", "train": ["1"], "test": ["2", "b"]}, features=X
    )
    assert splits.num_rows == {"train": 3, "test": 2}
    assert splits.accounting["outside"] == 2


def test_a_split_by_file(built: Any, log: Any) -> None:
    paths = [log([{"x": n}] * (n + 1), f"day={n}/part.jsonl") for n in range(4)]
    log([{"x": "not json"}], "day=9/ignored.jsonl")
    splits = built(
        paths[0],
        source={"files": paths},
        split={"by": "file", "train": ["day=0/*", "*/day=1/part.jsonl"], "test": "day=3/part.jsonl"},
        features=X,
    )
    assert splits.num_rows == {"train": 3, "test": 4}
    assert splits.accounting["read"] == 7  # the file in no split is not read


def test_a_random_split(built: Any, log: Any) -> None:
    rows = log([{"x": number} for number in range(4000)], "random.jsonl")
    shares = {"train": 0.7, "valid": 0.2, "test": 0.05}

    def drawn(seed: int) -> dict[str, set[str]]:
        splits = built(rows, split={"by": "random", "seed": seed, **shares}, features=X)
        sizes = {split: len(splits[split]) / 4000 for split in splits}
        for split, share in shares.items():  # four standard deviations
            assert abs(sizes[split] - share) < 4 * (share * (1 - share) / 4000) ** 0.5
        assert splits.accounting["outside"] == 4000 - sum(splits.num_rows.values()) > 0
        return {
            split: {n.rpartition(":")[2] for n in splits[split].ids(range(len(splits[split])))}
            for split in splits
        }

    one, again, other = drawn(1), drawn(1), drawn(2)
    assert one == again != other
    assert not one["train"] & one["valid"]
    both = len(one["valid"] & other["valid"]) / 4000
    assert abs(both - 0.04) < 0.02  # another seed is an independent draw


def test_rows_of_one_key_are_never_on_two_sides(built: Any) -> None:
    rows = [{"x": n, "user": n % 300 if n % 3 else str(n % 300)} for n in range(3000)]
    for by in ("group", "random"):
        splits = built(
            rows,
            split={"by": by, "key": "user", "train": 0.5, "test": 0.5},
            features={"user": {"kind": "hashed", "buckets": 10**9}},
        )
        sides = [set(splits[split]["user"]) for split in ("train", "test")]
        assert not sides[0] & sides[1]
        assert len(sides[0]) + len(sides[1]) == 300
        assert 100 < len(sides[0]) < 200
        assert splits.accounting["outside"] == 0


def test_adding_rows_moves_no_row_of_a_group_split(built: Any) -> None:
    split = {"by": "group", "key": "user", "train": 0.6, "test": 0.4}
    features = {"user": {"kind": "hashed", "buckets": 10**9}}
    few = built([{"user": n} for n in range(100)], split=split, features=features)
    many = built([{"user": n} for n in reversed(range(500))], split=split, features=features)
    for side in ("train", "test"):
        assert set(few[side]["user"]) <= set(many[side]["user"])


def test_a_null_key_is_a_bad_row(built: Any) -> None:
    rows = [{"x": 1, "user": 1}, {"x": 1, "user": None}]
    splits = built(rows, source=LENIENT, split={"by": "group", "key": "user", "train": 1.0}, features=X)
    assert reasons(splits) == {2: "user is missing"}


def test_splits_of_other_names(built: Any) -> None:
    rows = [{"x": 1, "t": t} for t in range(10)]
    split = {"by": "time", "train": {"until": 4}, "week_2": {"from": 4, "until": 6}, "holdout": {"from": 6}}
    splits = built(rows, time={"column": "t"}, split=split, features=X)
    assert splits.num_rows == {"train": 4, "week_2": 2, "holdout": 4}
    with pytest.raises(KeyError, match=r"has no split 'holdot'\. Did you mean 'holdout'\?"):
        splits["holdot"]


def test_a_gap_that_is_required(built: Any) -> None:
    rows = [{"x": 1, "click": 1, "conv": 2}]
    split = {"by": "time", "train": {"until": 100}, "test": {"from": 110}, "require_gap": True}
    options = {"time": {"column": "click"}, "features": X, "labels": {"bought": attribution()}}
    with pytest.raises(SpecError, match="gap"):
        built(rows, split=split, **options)
    assert built(rows, split={**split, "test": {"from": 130}}, **options).num_rows == {"train": 1, "test": 0}
