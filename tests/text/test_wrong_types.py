"""Whatever is handed over by mistake: an error of ours that says where, never one from inside a library."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.dataset.dataset import Dataset
from headrace.dataset.splits import load_from_disk
from headrace.errors import TextError
from headrace.text import (
    MLM,
    DynamicStride,
    Tokens,
    Windows,
    clean,
    cu_seqlens,
    document_mask,
    from_bin,
    from_parquet,
    tokenize,
)
from headrace.text.rendering import render_windows


class Strange:
    """Its array is a failure."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("on another device")


NO_IDS = (
    None, 7, 1.5, True, "a text", b"bytes", [None], ["a"], [1.5], [[1]], [[1], [2, 3]], [[1, 2], [3, 4]],
    [1, None], [1, "a"], {1, 2}, [2**70], [True, False], object(), Strange(), np.zeros((2, 2)), np.array(3),
    (n for n in (1, 2)), lambda: [1],
)  # fmt: skip


@pytest.mark.parametrize("wrong", NO_IDS, ids=lambda value: type(value).__name__)
def test_what_a_tokenizer_gives_is_checked(tmp_path: Path, wrong: Any) -> None:
    ways: list[Callable[[Any], Any]] = [
        lambda _: wrong,
        lambda text: wrong if text == "second" else [1],
        lambda _: {"input_ids": wrong},
        lambda text: {"input_ids": wrong} if text == "second" else {"input_ids": [1]},
    ]
    for number, way in enumerate(ways):
        with pytest.raises(TextError, match=r"gave .* for '(first|second)', expected a flat list of ids"):
            tokenize(["first", "second"], way, tmp_path / str(number))
        assert not (tmp_path / str(number) / "headrace.json").exists()


def test_a_mapping_without_ids_or_with_other_columns_is_refused(tmp_path: Path) -> None:
    def columns(*given: dict[str, Any]) -> Callable[[str], Any]:
        return lambda text: given[int(text)]

    for given, message in (
        ([{"ids": [1]}], r"a mapping without 'input_ids', with \['ids'\]"),
        (
            [{"input_ids": [1], "w": [1]}, {"input_ids": [1]}],
            "document 1: .* gave the columns none, and before w",
        ),
        (
            [{"input_ids": [1]}, [1], {"input_ids": [1], "w": [1]}],
            r"document 2: .* gave the columns w \(int64\)",
        ),
        (
            [{"input_ids": [1], "w": [1]}, {"input_ids": [1], "w": [0.5]}],
            r"document 1: .* w \(float64\).*of one dtype",
        ),
        ([{"input_ids": [1], "w": [1, 2]}], "column 'w' is a list .* for the 1 tokens of '0'"),
        ([{"input_ids": [1], "w": None}], "column 'w' is None"),
        ([{"input_ids": [1], "w": [[1], [2, 3]]}], "column 'w' is a list that is no array"),
        ([{"input_ids": [1], "w": ["x"]}], "column 'w' is a list"),
        ([{"input_ids": [1], "labels": [1]}], "headrace makes an array of that name itself"),
        ([{"input_ids": [1], "attention_mask": [1]}], "headrace makes an array of that name itself"),
        ([{"input_ids": [1], "sentence_starts": [0]}], "headrace makes an array of that name itself"),
    ):
        texts = [str(n) for n in range(len(given))]
        with pytest.raises(TextError, match=message):
            tokenize(texts, columns(*given), tmp_path / "store")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 7, [1], [(0, 1, 2)], [("a", "b")], [(0, 1)] * 3, [(0, 2), (0, 1)]])
def test_offsets_are_checked(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(TextError, match=r"offsets is .* expected a pair"):
        tokenize(["ab"], lambda _: {"input_ids": [1, 2], "offsets": wrong}, tmp_path / "s", sentences=True)


def test_a_document_without_tokens_need_not_bring_columns(tmp_path: Path) -> None:
    def tokenizer(text: str) -> Any:
        return {"input_ids": list(text.encode()), "weights": np.ones(len(text), np.float32)} if text else []

    dataset = tokenize(["", "ab", "", "c"], tokenizer, tmp_path / "store", vocab_size=256)
    assert dataset["weights"] == [[], [1.0, 1.0], [], [1.0]]
    assert dataset.schema.field("weights").type.value_type == pa.float32()


@pytest.mark.parametrize("as_tensor", [False, True])
def test_a_function_may_fill_one_buffer_again_and_again(tmp_path: Path, as_tensor: bool) -> None:
    torch = pytest.importorskip("torch")
    ids, pairs = np.zeros(9, np.int64), np.array([(n, n + 1) for n in range(9)])
    buffers = (torch.from_numpy(ids), torch.from_numpy(pairs)) if as_tensor else (ids, pairs)

    def tokenizer(text: str) -> Any:
        ids[: len(text)] = list(text.encode())
        return {name: buffers[n][: len(text)] for name, n in (("input_ids", 0), ("types", 0), ("offsets", 1))}

    tokenizer.fingerprint = "one"  # type: ignore[attr-defined]
    dataset = tokenize(
        ["ab", "c", "def"], tokenizer, tmp_path / "store", vocab_size=256, threads=1, words=True
    )
    assert dataset["input_ids"] == dataset["types"] == [list(b"ab"), list(b"c"), list(b"def")]


def test_columns_are_the_same_in_all_shards(tmp_path: Path) -> None:
    def first(text: str) -> Any:
        return {"input_ids": [1], "w": [1]}

    def other(text: str) -> Any:
        return {"input_ids": [1], "w": [0.5]}

    def nothing(text: str) -> Any:
        return []

    for function in (first, other, nothing):
        function.fingerprint = "one"  # type: ignore[attr-defined]
    tokenize(["a"], first, tmp_path / "store", vocab_size=9)
    with pytest.raises(TextError, match=r"document 0: .* w \(float64\), and before w \(int64\)"):
        tokenize(["b"], other, tmp_path / "store", vocab_size=9, append=True)
    tokenize([""], nothing, tmp_path / "empty", vocab_size=9)
    with pytest.raises(
        TextError, match=r"'w': 'int64'.* and train/00000\.arrow holds {'input_ids': 'uint8'}"
    ):
        tokenize(["b"], first, tmp_path / "empty", vocab_size=9, append=True)
    with pytest.raises(TextError, match=r"column 'w': shards hold \['float32', 'int64'\]"):
        Tokens(
            (np.zeros(1, np.uint8), np.zeros(1, np.uint8)),
            np.array([0, 1, 2]),
            columns={"w": (np.zeros(1, np.int64), np.zeros(1, np.float32))},
        )


def test_a_split_that_was_empty_takes_documents_with_columns_later(tmp_path: Path) -> None:
    def tokenizer(text: str) -> Any:
        return {"input_ids": list(text.encode()), "w": [1] * len(text)}

    texts = [f"text {n}" for n in range(40)]
    how: dict[str, Any] = {"vocab_size": 256, "split": {"valid": 0.2}}
    tokenize([], tokenizer, tmp_path / "store", **how)
    tokenize(texts, tokenizer, tmp_path / "store", append=True, **how)
    for split in ("train", "valid"):
        tokens = Tokens.open(tmp_path / "store", split)
        assert len(tokens) > 0
        assert list(tokens.columns) == ["w"]
        assert load_from_disk(tmp_path / "store")[split].column_names == ["input_ids", "w"]


def test_documents_without_a_token_come_first_last_and_alone(tmp_path: Path) -> None:
    """Of their columns nothing is known: they are empty, and those of the others stay."""

    def tokenizer(text: str) -> Any:
        return {
            "input_ids": list(text.encode()),
            "label_mask": [True] * len(text),
        }  # [] of floats for no token

    store = tmp_path / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headrace.text.tokenizing._BATCH_DOCUMENTS", 1)
        tokenize(["", "", "ab", "", "cd", ""], tokenizer, store, vocab_size=256, shard_bytes=2)
    tokenize([""] * 3, tokenizer, store, vocab_size=256, shard_bytes=2, append=True)
    tokenize(["", "e"], tokenizer, store, vocab_size=256, shard_bytes=2, append=True)
    tokens = Tokens.open(store)
    assert tokens.lengths.tolist() == [0, 0, 2, 0, 2, 0, 0, 0, 0, 0, 1]
    assert [value for shard in tokens.columns["label_mask"] for value in shard.tolist()] == [1] * 5
    assert load_from_disk(store)["train"]["label_mask"][2:5] == [[1, 1], [], [1, 1]]


class StoppedError(Exception):
    pass


def broken_off(texts: list[str]) -> Iterator[str]:
    yield from texts
    raise StoppedError


def test_counts_of_a_split_in_which_short_documents_follow_a_full_shard(tmp_path: Path) -> None:
    def letters(text: str) -> list[int]:
        return list(text.encode())

    texts = ["abcd", "x", "y", "efgh", "z", "ij", "klmn", "w"]
    how: dict[str, Any] = {"vocab_size": 256, "min_length": 3, "shard_bytes": 4}
    for batch in range(1, 9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("headrace.text.tokenizing._BATCH_DOCUMENTS", batch)
            for stop in range(len(texts) + 1):
                store = tmp_path / f"{batch}-{stop}"
                with pytest.raises(StoppedError):
                    tokenize(broken_off(texts[:stop]), letters, store, **how)
                tokenize(texts, letters, store, **how)
                details = Tokens.open(store).details
                assert (details["documents"], details["too_short"]) == (3, 5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vocab_size", "256"),
        ("vocab_size", [256]),
        ("eos_token_id", "</s>"),
        ("pad_token_id", [0]),
        ("mask_token_id", True),
    ],
)
def test_attributes_of_a_function_are_checked(tmp_path: Path, name: str, value: Any) -> None:
    def tokenizer(text: str) -> list[int]:
        return [1]

    setattr(tokenizer, name, value)
    with pytest.raises(TextError, match=rf"tokenizer\.{name} is .*, expected an integer"):
        tokenize(["a"], tokenizer, tmp_path / "store")


def test_numpy_integers_are_integers(tmp_path: Path) -> None:
    def tokenizer(text: str) -> list[int]:
        return [1]

    tokenizer.vocab_size = np.int64(9)  # type: ignore[attr-defined]
    dataset = tokenize(
        ["a"],
        tokenizer,
        tmp_path / "store",
        special={"eos": np.int32(8)},  # type: ignore[dict-item]
        min_length=np.int64(1),  # type: ignore[arg-type]
        shard_bytes=np.int64(99),  # type: ignore[arg-type]
    )
    assert dataset.schema.field("input_ids").type.value_type == pa.uint8()
    assert Windows(dataset, 4, pack="concat").streams.eos == 8


TOKENS = Tokens.from_documents([[1, 2, 3], [4, 5]], vocab_size=10, mask=9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": None}, "window=None"),
        ({"window": []}, "at least one length"),
        ({"window": ["a"]}, "window='a'"),
        ({"window": [[1], [2, 3]]}, r"window=\[1\]"),
        ({"window": 2**63}, "window="),
        ({"min_remainder": 2**63}, "min_remainder="),
        ({"eos": 2**63}, "eos="),
        ({"pad_id": "x"}, "pad_id='x'"),
        ({"pack": True}, "pack=True"),
        ({"overlap_labels": "no"}, "overlap_labels='no'"),
        ({"overlap_labels": None}, "overlap_labels=None"),
        ({"separate_documents": 1}, "separate_documents=1"),
        ({"outputs": None}, "outputs=None"),
        ({"outputs": []}, "at least one of"),
        ({"outputs": [1]}, r"outputs=\[1\]"),
        ({"outputs": b"x"}, "outputs=b'x'"),
        ({"spans": "x"}, "spans: found a str"),
        ({"spans": [[0, 1], None]}, "spans: found a list"),
        ({"spans": [[0.5, 1], [0, 0]]}, r"spans: found a list \(float64"),
        ({"objective": "mlm"}, "expected None or MLM"),
        ({"objective": MLM("a")}, "probability='a'"),  # type: ignore[arg-type]
        ({"objective": MLM(float("nan"))}, "expected a share"),
        ({"objective": MLM(whole_word="yes")}, "whole_word='yes'"),  # type: ignore[arg-type]
        ({"objective": MLM(mask_id="x")}, "mask_id='x'"),  # type: ignore[arg-type]
        ({"stride": DynamicStride(None, mean=2)}, "density=None"),  # type: ignore[arg-type]
        ({"stride": DynamicStride("edges", mean="2")}, "mean='2'"),  # type: ignore[arg-type]
        ({"stride": DynamicStride("edges", mean=float("nan"))}, "mean=nan"),
        ({"stride": DynamicStride("edges", mean=2**70)}, "mean=1180591620717411303424"),
        ({"stride": DynamicStride(np.zeros(2), mean=2)}, "density=array"),  # type: ignore[arg-type]
        ({"offset": np.zeros(2)}, "offset=array"),
        ({"stride": DynamicStride("edges", mean=2, minimum=1.5)}, "minimum"),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_windows_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TextError, match=message):
        len(Windows(TOKENS, **{"window": 4, **arguments}))


@pytest.mark.parametrize("wrong", [None, "x", [1.0, "a", None], [[1], [2, 3]], Strange(), 3.0, [1.0]])
def test_what_a_density_gives_is_checked(wrong: Any) -> None:
    with pytest.raises(TextError, match="expected one finite number of at least 0 a token"):
        len(Windows([[1, 2, 3]], 2, DynamicStride(lambda ids: wrong, mean=1)))


def test_a_density_that_fails_says_so() -> None:
    with pytest.raises(TextError, match="failed on a document of 3 tokens: ZeroDivisionError"):
        len(Windows([[1, 2, 3]], 2, DynamicStride(lambda ids: ids / (1 // 0), mean=1)))


def test_a_density_whose_sum_is_not_finite_is_refused() -> None:
    with pytest.raises(TextError, match=r"the sum over the tokens is not finite\. Scale the density down"):
        len(Windows([[1] * 30], 8, DynamicStride(lambda ids: np.full(ids.size, 1e308), mean=4)))


class Untold:
    def __call__(self, given: Any) -> Any:
        return [1]

    def __fingerprint__(self) -> str:
        raise KeyError("version")


def test_a_fingerprint_of_ones_own_that_fails_says_so(tmp_path: Path) -> None:
    for call in (
        lambda: Windows(TOKENS, 8, DynamicStride(Untold(), mean=4)).fingerprint,
        lambda: tokenize(["a"], Untold(), tmp_path / "store", vocab_size=2),
        lambda: tokenize(["a"], functools.partial(Untold()), tmp_path / "store", vocab_size=2),
    ):
        with pytest.raises(TextError, match=r"Untold\.__fingerprint__\(\) failed: KeyError: 'version'"):
            call()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": 0.1}, "split=0.1: expected a mapping"),
        ({"split": {"valid": "a"}}, "each share is in"),
        ({"split": {"valid": float("nan")}}, "each share is in"),
        ({"split_by": 7}, "split_by=7"),
        ({"sentences": "yes"}, "sentences='yes'"),
        ({"words": 1}, "words=1"),
        ({"min_length": "3"}, "min_length='3'"),
        ({"min_length": None}, "min_length=None"),
        ({"special": 0}, "special=0: expected a mapping"),
        ({"special": {"eos": "</s>"}}, "eos='</s>': expected an integer"),
        ({"vocab_size": "256"}, "vocab_size='256'"),
        ({"vocab_size": 0}, "vocab_size=0: expected the number of ids"),
        ({"threads": 0}, "threads=0"),
        ({"threads": float("nan")}, "threads=nan"),
        ({"shard_bytes": 0}, "shard_bytes=0"),
        ({"shard_bytes": "128MB"}, "shard_bytes='128MB'"),
        ({"vocab_size": 2**70}, "vocab_size=1180591620717411303424: expected the number of ids"),
        ({"special": {"eos": 2**63}}, "eos=9223372036854775808 is outside the vocabulary"),
        ({"out": None}, "out is None; expected a path"),
        ({"out": ""}, "out is '', which no file can be named"),
        ({"out": "a\0"}, "which no file can be named"),
        ({"append": "yes"}, "append='yes': expected True or False"),
    ],
)
def test_arguments_of_tokenize_are_checked(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TextError, match=message):
        tokenize(
            **{  # type: ignore[call-overload]
                "docs": ["a"],
                "tokenizer": lambda _: [1],
                "out": tmp_path / "store",
                "vocab_size": 9,
                **arguments,
            }
        )


def test_a_function_may_take_what_is_no_text_and_a_library_may_not(tmp_path: Path, shared_data: Path) -> None:
    assert len(tokenize([3, (1, 2)], lambda item: [1], tmp_path / "a", vocab_size=9)) == 2
    with pytest.raises(TextError, match="document 1: found int, expected a text"):
        tokenize(["a", 3], shared_data / "tokenizers" / "gpt2", tmp_path / "b")


@pytest.mark.parametrize(
    "call",
    [
        lambda: Tokens.from_documents(None),  # type: ignore[arg-type]
        lambda: Tokens.from_documents([[1], None]),  # type: ignore[list-item]
        lambda: Tokens.from_documents([[[1], [2, 3]]]),  # type: ignore[list-item]
        lambda: Tokens.from_documents([[1]], vocab_size="9"),  # type: ignore[arg-type]
        lambda: Tokens.from_arrays(None, [0, 1]),  # type: ignore[arg-type]
        lambda: Tokens.from_arrays(np.zeros(1), [0, 1]),
        lambda: Tokens.from_arrays(np.zeros(2, np.uint8), [0, 1.5, 2]),
        lambda: Tokens.from_arrays(np.zeros(1, np.uint8), "x"),
        lambda: Tokens.from_arrays(np.zeros(1, np.uint8), [0, 1], sentence_starts=[1]),
        lambda: Tokens.from_arrays(np.zeros(1, np.uint8), [0, 1], sentence_starts=[-1]),
        lambda: Tokens.from_arrays(np.zeros(1, np.uint8), [0, 1], columns=[1]),  # type: ignore[arg-type]
        lambda: Tokens.from_arrays(np.zeros(1, np.uint8), [0, 1], columns={"w": "x"}),  # type: ignore[dict-item]
        lambda: Tokens.from_arrays(np.zeros(1, np.uint8), [0, 1], columns={"labels": np.zeros(1)}),
        lambda: clean(None),  # type: ignore[arg-type]
        lambda: clean(b"x"),  # type: ignore[arg-type]
        lambda: cu_seqlens([[1, 1]]),
        lambda: document_mask(None),
        lambda: from_bin("x.bin", "uint17"),
        lambda: from_bin("x.bin", eos="x"),  # type: ignore[arg-type]
        lambda: from_bin("x.bin", eos=2**70),
        lambda: from_bin(None),  # type: ignore[arg-type]
        lambda: from_bin(""),
        lambda: Tokens.open(None),  # type: ignore[arg-type]
        lambda: Windows(TOKENS, 4, offset="random").summary(0, "x"),  # type: ignore[arg-type]
        lambda: Windows(TOKENS, 4).summary("x"),  # type: ignore[arg-type]
        lambda: render_windows(Windows(TOKENS, 4), seed=1.5),  # type: ignore[arg-type]
        lambda: render_windows(Windows(TOKENS, 4), epoch=-1),
        lambda: from_parquet(7),  # type: ignore[arg-type]
        lambda: Windows(TOKENS, 4).plan(7),  # type: ignore[arg-type]
        lambda: Windows(TOKENS, 4).plan([4], ["a"]),  # type: ignore[list-item]
    ],
)
def test_other_entries_are_checked(call: Callable[[], Any]) -> None:
    with pytest.raises(TextError):
        call()


def test_columns_of_datasets_do_not_take_the_place_of_arrays(tmp_path: Path) -> None:
    ids = [[1, 2, 3], [4]]
    like_transformers = Dataset.from_dict({"input_ids": ids, "attention_mask": [[1, 1, 1], [1]]})
    assert Windows(like_transformers, 4).tokens.columns == {}
    padded = Dataset.from_dict({"input_ids": ids, "attention_mask": [[1, 1, 0], [1]]})
    with pytest.raises(TextError, match="a column 'attention_mask'"):
        Windows(padded, 4)
    with pytest.raises(TextError, match=r"a column 'labels'.*label_mask"):
        Windows(Dataset.from_dict({"input_ids": ids, "labels": [[-100, 2, 3], [4]]}), 4)
    for number, dtype in enumerate((pa.int64(), pa.int32())):
        table = pa.table({"input_ids": [[1]], "w": pa.array([[1]], pa.list_(dtype))})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    with pytest.raises(TextError, match=r"column 'w': shards hold \['int32', 'int64'\]"):
        from_parquet(tmp_path / "*.parquet")
