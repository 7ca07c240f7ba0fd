"""Columns of ids in whatever form Arrow has, and columns beside them: taken, or refused, never lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace.dataset.dataset import Dataset
from headrace.errors import TextError
from headrace.text import Tokens, Windows

Everything = Callable[..., dict[str, Any]]
DOCUMENTS = [[1, 2, 3], [4, 5, 6]]
KINDS = {
    "list": pa.list_(pa.int32()),
    "large": pa.large_list(pa.uint16()),
    "fixed": pa.list_(pa.int64(), 3),
    "view": pa.list_view(pa.int32()),
    "large view": pa.large_list_view(pa.uint8()),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("has_null", [False, True])
def test_ids_in_any_kind_of_list(everything: Everything, kind: str, has_null: bool) -> None:
    rows = [[9, 9, 9], *([None] if has_null else []), *DOCUMENTS]
    table = pa.table({"input_ids": pa.array(rows, KINDS[kind])}).slice(1)
    batch = everything(Windows(table, 4, pad_id=0, outputs=("input_ids", "document")))
    assert batch["input_ids"].tolist() == [[1, 2, 3, 0], [4, 5, 6, 0]]
    assert batch["document"].tolist() == [0 + has_null, 1 + has_null]
    assert len(Windows(table.to_batches()[0], 4)) == 2


@pytest.mark.parametrize("rows", [[[], []], [None, None], []])
def test_documents_without_a_token_are_documents(rows: list[Any]) -> None:
    for data in (Dataset.from_dict({"input_ids": rows}), pa.table({"input_ids": pa.array(rows)})):
        windows = Windows(data, 4)
        assert len(windows) == 0
        assert len(windows.tokens) == len(rows)
        assert len(Windows(data, 4, eos=1, pack="concat")) == (len(rows) > 0)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("way", ["dataset", "table", "arrays"])
def test_a_label_mask_of_any_numbers_takes_labels_out(everything: Everything, dtype: Any, way: str) -> None:
    mask = [[0, 0, 1], [1, 1, 0]]
    values = [np.array(row, dtype) for row in mask]
    if way == "arrays":
        flat = np.concatenate(DOCUMENTS), np.concatenate(values)
        data: Any = Tokens.from_arrays(flat[0], [0, 3, 6], columns={"label_mask": flat[1]})
    else:
        kind = pa.list_(pa.from_numpy_dtype(dtype))
        data = pa.table({"input_ids": DOCUMENTS, "label_mask": pa.array(values, kind)})
        data = Dataset.from_arrow(data) if way == "dataset" else data
    batch = everything(Windows(data, 3))
    assert batch["labels"].tolist() == [[-100, 3, -100], [5, -100, -100]]


def test_a_share_in_a_label_mask_is_not_zero(everything: Everything) -> None:
    tokens = Tokens.from_arrays(np.arange(1, 4), [0, 3], columns={"label_mask": np.array([0.0, 0.5, 0.0])})
    assert everything(Windows(tokens, 3))["labels"].tolist() == [[2, -100, -100]]


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([[0, 1], [1, 1, 1]], "not one value for each token of document 0"),
        ([[0, 1, 1], [1, 1, 1, 1]], "not one value for each token of document 1"),
        ([[0, 1, 1], None], "not one value for each token of document 1"),
        ([[0, 1, 1], [1, None, 1]], "null among its numbers"),
        (["011", "111"], "is string, expected a list of numbers"),
        ([1, 1], "is int64, expected a list of numbers"),
    ],
)
@pytest.mark.parametrize("name", ["label_mask", "word_starts"])
def test_a_mask_that_does_not_fit_is_not_left_out_in_silence(name: str, mask: Any, message: str) -> None:
    for data in (Dataset.from_dict({"input_ids": DOCUMENTS, name: mask}),
                 pa.table({"input_ids": DOCUMENTS, name: mask})):  # fmt: skip
        with pytest.raises(TextError, match=f"column '{name}' .*{message}|column '{name}' {message}"):
            Windows(data, 3)


def test_other_lists_of_numbers_need_not_be_parallel() -> None:
    table = pa.table({"input_ids": DOCUMENTS, "boxes": [[1], [2]], "types": [[0, 1, 0], [1, 1, 1]]})
    assert list(Windows(table, 3).tokens.columns) == ["types"]


def test_what_does_not_fit_in_a_batch_is_refused_and_not_wrapped() -> None:
    huge = np.array([1, (1 << 63) + 5], np.uint64)
    with pytest.raises(TextError, match="id 9223372036854775813 at token 1 is beyond int64"):
        Tokens.from_arrays(huge, [0, 2])
    with pytest.raises(TextError, match="beyond int64"):
        Windows(pa.table({"input_ids": pa.array([huge], pa.list_(pa.uint64()))}), 3)
    with pytest.raises(TextError, match="column 'types': a value does not fit in int64"):
        Tokens.from_arrays(np.array([1, 2]), [0, 2], columns={"types": huge})
    with pytest.raises(TextError, match="spans: 9223372036854775813 does not fit in int64"):
        Windows([[1, 2]], 3, spans=huge.reshape(1, 2))
    with pytest.raises(TextError, match="offsets: 9223372036854775813 does not fit"):
        Tokens.from_arrays(np.array([1, 2]), huge)


@pytest.mark.parametrize("declared", [b"{", b"[]", b"5", b'{"x": 1}', b"\xff", b"[" * 100_000])
def test_metadata_that_declares_nothing_is_refused(declared: bytes) -> None:
    table = pa.table({"input_ids": DOCUMENTS}).replace_schema_metadata({b"headrace.tokens": declared})
    with pytest.raises(
        TextError, match=r"declares no special tokens. Take it out with replace_schema_metadata"
    ):
        Windows(table, 3)
    assert len(Windows(table.replace_schema_metadata(None), 3)) == 2


@pytest.mark.parametrize("starts", [[[0, 3], [1]], [[-1], [1]], [[0.5], [1.0]]])
def test_sentences_outside_their_document_are_refused(starts: Any) -> None:
    table = pa.table({"input_ids": DOCUMENTS, "sentence_starts": starts})
    with pytest.raises(
        TextError, match="sentence_starts: expected, for each document, numbers of tokens in it"
    ):
        len(Windows(table, 3, align="sentence"))


@pytest.mark.parametrize(
    "values",
    [
        (),
        (np.arange(3), np.arange(2, dtype=np.uint8)),
        (np.arange(5.0),),
        (np.arange(10)[::2],),
        (np.arange(5, dtype=">i4"),),
        (np.arange(5).reshape(1, 5),),
        (np.zeros(5, bool),),
    ],
)
def test_arrays_that_kernels_cannot_read_are_refused(values: Any) -> None:
    with pytest.raises(TextError, match=r"values: \d arrays of .*Tokens\.from_arrays makes them so"):
        Tokens(values, np.array([0, 5]))
    if values:
        with pytest.raises(TextError, match=r"column 'w'"):
            Tokens((np.arange(5),), np.array([0, 5]), columns={"w": (*values, np.arange(1))})
    with pytest.raises(TextError, match="expected int64 from 0 to the 5 tokens"):
        Tokens((np.arange(5),), np.array([0.0, 5.0]))  # type: ignore[arg-type]


def test_columns_are_called_by_texts() -> None:
    with pytest.raises(TextError, match="a column is called 5"):
        Tokens.from_arrays(np.array([1]), [0, 1], columns={5: np.array([1])})  # type: ignore[dict-item]
