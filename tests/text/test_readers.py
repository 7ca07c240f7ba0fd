"""Token files that others wrote."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import SourceError, TextError
from headrace.text import Tokens, Windows, from_bin, from_megatron, from_parquet


def documents(tokens: Tokens) -> list[list[int]]:
    return [tokens.document(n).tolist() for n in range(len(tokens))]


def is_mapped(array: object) -> bool:
    """Whether an array lies in a file, whatever views are between."""
    return isinstance(array, np.memmap) or (array is not None and is_mapped(getattr(array, "base", None)))


def test_bare_ids_are_cut_after_each_end_token(tmp_path: Path) -> None:
    path = tmp_path / "train.bin"
    np.array([1, 2, 9, 9, 3], "<u2").tofile(path)
    assert documents(from_bin(path, "uint16", eos=9)) == [[1, 2, 9], [9], [3]]
    assert documents(from_bin(path)) == [[1, 2, 9, 9, 3]]
    assert is_mapped(from_bin(path).values[0])
    assert len(Windows(from_bin(path, eos=9), 4, pack="concat")) == 2


@pytest.mark.parametrize("dtype", [np.uint16, np.dtype("uint16"), "u2", "<u2", "uint16"])
def test_dtypes_of_bare_ids_are_named_in_any_of_numpys_ways(tmp_path: Path, dtype: Any) -> None:
    path = tmp_path / "train.bin"
    np.array([1, 258], "<u2").tofile(path)
    assert documents(from_bin(path, dtype)) == [[1, 258]]


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
@pytest.mark.parametrize("wrong", [-1, -30_000])
def test_a_negative_id_is_in_no_vocabulary(tmp_path: Path, dtype: str, wrong: int) -> None:
    path = tmp_path / "train.bin"
    np.array([1, wrong, 5], dtype).tofile(path)
    for size in (70, 40_000):
        with pytest.raises(TextError, match=f"id {wrong} at token 1 is negative"):
            from_bin(path, dtype, vocab_size=size)
    np.array([1, 32_767, 5], dtype).tofile(path)
    assert documents(from_bin(path, dtype, vocab_size=40_000)) == [[1, 32_767, 5]]


def test_bare_ids_that_cannot_be_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.bin"
    path.write_bytes(b"abc")
    with pytest.raises(SourceError, match="3 bytes, expected a multiple of 2"):
        from_bin(path)
    np.array([1, 70], "<u2").tofile(path)
    with pytest.raises(TextError, match="id 70 at token 1"):
        from_bin(path, vocab_size=70)
    with pytest.raises(SourceError, match="No such file"):
        from_bin(tmp_path / "none.bin")
    with pytest.raises(SourceError, match="Is a directory"):
        from_bin(tmp_path)
    (tmp_path / "empty.bin").write_bytes(b"")
    assert len(from_bin(tmp_path / "empty.bin", eos=1)) == 0


@pytest.mark.parametrize("dtype", ["u16", ">u2", ",", None, float, np.int8, 2, [("ids", "u2")], object()])
def test_dtypes_that_bare_ids_cannot_have_are_refused(tmp_path: Path, dtype: Any) -> None:
    with pytest.raises(TextError, match=r"dtype=.*: expected one of uint8, uint16, uint32"):
        from_bin(tmp_path / "train.bin", dtype)


def write_megatron(prefix: Path, sequences: list[list[int]], borders: list[int]) -> None:
    flat = [token for sequence in sequences for token in sequence]
    np.array(flat, "<u2").tofile(f"{prefix}.bin")
    lengths = [len(sequence) for sequence in sequences]
    pointers = np.concatenate([[0], np.cumsum(lengths)[:-1] * 2])
    header = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, len(sequences), len(borders))
    body = np.array(lengths, "<i4").tobytes() + pointers.astype("<i8").tobytes()
    Path(f"{prefix}.idx").write_bytes(header + body + np.array(borders, "<i8").tobytes())


def test_megatron_documents_may_hold_several_sequences(tmp_path: Path) -> None:
    write_megatron(tmp_path / "d", [[1, 2], [3], [4, 5, 6]], [0, 2, 3])
    for name in ("d", "d.bin", "d.idx"):
        assert documents(from_megatron(tmp_path / name)) == [[1, 2, 3], [4, 5, 6]]


def test_damaged_megatron_files_are_refused(tmp_path: Path) -> None:
    write_megatron(tmp_path / "d", [[1, 2], [3]], [0, 1, 2])
    index = tmp_path / "d.idx"
    whole = index.read_bytes()
    for content, message in (
        (b"PARQUET" + whole, "not an index"),
        (whole[:-9], "fewer than its header announces"),
        (whole[:-8] + struct.pack("<q", 9), "do not cover"),
        (whole[:17] + b"\x06" + whole[18:], "dtype code 6"),
        (whole[:18] + struct.pack("<Q", 1 << 63) + whole[26:], "fewer than its header announces"),
        (whole[:26] + struct.pack("<Q", (1 << 64) - 1) + whole[34:], "fewer than its header announces"),
        (whole[:34] + struct.pack("<ii", -2, 5) + whole[42:], "do not lie one after the other"),
        (whole[:42] + struct.pack("<qq", 4, 0) + whole[58:], "do not lie one after the other"),
    ):
        index.write_bytes(content)
        with pytest.raises(SourceError, match=message):
            from_megatron(tmp_path / "d")
    with pytest.raises(TextError, match="prefix is None; expected a path"):
        from_megatron(None)  # type: ignore[arg-type]
    index.write_bytes(whole)
    (tmp_path / "d.bin").write_bytes(b"ab")
    with pytest.raises(SourceError, match="2 bytes, expected 6"):
        from_megatron(tmp_path / "d")


def test_parquet_ids_take_the_smallest_width_and_bring_their_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"tokens": [[1, 2], []], "label_mask": [[0, 1], []]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"tokens": [[300]], "label_mask": [[1]]}), tmp_path / "b.parquet")
    tokens = from_parquet(tmp_path / "*.parquet", "tokens", eos=5)
    assert documents(tokens) == [[1, 2], [], [300]]
    assert tokens.dtype == np.uint16
    assert tokens.special.eos == 5
    assert list(tokens.columns) == ["label_mask"]


def test_parquet_lists_of_any_kind_and_booleans(tmp_path: Path) -> None:
    table = pa.table(
        {
            "input_ids": pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)),
            "label_mask": [[False, True], [True, True]],
        }
    )
    pq.write_table(table, tmp_path / "fixed.parquet")
    pq.write_table(pa.table({"input_ids": pa.array([[], []])}), tmp_path / "nothing.parquet")
    tokens = from_parquet(tmp_path / "fixed.parquet")
    assert documents(tokens) == [[1, 2], [3, 4]]
    assert tokens.columns["label_mask"][0].tolist() == [0, 1, 1, 1]
    assert documents(from_parquet(tmp_path / "nothing.parquet")) == [[], []]
    twice = pa.Table.from_arrays([pa.array([[1]]), pa.array([[2]])], names=["input_ids", "input_ids"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(TextError, match="two columns 'input_ids'"):
        from_parquet(tmp_path / "twice.parquet")
    with pytest.raises(SourceError, match=r"^files: there is no file"):
        from_parquet(tmp_path / "none.parquet")
    with pytest.raises(TextError, match="column=3: expected the name"):
        from_parquet(tmp_path / "fixed.parquet", 3)  # type: ignore[arg-type]


def test_parquet_that_cannot_be_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"input_ids": [[1, -2]], "text": ["x"]}), path)
    with pytest.raises(TextError, match="id -2"):
        from_parquet(path)
    with pytest.raises(TextError, match="Did you mean 'input_ids'"):
        from_parquet(path, "input_idx")
    with pytest.raises(TextError, match="expected a list of integers"):
        from_parquet(path, "text")
    pq.write_table(pa.table({"input_ids": [[1, None]]}), path)
    with pytest.raises(TextError, match="null among its numbers"):
        from_parquet(path)
    path.write_bytes(b"no parquet")
    with pytest.raises(SourceError, match="not a readable Parquet file"):
        from_parquet(path)


def test_fake_lengths_do_not_wrap(tmp_path: Path) -> None:
    lengths = np.full(3, 2**30)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    with (tmp_path / "holes.bin").open("wb") as file:
        file.truncate(int(lengths.sum()) * 2)  # a file of nothing but a hole: no disk, no memory
    values = np.memmap(tmp_path / "holes.bin", np.uint16, "r")
    tokens = Tokens((values,), offsets.astype(np.int64))
    assert (tokens.offsets * tokens.dtype.itemsize).tolist() == [0, 2147483648, 4294967296, 6442450944]
    assert len(Windows(tokens, 1024)) == 3 * 2**20
