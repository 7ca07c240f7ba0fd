"""Tokenizing: real tokenizers, splits, resume, appending, refusals."""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.dataset.dataset import Dataset
from headrace.dataset.splits import DatasetDict, load_from_disk, verify
from headrace.errors import SourceError, StoreError, TextError
from headrace.text import Tokens, Windows, tokenize
from headrace.text.tokenizer import as_tokenizer

TEXTS = ["abc", "", "hello world", "é€", "x" * 50, "abc"]


def letters(text: str) -> list[int]:
    return list(text.encode())


letters.vocab_size = 256  # type: ignore[attr-defined]
letters.eos_token_id = 0  # type: ignore[attr-defined]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_function_of_bytes(tmp_path: Path) -> None:
    dataset = tokenize(TEXTS, letters, tmp_path / "store")
    assert isinstance(dataset, Dataset)
    assert dataset["input_ids"] == [list(text.encode()) for text in TEXTS]
    assert dataset.schema.field("input_ids").type == pa.list_(pa.uint8())
    assert verify(tmp_path / "store") == []
    tokens = Tokens.open(tmp_path / "store")
    assert tokens.special.eos == 0
    assert tokens.details["documents"] == len(TEXTS)
    windows = Windows(tmp_path / "store", 4, pack="concat")
    assert windows.fingerprint == Windows(dataset, 4, pack="concat").fingerprint


@pytest.fixture(scope="session")
def sentencepiece_model(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    sentencepiece = pytest.importorskip("sentencepiece")
    lines = (shared_data / "timemachine" / "timemachine.txt").read_text().splitlines()
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=400, minloglevel=2, byte_fallback=True
    )
    path = tmp_path_factory.mktemp("model") / "small.model"
    path.write_bytes(model.getvalue())
    return path


def libraries_own_ids(kind: str, path: Path, text: str) -> list[int]:
    if kind == "tokenizers":
        tokenizers = pytest.importorskip("tokenizers")
        ids: list[int] = tokenizers.Tokenizer.from_file(str(path)).encode(text, add_special_tokens=False).ids
        return ids
    if kind == "sentencepiece":
        sentencepiece = pytest.importorskip("sentencepiece")
        return list(sentencepiece.SentencePieceProcessor(model_file=str(path)).encode(text))
    tiktoken = pytest.importorskip("tiktoken")
    pairs = [line.split() for line in path.read_bytes().splitlines()]
    mergeable = {base64.b64decode(token): int(rank) for token, rank in pairs}
    pattern = pytest.importorskip("tiktoken_ext.openai_public").r50k_pat_str
    own = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=mergeable, special_tokens={})
    return list(own.encode_ordinary(text))


MIXED = "Hello, it's 你好！ The time; <|endoftext|> naïve.\n\nNew  line"


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("tokenizers", "claude2/tokenizer.json"),
        ("tiktoken", "tiktoken/p50k_base.tiktoken"),
        ("sentencepiece", ""),
    ],
)
def test_ids_are_the_librarys_own(
    tmp_path: Path, shared_data: Path, sentencepiece_model: Path, kind: str, path: str
) -> None:
    file = shared_data / "tokenizers" / path if path else sentencepiece_model
    dataset = tokenize([MIXED, "", "b"], file, tmp_path / "store", sentences=True, words=True)
    ids = dataset[0]["input_ids"]
    assert ids == libraries_own_ids(kind, file, MIXED)
    tokenizer = as_tokenizer(file)
    starts = dataset[0]["sentence_starts"]
    assert starts[0] == 0
    pieces = [tokenizer.decode(ids[a:b]) for a, b in zip(starts, [*starts[1:], len(ids)], strict=True)]
    last = "New line" if kind == "sentencepiece" else "New  line"
    right = ["Hello, it's 你好!", "The time; <|endoftext|> naïve.", last]
    assert [piece.strip().replace("！", "!") for piece in pieces] == right
    words = np.flatnonzero(dataset[0]["word_starts"])
    assert tokenizer.decode(ids[words[-1] :]).strip() == "line"
    kept = as_tokenizer(next((tmp_path / "store" / "tokenizer").iterdir()))
    assert kept.digest == tokenizer.digest
    assert Tokens.open(tmp_path / "store").details["tokenizer"]["digest"] == tokenizer.digest


def test_gpt2_from_its_two_files_is_the_genuine_one(shared_data: Path) -> None:
    pytest.importorskip("tiktoken")
    tokenizer = as_tokenizer(shared_data / "tokenizers" / "gpt2")
    assert tokenizer.special.vocab_size == 50_257
    assert tokenizer.special.eos == 50_256
    assert tokenizer.encode(["Hello world!"], False).ids[0].tolist() == [15496, 995, 0]


def test_cl100k_needs_32_bits(tmp_path: Path, shared_data: Path) -> None:
    pytest.importorskip("tiktoken")
    file = shared_data / "tokenizers" / "tiktoken" / "cl100k_base.tiktoken"
    dataset = tokenize(["tiktoken is great!"], file, tmp_path / "store")
    assert dataset[0]["input_ids"] == [83, 1609, 5963, 374, 2294, 0]
    assert dataset.schema.field("input_ids").type.value_type == pa.uint32()


@pytest.mark.parametrize(("size", "dtype"), [(65_536, "uint16"), (65_537, "uint32"), (256, "uint8")])
def test_the_smallest_width_is_taken(tmp_path: Path, size: int, dtype: str) -> None:
    dataset = tokenize(["x"], lambda _: [0, size - 1], tmp_path / "store", vocab_size=size)
    assert dataset.schema.field("input_ids").type.value_type == pa.from_numpy_dtype(np.dtype(dtype))
    assert dataset[0]["input_ids"] == [0, size - 1]


@pytest.mark.parametrize("dtype", [np.uint32, np.dtype(np.uint32), "u4"])
def test_a_width_is_named_in_any_of_numpys_ways(tmp_path: Path, dtype: Any) -> None:
    first = tokenize(["x"], letters, tmp_path / "store", dtype="uint32")
    assert first.schema.field("input_ids").type.value_type == pa.uint32()
    again = tokenize(["y"], letters, tmp_path / "store", dtype=dtype, append=True)
    assert len(again) == 2


def test_an_id_that_does_not_fit_is_an_error_and_publishes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "store"
    with pytest.raises(TextError, match="id 65536 does not fit in dtype='uint16'"):
        tokenize(["a"], lambda _: [0, 65_536], out, vocab_size=65_537, dtype="uint16")
    with pytest.raises(TextError, match="document 1: id 7 at token 1 is outside the vocabulary of 7 ids"):
        tokenize(["a", "b"], lambda text: [1, 7] if text == "b" else [6], out, vocab_size=7)
    with pytest.raises(TextError, match="eos=256 is outside"):
        tokenize(["a"], letters, out, special={"eos": 256})
    with pytest.raises(TextError, match="Did you mean 'uint16'"):
        tokenize(["a"], letters, out, dtype="u16")
    with pytest.raises(TextError, match="there are 'eos', 'pad' and 'mask'"):
        tokenize(["a"], letters, out, special={"bos": 1})
    with pytest.raises(TextError, match="at least 0"):
        tokenize(["a"], letters, out, min_length=-1)
    with pytest.raises(TextError, match="together they are at most 1"):
        tokenize(["a"], letters, out, split={"valid": 0.7, "test": 0.7})
    with pytest.raises(TextError, match="cannot name a split"):
        tokenize(["a"], letters, out, split={"../valid": 0.7})
    with pytest.raises(TextError, match="failed on 'oops': ZeroDivisionError"):
        tokenize(["fine", "oops"], lambda text: [1 // (text != "oops")], out)
    with pytest.raises(TextError, match="expected a flat list of ids"):
        tokenize(["a"], lambda _: [[1]], out)
    with pytest.raises(TextError, match="id -1"):
        tokenize(["a"], lambda _: [-1], out)
    assert not list(out.glob("**/*.arrow"))
    with pytest.raises(StoreError, match="not a store"):
        load_from_disk(out)


def test_splits_go_by_content_wherever_a_document_stands(tmp_path: Path) -> None:
    texts = [f"document {n % 500}" for n in range(1000)]
    splits = tokenize(texts, letters, tmp_path / "a", split={"valid": 0.2, "test": 0.1})
    again = tokenize(texts[::-1], letters, tmp_path / "b", split={"valid": 0.2, "test": 0.1})
    assert isinstance(splits, DatasetDict)
    assert isinstance(again, DatasetDict)
    sets = {name: {bytes(ids) for ids in splits[name]["input_ids"]} for name in splits}
    assert (
        not (sets["train"] & sets["valid"]) | (sets["valid"] & sets["test"]) | (sets["train"] & sets["test"])
    )
    assert sum(splits.num_rows.values()) == 1000
    assert 60 < len(sets["valid"]) < 140
    assert {name: {bytes(ids) for ids in again[name]["input_ids"]} for name in again} == sets
    with pytest.raises(TextError, match="no split was named"):
        Windows(tmp_path / "a", 4)
    with pytest.raises(TextError, match="has the splits train, valid, test; take one"):
        Windows(splits, 4)
    assert len(Tokens.open(tmp_path / "a", "valid")) == splits.num_rows["valid"]


def test_shares_may_be_numpys_numbers(tmp_path: Path) -> None:
    for number, share in enumerate((np.float32(0.5), np.float64(0.5), np.int64(1))):
        splits = tokenize(TEXTS, letters, tmp_path / str(number), {"valid": share})
        assert sum(splits.num_rows.values()) == len(TEXTS)  # type: ignore[union-attr]


def test_a_tokenizer_that_was_moved_is_the_same(tmp_path: Path, shared_data: Path) -> None:
    pytest.importorskip("tokenizers")
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        whole = (shared_data / "tokenizers" / "claude2" / "tokenizer.json").read_bytes()
        (tmp_path / name / "tokenizer.json").write_bytes(whole)
        tokenize(["a text"], tmp_path / name, tmp_path / f"store {name}")
    one, other = (Tokens.open(tmp_path / f"store {name}") for name in ("here", "there"))
    assert one.fingerprint == other.fingerprint
    assert (one.details["tokenizer"]["name"], other.details["tokenizer"]["name"]) == ("here", "there")
    assert len(tokenize(["more"], tmp_path / "there", tmp_path / "store here", append=True)) == 2


def test_arrays_are_split_by_all_of_their_values(tmp_path: Path) -> None:
    """Where they are long NumPy writes the first and the last few."""
    arrays = [
        np.concatenate([np.zeros(3000, np.uint8), np.full(1, n, np.uint8), np.zeros(3000, np.uint8)])
        for n in range(60)
    ]

    def ids(values: Any) -> Any:
        return values

    splits = tokenize(arrays, ids, tmp_path / "store", {"valid": 0.5}, vocab_size=256)
    marks = {name: {max(row["input_ids"]) for row in split} for name, split in splits.items()}
    assert marks["train"] | marks["valid"] == set(range(60))
    assert min(map(len, marks.values())) > 10
    again = tokenize(arrays[::-1], ids, tmp_path / "again", {"valid": 0.5}, vocab_size=256)
    assert {name: {max(row["input_ids"]) for row in split} for name, split in again.items()} == marks


def test_splits_by_a_field_keep_its_values_together(tmp_path: Path) -> None:
    rows = [{"text": f"{n}", "site": f"site {n % 40}"} for n in range(400)]
    splits = tokenize(rows, letters, tmp_path / "store", split={"valid": 0.3}, split_by="site")
    assert isinstance(splits, DatasetDict)
    sites = {name: {int(bytes(ids)) % 40 for ids in splits[name]["input_ids"]} for name in splits}
    assert not sites["train"] & sites["valid"]
    with pytest.raises(TextError, match="Did you mean 'site'"):
        tokenize(rows, letters, tmp_path / "other", split={"valid": 0.3}, split_by="sites")


def test_short_documents_are_left_out_and_counted(tmp_path: Path) -> None:
    dataset = tokenize(TEXTS, letters, tmp_path / "store", min_length=4)
    assert len(dataset) == 3
    assert Tokens.open(tmp_path / "store").details["too_short"] == 3


def test_columns_of_a_function_travel_with_the_tokens(tmp_path: Path) -> None:
    def prompt(text: str) -> dict[str, Any]:
        ids = list(text.encode())
        return {"input_ids": ids, "label_mask": [n >= 2 for n in range(len(ids))]}

    dataset = tokenize(["abcd", "xyz"], prompt, tmp_path / "store", vocab_size=256)
    batch = Windows(dataset, 4, pad_id=0).at(0, 0).gather(np.arange(2), np.zeros(2, np.uint64))
    assert batch["labels"].tolist() == [[-100, ord("c"), ord("d"), -100], [-100, ord("z"), -100, -100]]
    with pytest.raises(TextError, match="'label_mask'"):
        tokenize(["ab"], lambda _: {"input_ids": [1], "label_mask": [1, 2]}, tmp_path / "other")


def test_files_rows_and_datasets_are_documents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\ufeffone\ntwo", encoding="utf-8")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"three"))
    (tmp_path / "c.jsonl").write_text('{"text": "four"}\n\n{"text": "five"}\n')
    pq.write_table(pa.table({"text": ["six"], "n": [1]}), tmp_path / "d.parquet")
    right = ["one\ntwo", "three", "four", "five", "six"]
    for number, docs in enumerate(
        (
            str(tmp_path / "[a-d].*"),
            sorted(tmp_path.glob("[a-d].*")),
            right,
            Dataset.from_dict({"text": right}),
        )
    ):
        dataset = tokenize(docs, letters, tmp_path / f"store{number}")
        assert [bytes(ids).decode() for ids in dataset["input_ids"]] == right


def test_datasets_of_ids_are_tokens(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    ids = [[1, 2, 3], [], [4, 5]]
    theirs = Windows(datasets.Dataset.from_dict({"input_ids": ids}), 2, pad_id=0)
    ours = Windows(Dataset.from_dict({"input_ids": ids}), 2, pad_id=0)
    plain = Windows(ids, 2, pad_id=0)
    batches = [w.at(0, 0).gather(np.arange(3), np.zeros(3, np.uint64)) for w in (theirs, ours, plain)]
    for batch in batches:
        assert batch["input_ids"].tolist() == [[1, 2], [3, 0], [4, 5]]
    some = tokenize(["abc", "de", "f"], letters, tmp_path / "store").select([2, 0])
    chosen = Windows(some, 2, pack="concat")
    assert chosen.tokens.special.eos == 0
    assert chosen.tokens.lengths.tolist() == [1, 3]
    with pytest.raises(TextError, match="Rename the one that holds them"):
        Windows(Dataset.from_dict({"input_id": ids}), 2)


def test_tables_and_splits_of_ids(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    ids = [[1, 2, 3], [], [4, 5]]
    assert Windows(pa.table({"input_ids": ids}), 2, pad_id=0).tokens.lengths.tolist() == [3, 0, 2]
    theirs = datasets.Dataset.from_dict({"input_ids": ids})
    with pytest.raises(TextError, match="DatasetDict has the splits train; take one of them"):
        Windows(datasets.DatasetDict({"train": theirs}), 2)
    with pytest.raises(TextError, match="IterableDataset is a stream"):
        Windows(theirs.to_iterable_dataset(), 2)


def test_names_are_not_taken_for_texts(tmp_path: Path) -> None:
    """Iterating over these gives names of splits and columns."""
    pandas = pytest.importorskip("pandas")
    store = tmp_path / "store"
    splits = tokenize(["a", "bc"], letters, tmp_path / "splits", split={"valid": 0.5})
    with pytest.raises(TextError, match="docs: DatasetDict holds train, valid by name"):
        tokenize(splits, letters, store)
    frame = pandas.DataFrame({"text": ["a", "bc"]})
    with pytest.raises(TextError, match=r"docs: DataFrame holds columns\. Give the one that holds the texts"):
        tokenize(frame, letters, store)
    assert tokenize(frame["text"], letters, store)["input_ids"] == [[97], [98, 99]]


def test_documents_that_end_with_the_end_token_get_no_second(tmp_path: Path) -> None:
    for texts, added in ((["a\0", "b\0"], 0), (["a\0", "b"], 1), (["a", "b"], 2)):
        store = tmp_path / str(added)
        tokenize(texts, letters, store)
        assert Windows(store, 8, pack="concat").streams.eos_added == added


def test_another_end_token_is_looked_for_anew(tmp_path: Path) -> None:
    tokenize(["ab", "cb", "d"], letters, tmp_path / "store")
    tokens = Tokens.open(tmp_path / "store").with_special(eos=ord("b"))
    for windows in (Windows(tokens, 9, pack="concat"), Windows(tmp_path / "store", 9, pack="concat", eos=98)):
        assert windows.streams.eos_added == 1
    assert Windows(tmp_path / "store", 9, pack="concat").streams.eos_added == 3


def test_sentences_of_a_text_with_halves_of_characters(tmp_path: Path) -> None:
    """Two surrogates that make a character are one character, and a lone one is one mark."""

    def characters(text: str) -> dict[str, Any]:
        return {"input_ids": [1] * len(text), "offsets": [(n, n + 1) for n in range(len(text))]}

    texts = ["\ud83d\ude00. Next one.", "a\ud800. Next one."]
    tokenize(texts, characters, tmp_path / "store", vocab_size=2, sentences=True, words=True)
    tokens = Tokens.open(tmp_path / "store")
    assert tokens.lengths.tolist() == [12, 13]
    starts = tokens.sentence_starts
    assert starts is not None
    assert starts.tolist() == [0, 3, 12, 16]


def test_hugging_face_datasets_are_documents(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    theirs = datasets.Dataset.from_dict({"text": ["a", "bc"]})
    formats = [theirs.with_format(name) for name in (None, "torch", "numpy", "arrow", "pandas")]
    for number, docs in enumerate([*formats, theirs.to_iterable_dataset(), theirs["text"]]):
        dataset = tokenize(docs, letters, tmp_path / str(number))
        assert dataset["input_ids"] == [[97], [98, 99]]


@pytest.mark.parametrize(
    ("docs", "message", "error"),
    [
        (["a", None], "document 1: found no text", TextError),
        ([b"a"], "bytes; decode them first", TextError),
        ([{"txt": "a"}], "has no field 'text', it has", TextError),
        (7, "int holds no documents", TextError),
        ({"text": ["a"]}, "dict holds text by name", TextError),
        ({}, "dict holds nothing by name", TextError),
        (b"abc", "docs: bytes is no text", TextError),
        (bytearray(b"abc"), "docs: bytearray is no text", TextError),
        (pa.array(["a", None]), "document 1: found no text", TextError),
        (pa.table({"text": ["a", None]}), "row 1: found no text", TextError),
        (pa.table({"txt": ["a"]}), "row 0: a row has no field 'text'", TextError),
        ("", "docs: there is no file ''", SourceError),
        ("nothing/*.txt", "nothing", SourceError),
    ],
)
def test_what_is_no_document_is_refused(
    tmp_path: Path, docs: Any, message: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match=message):
        tokenize(docs, letters, tmp_path / "store")


def test_files_that_are_no_text_are_refused_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"ok\xff")
    (tmp_path / "bad.jsonl").write_text('{"text": "a"}\n{"text": \n')
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b"long enough " * 99)[:-20])
    with pytest.raises(SourceError, match="byte 2 is 0xff"):
        tokenize(tmp_path / "bad.txt", letters, tmp_path / "store")
    with pytest.raises(SourceError, match=r"bad\.jsonl:2: not a line of JSON"):
        tokenize(tmp_path / "bad.jsonl", letters, tmp_path / "store")
    with pytest.raises(SourceError, match="breaks off"):
        tokenize(tmp_path / "cut.txt.gz", letters, tmp_path / "store")
    (tmp_path / "deep.jsonl").write_text('{"text": "a"}\n{"text": ' + "[" * 100_000 + "}\n")
    with pytest.raises(SourceError, match=r"deep\.jsonl:2: not a line of JSON"):
        tokenize(tmp_path / "deep.jsonl", letters, tmp_path / "store")


def test_any_flipped_byte_of_a_parquet_file_is_an_error_of_the_source_or_other_text(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"text": ["abc", "d"] * 20}), path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        with contextlib.suppress(SourceError, TextError):
            tokenize(path, letters, tmp_path / str(place))


def test_arrow_columns_tables_and_batches_are_documents(tmp_path: Path) -> None:
    table = pa.table({"text": ["a", "bc"], "site": ["x", "y"]})
    for number, docs in enumerate((table, table.to_batches()[0], table["text"], table["text"].chunk(0))):
        assert tokenize(docs, letters, tmp_path / str(number))["input_ids"] == [[97], [98, 99]]
    splits = tokenize(table, letters, tmp_path / "store", {"valid": 1.0}, split_by="site")
    assert len(splits["valid"]) == 2


def test_a_list_of_file_names_is_warned_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("content")
    with pytest.warns(UserWarning, match="'a.txt', and there is a file of that name"):
        tokenize(["a.txt"], letters, "names")
    assert tokenize([Path("a.txt")], letters, "content")["input_ids"] == [list(b"content")]
    assert len(tokenize(["b.txt", "a.txt", "a\0", "x" * 9000], letters, "texts")) == 4


@pytest.mark.parametrize("pieces", [1, 2, 5, 1000])
def test_lines_that_lie_in_many_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: int) -> None:
    content = "".join(json.dumps({"text": "ab" * n}) + "\n" * (1 + n % 3) for n in range(9)).encode()
    (tmp_path / "d.jsonl").write_bytes(content)
    cut = [content[n : n + pieces] for n in range(0, len(content), pieces)]
    monkeypatch.setattr("headrace.text.documents.decompressed", lambda file: iter(cut))
    found = tokenize(tmp_path / "d.jsonl", letters, tmp_path / "store")
    assert found["input_ids"] == [list(b"ab" * n) for n in range(9)]


def many() -> list[str]:
    return [f"{n}:" + "ab" * (n * 7 % 90) for n in range(400)]


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("stop", [1, 150, 399])
def test_an_interrupted_run_goes_on_and_gives_the_same_bytes(tmp_path: Path, stop: int) -> None:
    how: dict[str, Any] = {"split": {"valid": 0.1}, "shard_bytes": 2500, "min_length": 5}
    tokenize(many(), counting([]), tmp_path / "whole", **how)

    def interrupted() -> Iterator[str]:
        yield from many()[:stop]
        raise StoppedError

    calls: list[str] = []
    with pytest.raises(StoppedError):
        tokenize(interrupted(), counting(calls), tmp_path / "store", **how)
    with pytest.raises(StoreError):
        load_from_disk(tmp_path / "store")
    before = len(calls)
    tokenize(many(), counting(calls), tmp_path / "store", **how)
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")
    assert len(calls) - before <= 400


def counting(calls: list[str]) -> Callable[[str], list[int]]:
    class Counting:
        vocab_size = 256
        eos_token_id = 0
        fingerprint = "letters"
        __qualname__ = "letters"

        def __call__(self, text: str) -> list[int]:
            calls.append(text)
            return list(text.encode())

    return Counting()


def test_a_stream_is_read_a_few_batches_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What bounds the memory, with the shard that is being written: whatever the stream's length."""
    monkeypatch.setattr("headrace.text.tokenizing._BATCH_DOCUMENTS", 20)
    tokenized: list[str] = []
    ahead: list[int] = []

    def stream() -> Iterator[str]:
        for number, text in enumerate(many() * 4):
            ahead.append(number - len(tokenized))
            yield text

    tokenize(stream(), counting(tokenized), tmp_path / "store", shard_bytes=1500)
    assert len(tokenized) == len(ahead) == 4 * len(many())
    assert max(ahead) < 100


def test_finished_shards_are_not_tokenized_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.text.tokenizing._BATCH_DOCUMENTS", 20)
    calls: list[str] = []

    def interrupted() -> Iterator[str]:
        yield from many()[:300]
        raise StoppedError

    with pytest.raises(StoppedError):
        tokenize(interrupted(), counting(calls), tmp_path / "store", shard_bytes=1500)
    assert len(list((tmp_path / "store").glob("train/*.arrow"))) > 3
    calls.clear()
    tokenize(many(), counting(calls), tmp_path / "store", shard_bytes=1500)
    assert len(calls) < 250
    tokenize(many(), counting([]), tmp_path / "whole", shard_bytes=1500)
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")


def test_other_documents_or_arguments_do_not_go_on_with_an_interrupted_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.text.tokenizing._BATCH_DOCUMENTS", 20)

    def interrupted() -> Iterator[str]:
        yield from many()[:300]
        raise StoppedError

    with pytest.raises(StoppedError):
        tokenize(interrupted(), letters, tmp_path / "store", shard_bytes=1500)
    with pytest.raises(TextError, match="documents differ"):
        tokenize(many()[::-1], letters, tmp_path / "store", shard_bytes=1500)
    with pytest.raises(TextError, match="documents differ"):
        tokenize(many()[:3], letters, tmp_path / "store", shard_bytes=1500)
    with pytest.raises(TextError, match="other arguments"):
        tokenize(many(), letters, tmp_path / "store", shard_bytes=1501)


def test_documents_are_appended_as_new_shards(tmp_path: Path) -> None:
    store = tmp_path / "store"
    tokenize(TEXTS, letters, store, split={"valid": 0.5})
    first = contents(store)
    with pytest.raises(TextError, match="append=True"):
        tokenize(["more"], letters, store, split={"valid": 0.5})
    with pytest.raises(TextError, match="tokenizer: "):
        tokenize(["more"], lambda text: [1], store, split={"valid": 0.5}, append=True)
    splits = tokenize(["more", "and more", "z"], letters, store, split={"valid": 0.5}, append=True)
    assert isinstance(splits, DatasetDict)
    assert sum(splits.num_rows.values()) == len(TEXTS) + 3
    assert all(contents(store)[name] == bytes_ for name, bytes_ in first.items() if name.endswith(".arrow"))
    assert (
        json.loads((store / "headrace.json").read_text())["fingerprint"]
        != json.loads(first["headrace.json"])["fingerprint"]
    )
    assert sum(Tokens.open(store, split).details["documents"] for split in splits) == len(TEXTS) + 3
    assert verify(store) == []


def test_several_shards_are_one_stream(tmp_path: Path) -> None:
    tokenize(many(), letters, tmp_path / "one")
    tokenize(many(), letters, tmp_path / "several", shard_bytes=500)
    names = ("input_ids", "labels", "segment_ids", "document", "start")
    one, several = (
        Windows(tmp_path / name, 32, 20, pack="concat", outputs=names) for name in ("one", "several")
    )
    assert len(several.tokens.values) > 10
    left, right = (w.at(0, 0).gather(np.arange(len(w)), np.zeros(len(w), np.uint64)) for w in (one, several))
    for name in names:
        np.testing.assert_array_equal(left[name], right[name])


def test_a_packing_plan_is_made_once_and_kept_beside_the_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenize(many(), letters, tmp_path / "store")
    first = Windows(tmp_path / "store", 64, pack="best_fit")
    rows = len(first)
    assert len(list((tmp_path / "store" / "plans").iterdir())) == 1
    monkeypatch.setattr("headrace.text.packing.plan_packing", None)
    again = Windows(tmp_path / "store", 64, pack="best_fit")
    assert len(again) == rows
    batches = [w.at(0, 0).gather(np.arange(rows), np.zeros(rows, np.uint64)) for w in (first, again)]
    np.testing.assert_array_equal(batches[0]["input_ids"], batches[1]["input_ids"])


def test_no_documents_are_an_empty_store(tmp_path: Path) -> None:
    dataset = tokenize([], letters, tmp_path / "store", split={"valid": 0.5}, sentences=False)
    assert isinstance(dataset, DatasetDict)
    assert dataset.num_rows == {"train": 0, "valid": 0}
    assert len(Windows(Tokens.open(tmp_path / "store", "train"), 4)) == 0


def test_sentences_need_to_know_where_tokens_end(tmp_path: Path) -> None:
    with pytest.raises(TextError, match="input_ids and offsets"):
        tokenize(["a"], letters, tmp_path / "store", sentences=True)


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        ("gpt-2", "Did you mean 'gpt2'"),
        ("missing/tokenizer.json", "does not exist"),
        (7, "int is no tokenizer"),
    ],
)
def test_what_is_no_tokenizer_is_refused(tmp_path: Path, tokenizer: Any, message: str) -> None:
    pytest.importorskip("tiktoken")
    with pytest.raises(TextError, match=message):
        tokenize(["a"], tokenizer, tmp_path / "store")


def test_files_of_other_kinds_are_refused_by_name(tmp_path: Path) -> None:
    for name, library in (
        ("tokenizer.json", "tokenizers"),
        ("x.model", "sentencepiece"),
        ("gpt2.tiktoken", "tiktoken"),
    ):
        pytest.importorskip(library)
        (tmp_path / name).write_bytes(b"not one of mine")
        with pytest.raises(TextError, match=name.replace(".", r"\.")):
            tokenize(["a"], tmp_path / name, tmp_path / "store")


STOPS = """
import sys, time
from headrace.text import tokenize

def letters(text):
    while text.startswith("1500:"):
        time.sleep(3600)
    return list(text.encode())

letters.vocab_size, letters.fingerprint = 256, "stops"
texts = [f"{n}:" + "ab" * (n * 7 % 90) for n in range(3000)]
import headrace.text.tokenizing as module
module._BATCH_DOCUMENTS = 40
tokenize(texts, letters, sys.argv[1], threads=1, shard_bytes=4000)
"""


def test_a_killed_run_goes_on_and_gives_the_same_bytes(tmp_path: Path) -> None:
    running = subprocess.Popen([sys.executable, "-c", STOPS, str(tmp_path / "store")])
    try:
        deadline = time.monotonic() + 300
        while len(list(tmp_path.glob("store/train/*.arrow"))) < 3:
            assert running.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        running.kill()
        running.wait()
    assert not (tmp_path / "store" / "headrace.json").exists()

    def fast(text: str) -> list[int]:
        return list(text.encode())

    fast.vocab_size, fast.fingerprint, fast.__qualname__ = 256, "stops", "letters"  # type: ignore[attr-defined]
    texts = [f"{n}:" + "ab" * (n * 7 % 90) for n in range(3000)]
    tokenize(texts, fast, tmp_path / "store", shard_bytes=4000)
    tokenize(texts, fast, tmp_path / "whole", shard_bytes=4000)
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")


def test_a_terminal_sees_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    written.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv("TERM", "xterm")
    tokenize(TEXTS, letters, tmp_path / "store")
    assert "6 documents  72 tokens" in written.getvalue()
