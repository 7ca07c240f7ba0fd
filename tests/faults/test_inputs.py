"""Inputs that vanish, change, are many, large or empty; folders and stores that are not as they should be."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import BuildError, HeadraceError, SourceError, StoreError

PLAIN = {"features": {"word": {"kind": "categorical"}, "number": {"kind": "numeric"}}}


def plain(files: str, kind: str = "csv", **declared: Any) -> dict[str, Any]:
    return {"name": "plain", "source": {"format": kind, "files": files}, **PLAIN, **declared}


def log_lines(count: int) -> str:
    return "".join(json.dumps({"word": f"w{n % 7}", "number": n}) + "\n" for n in range(count))


# -- inputs that do not stay ------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["parsing rows"])
@pytest.mark.parametrize("how", ["vanish", "grow", "same size"])
def test_an_input_that_does_not_stay_as_it_is(
    make_job: Any, tmp_path: Path, stage: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found while the build reads; the next run, over what is there then, is a whole store."""
    job = make_job(tmp_path / "job", rows=80, files=4)
    last = job.files[-1]
    content = last.read_text()

    def progress(at: str, share: float) -> None:
        if at == stage and last.exists() and last.read_text() == content:
            if how == "vanish":
                last.unlink()
            else:
                last.write_text(content * 2 if how == "grow" else content.replace("item", "mite"))

    from headrace.building.settings import Settings

    monkeypatch.setattr(Settings, "part_bytes", property(lambda _: 2_000))
    monkeypatch.setattr(Settings, "block_bytes", property(lambda _: 1_000))
    spec = json.loads(job.spec.read_text())
    with pytest.raises(SourceError, match=r"log3\.jsonl"):
        hr.build(spec, out=tmp_path / "store", threads=1, progress=progress)
    with pytest.raises(StoreError):
        hr.load_from_disk(tmp_path / "store")
    last.write_text(content)
    hr.build(spec, out=tmp_path / "store", threads=1)
    hr.build(spec, out=tmp_path / "fresh", threads=1)
    assert hr.verify(tmp_path / "store") == []
    for split in ("train", "valid", "test"):
        one, other = (hr.load_from_disk(tmp_path / name)[split] for name in ("store", "fresh"))
        assert one.to_arrow().equals(other.to_arrow())


# -- places for the store ---------------------------------------------------------------------------------


def test_the_output_is_a_file(headrace: Any, job: Any, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")
    done = headrace("build", job.toml, "--out", tmp_path / "store")
    assert done.code == 1
    assert done.err.startswith(f"error: {tmp_path / 'store'} is a file. Choose a folder for --out.")
    below = headrace("build", job.toml, "--out", tmp_path / "store" / "below")
    assert (below.code, below.err[:7]) == (1, "error: ")
    assert (tmp_path / "store").read_text() == "a file"


def test_the_output_lies_in_the_folder_of_the_inputs(tmp_path: Path) -> None:
    """A glob over everything must not read the store's own files in the next run."""
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "a.jsonl").write_text(log_lines(20))
    spec = plain(str(raw / "*"), "jsonl")
    hr.build(spec, out=raw / "store")
    assert hr.why_stale(spec, raw / "store") == []
    assert hr.load_from_disk(raw / "store").accounting["read"] == 20
    deep = plain(str(raw / "**" / "*.jsonl"), "jsonl")
    hr.build(deep, out=raw / "other")
    assert hr.why_stale(deep, raw / "other") == []


def test_the_output_is_the_folder_of_the_inputs(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(log_lines(20))
    with pytest.raises(BuildError, match="is not empty and holds no store"):
        hr.build(plain(str(tmp_path / "*.jsonl"), "jsonl"), out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


# -- stores that are not as they should be ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("train/00001.arrow", r"train/00001\.arrow: the shard is missing\. Build the store again"),
        ("vocabularies/user.arrow", r"vocabularies/user\.arrow: the vocabulary is missing"),
        ("vocabularies/user.index.arrow", r"user\.index\.arrow: the vocabulary is missing"),
        ("statistics.arrow", r"statistics\.arrow: the shard is missing"),
        ("tables/items/rows.arrow", r"tables/items: the joined table cannot be read"),
    ],
)
def test_a_file_of_the_store_is_missing(store: Path, tmp_path: Path, name: str, message: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    (copy / name).unlink()
    with pytest.raises(StoreError, match=message):
        (hr.load_from_disk(copy)["train"], hr.Encoder(copy))
    assert hr.verify(copy) == [f"{name}: cannot be read (No such file or directory)"]


def test_a_store_of_a_later_headrace(store: Path, job: Any, headrace: Any, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    path = copy / "headrace.json"
    newer = json.loads(path.read_text()) | {"format_version": 99, "splits": "unheard of"}
    path.write_text(json.dumps(newer))
    for command in (
        ["verify", copy],
        ["show", copy],
        ["encode", copy, job.files[0], "--out", tmp_path / "n"],
    ):
        done = headrace(*command)
        assert done.code == 1
        assert "format version 99, this headrace reads" in done.err
        assert "install the headrace that wrote it" in done.err
    assert not (tmp_path / "n").exists()


# -- many, large, empty -----------------------------------------------------------------------------------


def test_two_thousand_small_files(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    for number in range(2_000):
        (raw / f"{number:04d}.csv").write_text(f"word,number\nw{number % 5},{number}\nw0,1\n")
    splits = hr.build(plain(str(raw / "*.csv")), out=tmp_path / "store")
    assert splits.accounting["read"] == splits.num_rows["train"] == 4_000
    assert splits["train"].ids([3_999]) == [f"{raw / '1999.csv'}:1"]
    vocabulary = splits.vocabularies["word"]
    assert vocabulary.counts[vocabulary["w0"]] == 2_400


def test_one_line_of_50_megabytes(tmp_path: Path) -> None:
    long = {"word": "x" * 50_000_000, "number": 1}
    (tmp_path / "a.jsonl").write_text(log_lines(3) + json.dumps(long) + "\n" + log_lines(3))
    splits = hr.build(plain(str(tmp_path / "a.jsonl"), "jsonl"), out=tmp_path / "store", memory="1GiB")
    assert splits.num_rows["train"] == 7
    (row,) = [row for row in splits["train"].to_list() if row["number"] == 1 and row["word"] not in (3, 4, 5)]
    assert splits.vocabularies["word"].decode([row["word"]]) == ["x" * 50_000_000]


def test_a_line_that_the_memory_does_not_hold(tmp_path: Path) -> None:
    long = {"word": "x" * 12_000_000, "number": 1}
    (tmp_path / "a.jsonl").write_text(log_lines(3) + json.dumps(long) + "\n" + log_lines(3))
    spec = plain(str(tmp_path / "a.jsonl"), "jsonl")
    with pytest.raises(SourceError, match=r"a\.jsonl:4 .* more than 11,184,810 bytes, .* give more memory"):
        hr.build(spec, out=tmp_path / "store", memory="128MiB")
    assert hr.build(spec, out=tmp_path / "store", memory="256MiB").num_rows["train"] == 7


def test_three_of_twenty_thousand_columns(tmp_path: Path) -> None:
    names = [f"c{n}" for n in range(20_000)]
    rows = [",".join(names), *(",".join(str((n + row) % 10) for n in range(20_000)) for row in range(20))]
    (tmp_path / "wide.csv").write_text("\n".join(rows) + "\n")
    features = {name: {"kind": "categorical"} for name in ("c0", "c9999", "c19999")}
    spec = plain(str(tmp_path / "wide.csv")) | {"features": features}
    train = hr.build(spec, out=tmp_path / "store")["train"]
    assert len(train) == 20
    vocabulary = hr.load_from_disk(tmp_path / "store").vocabularies["c9999"]
    assert vocabulary.decode(train["c9999"]) == [str((9_999 + row) % 10) for row in range(20)]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_empty_file_and_a_header_among_others(tmp_path: Path, kind: str) -> None:
    for number in range(4):
        csv = "word,number\n" + ("" if number == 2 else f"w{number},{number}\n")
        text = csv if kind == "csv" else log_lines(number % 2)
        (tmp_path / f"{number}.{kind}").write_text("" if number == 1 else text)
    splits = hr.build(plain(str(tmp_path / f"?.{kind}"), kind), out=tmp_path / "store")
    assert splits.num_rows["train"] == (2 if kind == "csv" else 1)


NOTHING = {"empty": "", "header": "word,number\n", "bad": "word,number\na,x\nb,y\n"}


@pytest.mark.parametrize("name", NOTHING)
@pytest.mark.parametrize("allowed", [0.001, 1.0])
def test_no_row_is_left(tmp_path: Path, name: str, allowed: float) -> None:
    """A store without rows, or an error with words; an epoch of it ends at once."""
    (tmp_path / "a.csv").write_text(NOTHING[name])
    spec = plain(str(tmp_path / "a.csv"))
    spec["source"]["max_bad_fraction"] = allowed
    if name == "bad" and allowed < 1:
        with pytest.raises(BuildError, match=r"2 of 2 rows are bad, max_bad_fraction = 0\.001 allows 0\."):
            hr.build(spec, out=tmp_path / "store")
        return
    splits = hr.build(spec, out=tmp_path / "store")
    assert splits.accounting["quarantined"] == (2 if name == "bad" else 0)
    assert list(splits["train"].loader(batch_size=4, output="numpy")) == []
    assert splits["train"].to_list() == []
    assert hr.verify(tmp_path / "store") == []
    (tmp_path / "b.csv").write_text("word,number\na,1\n")
    assert hr.encode(tmp_path / "store", tmp_path / "b.csv", out=tmp_path / "new")["word"] == [1]


def test_train_is_empty_and_so_is_a_split(make_job: Any, tmp_path: Path) -> None:
    """Every kind of feature, learned from nothing: unknown everywhere, and no division by zero."""
    job = make_job(tmp_path / "job", rows=40, files=1)
    spec = json.loads(job.spec.read_text())
    spec["split"] |= {"train": {"until": 0}, "valid": {"from": 0, "until": 9_000}, "test": {"from": 9_000}}
    splits = hr.build(spec, out=tmp_path / "store")
    assert (splits.num_rows["train"], splits.num_rows["test"]) == (0, 0)
    assert splits.num_rows["valid"] > 30
    for split in splits:
        for batch in splits[split].loader(batch_size=8, shuffle="global", seed=1, output="numpy"):
            assert set(batch["item"].tolist()) <= set(range(1, splits.embedding_sizes()["item"]))
            assert (batch["price"] == 0).all()


def test_no_file_is_left_in_a_split(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("word,number\na,1\n")
    spec = plain(str(tmp_path / "*.csv"))
    spec["split"] = {"by": "file", "train": ["*a.csv"], "valid": ["*b.csv"]}
    try:
        splits = hr.build(spec, out=tmp_path / "store")
    except HeadraceError as error:
        assert "valid" in str(error)  # noqa: PT017 - an error or a result
    else:
        assert splits.num_rows == {"train": 1, "valid": 0}
