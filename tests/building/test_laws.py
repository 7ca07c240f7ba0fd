"""What a store's bytes depend on, and what they do not."""

from __future__ import annotations

import json
import random  # noqa: TID251 - makes rows for tests, decides nothing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.building import writing
from headrace.building.settings import Settings
from headrace.sources.quarantine import read_quarantine


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_change_no_byte(
    ads: hr.DatasetDict, ads_spec: Any, tmp_path: Path, store_bytes: Any, threads: int
) -> None:
    hr.build(ads_spec, out=tmp_path / "store", threads=threads)
    assert store_bytes(tmp_path / "store") == store_bytes(ads.folder)


@pytest.mark.parametrize(("part", "block"), [(20_000, 300), (60_000, 20_000), (1 << 30, 2_000)])
def test_sizes_of_parts_and_blocks_change_no_byte(
    ads: hr.DatasetDict,
    ads_spec: Any,
    tmp_path: Path,
    store_bytes: Any,
    monkeypatch: pytest.MonkeyPatch,
    part: int,
    block: int,
) -> None:
    monkeypatch.setattr(Settings, "part_bytes", property(lambda _: part))
    monkeypatch.setattr(Settings, "block_bytes", property(lambda _: block))
    hr.build(ads_spec, out=tmp_path / "store", threads=2)
    parts = list((tmp_path / "store" / ".build" / "parsed" / "rows").iterdir())
    assert part > 60_000 or len(parts) > 3
    assert store_bytes(tmp_path / "store") == store_bytes(ads.folder)


def test_memory_changes_no_byte(ads: hr.DatasetDict, ads_spec: Any, tmp_path: Path, store_bytes: Any) -> None:
    for memory in ("108MiB", "10GiB"):
        hr.build(ads_spec, out=tmp_path / memory, memory=memory, threads=3)
        assert store_bytes(tmp_path / memory) == store_bytes(ads.folder)
    with pytest.warns(UserWarning, match="memory is 64MiB"):
        hr.build(ads_spec, out=tmp_path / "store", memory="64MiB", threads=3)
    assert store_bytes(tmp_path / "store") == store_bytes(ads.folder)


def test_many_small_shards_hold_the_same_rows(
    ads: hr.DatasetDict, ads_spec: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collect_batches: Any
) -> None:
    monkeypatch.setattr(writing, "MAXIMUM_BYTES", 4_000)
    small = hr.build(ads_spec, out=tmp_path / "store", threads=2)
    assert len(small.manifest.splits["train"]) > 5
    for split in ads:
        assert small[split].to_arrow().to_pylist() == ads[split].to_arrow().to_pylist()
        one, many = collect_batches(ads[split]), collect_batches(small[split])
        assert one.keys() == many.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], many[name], err_msg=name)


def test_the_order_of_rows_changes_no_vocabulary(
    ads: hr.DatasetDict, ads_spec: Any, ads_file: Path, tmp_path: Path
) -> None:
    lines = ads_file.read_text().splitlines(keepends=True)
    for seed in range(2):
        mixed = tmp_path / f"mixed{seed}.jsonl"
        mixed.write_text("".join(random.Random(seed).sample(lines, len(lines))))
        other = hr.build(
            {**ads_spec, "source": {**ads_spec["source"], "files": str(mixed)}}, out=tmp_path / f"s{seed}"
        )
        for name in ads.vocabularies:
            path = f"vocabularies/{name}.arrow"
            assert (other.folder / path).read_bytes() == (ads.folder / path).read_bytes()
        assert other.fitted.classes == ads.fitted.classes
        for name, one in ads.fitted.statistics.items():
            assert other.fitted.statistics[name].boundaries == one.boundaries
            assert other.fitted.statistics[name].mean == pytest.approx(one.mean, rel=1e-15)


def test_the_cut_into_files_changes_no_vocabulary_and_no_row(
    ads: hr.DatasetDict, ads_spec: Any, ads_file: Path, tmp_path: Path
) -> None:
    lines = ads_file.read_text().splitlines(keepends=True)
    folder = tmp_path / "cut"
    folder.mkdir()
    for number, start in enumerate(range(0, len(lines), 150)):
        (folder / f"{number}.jsonl").write_text("".join(lines[start : start + 150]))
    cut = hr.build(
        {**ads_spec, "source": {**ads_spec["source"], "files": str(folder / "*.jsonl")}}, out=tmp_path / "s"
    )
    assert cut.accounting == ads.accounting
    for split in ads:
        assert (cut.folder / split / "00000.arrow").read_bytes() == (
            ads.folder / split / "00000.arrow"
        ).read_bytes()


def test_toml_dict_and_python_give_the_same_bytes(
    ads: hr.DatasetDict, ads_spec: Any, tmp_path: Path, store_bytes: Any
) -> None:
    spec = hr.Spec.from_dict(ads_spec)
    hr.build(spec, out=tmp_path / "python")
    (tmp_path / "ads.toml").write_text(as_toml(ads_spec))
    hr.build(tmp_path / "ads.toml", out=tmp_path / "toml")
    assert hr.Spec.load(tmp_path / "ads.toml").fingerprint == spec.fingerprint
    assert store_bytes(tmp_path / "python") == store_bytes(ads.folder) == store_bytes(tmp_path / "toml")


def as_toml(value: Any, path: str = "") -> str:
    """Nested dicts as TOML tables; the other values are written as JSON, which TOML reads alike."""
    plain = [f"{key} = {json.dumps(one)}" for key, one in value.items() if not isinstance(one, dict)]
    tables = [
        f"[{path}{key}]\n{as_toml(one, f'{path}{key}.')}"
        for key, one in value.items()
        if isinstance(one, dict)
    ]
    return "\n".join([*plain, *tables]) + "\n"


def test_every_row_is_accounted_for(ads: hr.DatasetDict, ads_file: Path, ads_spec: Any) -> None:
    rows = [json.loads(line) for line in ads_file.read_text().splitlines()]
    accounting = ads.accounting
    assert accounting["read"] == len(rows)
    bad = [row for row in rows if is_bad(row)]
    quarantined = [q for path in (ads.folder / "quarantine").iterdir() for q in read_quarantine(path)]
    assert accounting["quarantined"] == len(quarantined) == len(bad) > 0
    assert [json.loads(one.raw)["request"] for one in quarantined] == [row["request"] for row in bad]
    bounds = ads_spec["split"]
    left = [row for row in rows if not is_bad(row)]
    expected: dict[str, list[str]] = {}
    dropped = outside = 0
    for row in left:
        split = split_of(row["ts"], bounds)
        end = bounds[split].get("until", log_end(rows)) if split else 0
        if split is None:
            outside += 1
        elif row["ts"] + 300 > end:
            dropped += 1
        else:
            expected.setdefault(split, []).append(row["request"])
    assert accounting["outside"] == outside > 0
    assert accounting["dropped"] == dropped > 0
    assert accounting["written"] == {split: len(names) for split, names in expected.items()}
    for split, names in expected.items():
        assert ads[split].ids(np.arange(len(names))) == names


def is_bad(row: dict[str, Any]) -> bool:
    if row["ts"] == "?" or row.get("price") == "a lot" or row["w"] is None or row["image"] == [1]:
        return True
    times, elements = row["history_ts"] or [], row["history"] or []
    return len(times) != len(elements) or any(time >= row["ts"] for time in times)


def log_end(rows: list[dict[str, Any]]) -> int:
    times = [row[name] for row in rows for name in ("ts", "conv_ts")]
    return max(time for time in times if isinstance(time, int))


def split_of(ts: int, bounds: Any) -> str | None:
    for split in ("train", "valid", "test"):
        if bounds[split].get("from", ts) <= ts < bounds[split].get("until", ts + 1):
            return split
    return None


def test_train_alone_decides_what_is_fitted(
    ads: hr.DatasetDict, ads_spec: Any, ads_file: Path, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in ads_file.read_text().splitlines()]
    edge = ads_spec["split"]["train"]["until"]
    for row in rows:
        if isinstance(row["ts"], int) and row["ts"] >= edge:
            row.update(user="stranger", creative="stranger", price=1e9, tags=["stranger"], rating="stranger")
    changed = tmp_path / "changed.jsonl"
    changed.write_text("".join(json.dumps(row) + "\n" for row in rows))
    other = hr.build(
        {**ads_spec, "source": {**ads_spec["source"], "files": str(changed)}}, out=tmp_path / "s"
    )
    for folder in ("vocabularies", "train"):
        for path in (ads.folder / folder).iterdir():
            assert (other.folder / folder / path.name).read_bytes() == path.read_bytes()
    assert (other.folder / "statistics.arrow").read_bytes() == (ads.folder / "statistics.arrow").read_bytes()
    unknown = other["test"].to_arrow()["user"].to_pylist()
    assert set(unknown) == {1}


@pytest.mark.parametrize("as_arrow", [False, True])
def test_the_encoder_gives_the_bits_of_the_loader(
    ads: hr.DatasetDict, ads_file: Path, as_arrow: bool, collect_batches: Any
) -> None:
    rows = {json.loads(line)["request"]: json.loads(line) for line in ads_file.read_text().splitlines()}
    encoder = hr.Encoder(ads.folder)
    for split in ads:
        names = ads[split].ids(range(len(ads[split])))
        batch = next(iter(ads[split].loader(batch_size=len(names), output="numpy")))
        chosen = [rows[name] for name in names]
        if as_arrow:
            # Arrow has one type for a column: the mixed ones of JSON become text, as ids are.
            for row in chosen:
                row["creative"] = None if row.get("creative") is None else str(row["creative"])
                row["price"] = None if row.get("price") is None else str(row["price"])
                row["history"] = (
                    None
                    if row["history"] is None
                    else [None if e is None else str(e) for e in row["history"]]
                )
                row["click"] = None if row["click"] is None else int(row["click"])
                row["interest"] = None if row["interest"] is None else list(row["interest"].items())
            pairs = pa.map_(pa.string(), pa.float64())
            table = pa.Table.from_pylist([{k: v for k, v in r.items() if k != "interest"} for r in chosen])
            given: Any = table.append_column("interest", pa.array([r["interest"] for r in chosen], pairs))
        else:
            given = chosen
        whole = encoder.encode(given)
        assert set(whole) <= set(batch)
        for name in whole:
            np.testing.assert_array_equal(whole[name], batch[name], err_msg=name)
            assert whole[name].dtype == batch[name].dtype
        for place in range(0, len(names), 29):
            one = encoder.encode(given.slice(place, 1) if as_arrow else given[place : place + 1])
            for name in set(whole) - {"sample_id"}:
                np.testing.assert_array_equal(one[name][0], batch[name][place], err_msg=name)


def test_encoding_the_file_of_a_store_gives_its_rows(
    ads: hr.DatasetDict, ads_file: Path, tmp_path: Path
) -> None:
    new = hr.encode(ads.folder, ads_file, out=tmp_path / "new", threads=2)
    by_name = {row["__id__"]: row for row in new}
    names = [name for name in new.column_names if not name.startswith(("convert", "sale"))]
    for split in ads:
        for row in ads[split]:
            other = by_name[row["__id__"]]
            assert {name: row[name] for name in names} == {name: other[name] for name in names}
    unlabelled = hr.encode(ads.folder, ads_file, out=tmp_path / "bare", labels=False)
    assert set(unlabelled.column_names) == {*ads.features, "interest_weights", "__id__", "__time__"}


def test_decoding_gives_back_what_was_encoded(ads: hr.DatasetDict, ads_file: Path) -> None:
    rows = {json.loads(line)["request"]: json.loads(line) for line in ads_file.read_text().splitlines()}
    vocabulary = ads.vocabularies["creative"]
    seen = set()
    for split in ads:
        for row in ads[split]:
            raw = rows[row["__id__"]].get("creative")
            if raw is None:
                assert row["creative"] is None
                continue
            text = vocabulary.decode([row["creative"]])[0]
            assert text == str(raw) or (text.startswith("<bucket ") and str(raw) not in vocabulary)
            seen.add(text)
    assert {"7", "007", "", "ü", "18446744073709551615"} <= seen
    assert [vocabulary[token] for token in vocabulary.values.to_pylist()] == list(
        range(3, 3 + len(vocabulary.values))
    )


ROWS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "a": st.none() | st.sampled_from(["x", "y", "z", "0", "", "é"]) | st.integers(0, 3),
            "h": st.none() | st.lists(st.none() | st.sampled_from(["x", "y", "q"]), max_size=4),
            "n": st.none() | st.integers(-3, 9) | st.sampled_from(["2.5", "bad"]),
            "t": st.integers(0, 20),
            "y": st.none() | st.sampled_from([0, 1]),
        },
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_small_logs_of_any_content(
    rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    keys = {"a": None, "h": None, "n": None, "t": None, "y": None}
    rows = [*rows, keys]  # a key that is in no row at all is a missing column, which is an error
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "name": "any",
        "source": {"files": str(folder / "log.jsonl"), "max_bad_fraction": 1.0},
        "time": {"column": "t"},
        "split": {"by": "time", "train": {"until": 12}, "test": {"from": 15}},
        "vocabularies": {"v": {"min_count": 2}},
        "features": {
            "a": {"kind": "categorical", "vocabulary": "v"},
            "h": {"kind": "sequence", "vocabulary": "v", "max_length": 2},
            "s": {"kind": "set", "column": "h", "max_length": 2},
            "n": {"kind": "numeric"},
        },
        "labels": {"y": {"kind": "binary"}},
    }
    splits = hr.build(spec, out=folder / "store", threads=2)
    good = [row for row in rows if row.get("n") != "bad" and row.get("t") is not None]
    train = [row for row in good if row["t"] < 12]
    test = [row for row in good if row["t"] >= 15]
    assert splits.accounting == {
        "read": len(rows),
        "written": {"train": len(train), "test": len(test)},
        "quarantined": len(rows) - len(good),
        "outside": len(good) - len(train) - len(test),
        "dropped": 0,
    }
    elements = [row["a"] for row in train if row.get("a") is not None]
    elements += [e for row in train for e in row.get("h") or [] if e is not None]
    counts: dict[str, int] = {}
    for element in elements:
        counts[str(element)] = counts.get(str(element), 0) + 1
    kept = sorted((v for v, c in counts.items() if c >= 2), key=lambda v: (-counts[v], v.encode()))
    ids = {value: 3 + place for place, value in enumerate(kept)}

    def encoded(value: Any) -> int:
        return 2 if value is None else ids.get(str(value), 1)

    for split, part in (("train", train), ("test", test)):
        table = splits[split].to_arrow()
        assert table["a"].to_pylist() == [None if r.get("a") is None else encoded(r["a"]) for r in part]
        assert table["h"].to_pylist() == [
            None if r.get("h") is None else [encoded(e) for e in r["h"]][-2:] for r in part
        ]
        assert table["n"].to_pylist() == [None if r.get("n") is None else float(r["n"]) for r in part]
        assert table["y"].to_pylist() == [r.get("y") for r in part]
