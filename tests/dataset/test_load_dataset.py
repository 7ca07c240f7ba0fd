"""``load_dataset("text")``: against Hugging Face ``datasets``, and what it refuses."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.dataset.split_names import parts_of_split
from headrace.errors import SourceError
from headrace.sources.files import find_files
from headrace.sources.texts import TextFormat, read_texts

WAYS = ("line", "paragraph", "document")
CONTENTS = (
    b"a\n\nb \r\nc\n\n\n\nd\x0be\xc2\x85f",
    b"\xef\xbb\xbfwith a mark\n",
    b"\n\nx\ry\r\n\r\nz\n",
    "Größe 鲸\n\n 🐋 \n".encode(),
    b"\n",
)


def texts(dataset: Any) -> list[str]:
    return list(dataset["text"][:])


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    cache = str(tmp_path_factory.mktemp("cache"))

    def load(**how: Any) -> Any:
        return datasets.load_dataset("text", cache_dir=cache, **how)

    return load


@pytest.mark.parametrize("sample_by", WAYS)
def test_rows_are_those_of_hugging_face(tmp_path: Path, theirs: Callable[..., Any], sample_by: str) -> None:
    names = []
    for number, content in enumerate(CONTENTS):
        names.append(str(tmp_path / f"{number}.txt"))
        Path(names[-1]).write_bytes(content)
    how: dict[str, Any] = {"data_files": [*names[::-1]], "sample_by": sample_by}
    right = theirs(split="train", **how)
    ours = hr.load_dataset("text", split="train", **how)
    assert isinstance(ours, hr.Dataset)
    assert texts(ours) == texts(right)
    assert ours.schema == pa.schema({"text": pa.string()})
    kept = {"data_files": names, "sample_by": sample_by, "keep_linebreaks": True, "encoding": "utf-8-sig"}
    assert texts(hr.load_dataset("text", split="train", **kept)) == texts(theirs(split="train", **kept))


SPLITS = (
    "train", "train[:3]", "train[2:]", "train[-2:]", "train[1:-1]", "train[:9999]", "train[5:2]", "train[:]",
    "train[:10%]", "train[33%:67%]", "train[-25%:]", "train[50%:]", "train+test", "test[:1]+train[:2]",
    "train[1:3]+test", "all",
)  # fmt: skip


def test_splits_are_those_of_hugging_face(tmp_path: Path, theirs: Callable[..., Any]) -> None:
    (tmp_path / "a.txt").write_text("".join(f"a{n}\n" for n in range(11)))
    (tmp_path / "b.txt").write_text("".join(f"b{n}\n" for n in range(4)))
    files = {"train": str(tmp_path / "a.txt"), "test": [str(tmp_path / "b.txt")]}
    whole = hr.load_dataset("text", data_files=files)
    assert isinstance(whole, hr.DatasetDict)
    assert whole.num_rows == {"train": 11, "test": 4} == theirs(data_files=files).num_rows
    assert texts(whole["test"]) == ["b0", "b1", "b2", "b3"]
    assert repr(whole) == "DatasetDict(text, train: 11, test: 4)"
    for split in SPLITS:
        right = texts(theirs(data_files=files, split=split))
        assert texts(hr.load_dataset("text", data_files=files, split=split)) == right, split
    one, other = hr.load_dataset("text", data_files=files, split=["train[:1]", "test"])
    assert (texts(one), texts(other)) == (["a0"], ["b0", "b1", "b2", "b3"])


def test_globs_and_compressed_files(tmp_path: Path) -> None:
    packed: dict[str, bytes] = {
        "a.txt": b"plain",
        "b.txt.gz": gzip.compress(b"gzip"),
        "c.txt.zst": zstandard.compress(b"zstd"),
        "d.txt.bz2": bz2.compress(b"bzip2"),
        "e.txt.xz": lzma.compress(b"xz"),
    }
    for name, content in packed.items():
        (tmp_path / name).write_bytes(content)
    right = ["plain", "gzip", "zstd", "bzip2", "xz"]
    for files in (
        str(tmp_path / "*.txt*"),
        tmp_path / "[a-e]*",
        [str(tmp_path / "a.txt"), str(tmp_path / "[b-e]*")],
    ):
        assert texts(hr.load_dataset("text", data_files=files, split="train")) == right
    documents = hr.load_dataset("text", data_files=tmp_path / "*", split="train", sample_by="document")
    assert texts(documents) == right


def test_no_text_is_no_rows(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    for sample_by, rows in (("line", []), ("paragraph", []), ("document", [""])):
        dataset = hr.load_dataset(
            "text",
            data_files=tmp_path / "empty.txt",
            split="train",
            sample_by=sample_by,  # type: ignore[arg-type]
        )
        assert isinstance(dataset, hr.Dataset)
        assert texts(dataset) == rows
        assert dataset.column_names == ["text"]


@given(
    st.lists(st.sampled_from(["a", "鲸", "🐋", "\n", "\r", "\r\n", "\n\n", " "]), max_size=40),
    st.integers(1, 7),
    st.sampled_from(["utf-8", "utf-16", "utf-32-le"]),
)
@settings(max_examples=80, deadline=None)
def test_where_pieces_are_cut_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], size: int, encoding: str
) -> None:
    path = tmp_path_factory.mktemp("pieces") / "x.txt"
    content = "".join(parts).encode(encoding)
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "headrace.sources.texts.decompressed",
            lambda _: iter([content[n : n + size] for n in range(0, len(content), size)]),
        )
        (file,) = find_files(str(path))
        found = {by: [t for some in read_texts(file, TextFormat(by, encoding)) for t in some] for by in WAYS}
    with path.open(encoding=encoding) as opened:
        whole = opened.read()
    lines = whole.split("\n")
    assert found["line"] == (lines[:-1] if lines[-1] == "" else lines)
    assert found["paragraph"] == [part for part in whole.split("\n\n") if part]
    assert found["document"] == [whole]


def test_bytes_of_another_encoding_are_named_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes(b"a" * 700_000 + b"\xe9t\xe9\n")
    with pytest.raises(SourceError, match=r"latin\.txt: not utf-8 \(byte 700000 is 0xe9"):
        hr.load_dataset("text", data_files=path)
    (tmp_path / "cut.txt").write_bytes("鲸".encode()[:2])
    with pytest.raises(SourceError, match="byte 0 is 0xe9: unexpected end of data"):
        hr.load_dataset("text", data_files=tmp_path / "cut.txt")
    latin = hr.load_dataset("text", data_files=path, split="train", encoding="latin-1")
    assert texts(latin)[0].endswith("été")
    replaced = hr.load_dataset("text", data_files=path, split="train", encoding_errors="replace")
    assert texts(replaced)[0].endswith("�t�")


def test_text_that_does_not_say_its_byte_order_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes("a\n".encode("utf-16-le"))
    for encoding in ("utf-16", "utf-32"):
        with pytest.raises(SourceError, match=r"x\.txt: .*Give its true encoding="):
            hr.load_dataset("text", data_files=tmp_path / "x.txt", encoding=encoding)
    assert texts(
        hr.load_dataset("text", data_files=tmp_path / "x.txt", split="all", encoding="utf-16-le")
    ) == ["a"]


def test_a_text_that_no_row_can_hold_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.txt").write_text("x\n")

    def too_much(*_: Any) -> None:
        raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes")

    monkeypatch.setattr(pa, "array", too_much)
    with pytest.raises(SourceError, match=r"x\.txt: a document of 2 GiB or more.*sample_by='line'"):
        hr.load_dataset("text", data_files=tmp_path / "x.txt", sample_by="document")


def test_what_no_column_can_hold_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"a\xff\n")
    with pytest.raises(SourceError, match=r"x\.txt: decoded to a lone surrogate \(U\+DCFF\)"):
        hr.load_dataset("text", data_files=tmp_path / "x.txt", encoding_errors="surrogateescape")


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(b"long enough " * 99)[:-20])
    with pytest.raises(SourceError, match=r"x\.txt\.gz: the gzip stream breaks off"):
        hr.load_dataset("text", data_files=tmp_path / "x.txt.gz")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "txt"}, "no such builder, only 'text', .* Did you mean 'text'"),
        ({"path": "squad"}, "nothing is fetched from a hub"),
        ({"path": "csv"}, r"there is 'text'\. Use Dataset\.from_arrow"),
        ({"data_files": None}, "data_files='folder"),
        ({"data_files": []}, "data_files='folder"),
        ({"data_files": "nowhere/*.txt"}, "data_files: the glob 'nowhere"),
        ({"data_files": "nowhere.txt"}, "data_files: there is no file"),
        ({"split": "tain"}, "there is no split 'tain', only train. Did you mean 'train'"),
        ({"split": "train[:5%:2]"}, "expected a name such as 'train'"),
        ({"split": "train[5%:7]"}, "both borders are rows"),
        ({"split": "train[:101%]"}, "both borders are rows"),
        ({"split": ""}, "expected a name such as 'train'"),
        ({"sample_by": "lines"}, "Did you mean 'line'"),
        ({"encoding": "utf-99"}, "unknown encoding"),
        ({"encoding": "hex"}, "not a text encoding"),
        ({"encoding": None}, "encoding=None"),
        ({"encoding": 5}, "encoding=5"),
        ({"encoding_errors": "shrug"}, "shrug"),
        ({"encoding_errors": "xmlcharrefreplace"}, "don't know how to handle"),
        ({"encoding_errors": 5}, "encoding_errors=5"),
        ({"path": None}, r"load_dataset\(None\): expected the name of a builder, 'text'"),
        ({"path": ["text"]}, "expected the name of a builder, 'text'"),
        ({"split": 5}, "split=5: expected a name such as 'train'"),
        ({"split": True}, "split=True: expected a name such as 'train'"),
        ({"split": b"train"}, "split=b'train': expected a name such as 'train'"),
        ({"split": ["train", 5]}, r"split=\['train', 5\]: expected a name such as 'train'"),
        ({"data_files": 5}, "data_files: found 5, expected a path, a glob"),
        ({"data_files": b"x.txt"}, "data_files: found b'x.txt', expected a path, a glob"),
        ({"data_files": [None]}, r"data_files: found \[None\], expected a path, a glob"),
        ({"data_files": {"train": None}}, "data_files: found None, expected a path, a glob"),
        ({"data_files": {"train": {"a": "x.txt"}, "test": 5}}, "data_files: there is no file 'a'"),
        ({"streaming": True}, "streaming=True.*tokenize reads files of any size"),
        ({"data_dir": "books"}, r"data_files='folder/\*\*"),
        ({"name": "plain"}, "name='plain'"),
        ({"num_proc": 4}, r"num_proc=4\): not supported"),
        ({"sampleby": "line"}, "Did you mean 'sample_by'"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    (tmp_path / "x.txt").write_text("x\n")
    with pytest.raises(SourceError, match=message):
        hr.load_dataset(**{"path": "text", "data_files": tmp_path / "x.txt", **arguments})


def test_arguments_that_ask_for_nothing_are_taken(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("x\n")
    nothing = {"streaming": False, "cache_dir": None, "num_proc": None, "features": None}
    assert texts(hr.load_dataset("text", data_files=tmp_path / "x.txt", split="train", **nothing)) == ["x"]


def test_a_part_in_words() -> None:
    (part,) = parts_of_split("train[10%:]", ["train"])
    assert part.rows(200) == range(20, 200)
    assert parts_of_split("all", ["train", "test"]) == [*parts_of_split("train+test", ["train", "test"])]


def test_real_books_go_on_to_tokens(tmp_path: Path, shared_data: Path, theirs: Callable[..., Any]) -> None:
    from headrace.text import tokenize

    book = shared_data / "tinyshakespeare"
    files = sorted(str(path) for path in book.rglob("*.txt*"))[:1]
    if not files:
        pytest.skip("no book")
    right = theirs(data_files=files, split="train", sample_by="paragraph")
    ours = hr.load_dataset("text", data_files=files, split="train", sample_by="paragraph")
    assert texts(ours) == texts(right)
    rows = tokenize(ours, lambda text: list(text.encode()), tmp_path / "store", vocab_size=256)
    assert len(rows) == len(right)
