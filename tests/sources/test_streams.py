"""Compressed streams: members, damage, streams that break off; the same in every format."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from collections.abc import Callable
from typing import Any

import pytest
import zstandard

from headrace.errors import SourceError
from headrace.sources import Column

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}
A = [Column("a", "text")]
ROWS = [str(i * 7919 % 10007) for i in range(20_000)]
CSV = "\n".join(["a", *ROWS, ""]).encode()


@pytest.mark.parametrize("name", COMPRESSORS)
def test_members_one_after_another(read: Callable[..., Any], name: str) -> None:
    compress = COMPRESSORS[name]
    half = len(CSV) // 2
    stored = compress(CSV[:half]) + compress(b"") + compress(CSV[half:])
    found = read(stored, A, 1 << 14)
    assert found.columns["a"] == ROWS
    assert found.byte_offsets[-1] == len(CSV) - len(ROWS[-1]) - 1


@pytest.mark.parametrize("name", COMPRESSORS)
def test_members_without_a_byte(read: Callable[..., Any], name: str) -> None:
    """They begin with the end of a stream, and no data that would tell what it is."""
    empty = COMPRESSORS[name](b"")
    assert read(empty + COMPRESSORS[name](CSV), A).columns["a"] == ROWS
    for stored in (empty, empty + empty):
        found = read(stored, [Column("a", "text")], format="jsonl")
        assert (list(found.rows), found.bad) == ([], [])


def test_frames_of_zstd_that_hold_no_data(read: Callable[..., Any]) -> None:
    """As ``pzstd`` writes them before each frame, and seekable zstd behind the last one."""
    compress = COMPRESSORS["zstd"]
    for number in range(16):
        skipped = struct.pack("<II", 0x184D2A50 + number, 7) + b'{"a":1}'
        stored = skipped + compress(CSV[:1000]) + skipped + compress(CSV[1000:]) + skipped
        assert read(stored, A).columns["a"] == ROWS


def test_zeros_after_a_member_are_padding(read: Callable[..., Any]) -> None:
    stored = COMPRESSORS["gzip"](CSV) + b"\0" * 512
    assert read(stored, A).columns["a"] == ROWS


@pytest.mark.parametrize("name", COMPRESSORS)
@pytest.mark.parametrize("block_bytes", [5000, 8 << 20])
def test_a_stream_that_breaks_off_keeps_what_came_before(
    read: Callable[..., Any], name: str, block_bytes: int
) -> None:
    stored = COMPRESSORS[name](CSV * 5)
    found = read(stored[: len(stored) * 2 // 3], A, block_bytes)
    rows = [*ROWS, "a"] * 5
    assert found.columns["a"] == rows[: len(found.rows)]
    assert len(found.bad) == 1
    assert found.bad[0].row == len(found.rows)
    assert f"the {name} stream breaks off after" in found.bad[0].reason
    assert CSV[found.bad[0].byte_offset % len(CSV) :].startswith(found.bad[0].raw)
    if name == "gzip":
        assert len(found.rows) > 60_000


@pytest.mark.parametrize("form", ["csv", "jsonl", "text"])
def test_a_stream_that_breaks_off_between_rows_is_told_too(read: Callable[..., Any], form: str) -> None:
    stored = gzip.compress(b'{"a":1}\n{"a":2}\n', mtime=0)[:-8]
    found = read(
        stored,
        [Column("text" if form == "text" else '{"a":1}' if form == "csv" else "a", "text")],
        format=form,
        quote="",
    )
    assert len(found.rows) == (1 if form == "csv" else 2)
    assert [(bad.raw, bad.line) for bad in found.bad] == [(b"", 3)]


@pytest.mark.parametrize("name", COMPRESSORS)
def test_damaged_streams_are_errors(read: Callable[..., Any], name: str) -> None:
    stored = bytearray(COMPRESSORS[name](CSV * 5))
    stored[len(stored) // 2] ^= 0x55
    with pytest.raises(SourceError, match=f"data: damaged {name} data"):
        read(bytes(stored), A)


def test_bytes_after_a_member_are_an_error(read: Callable[..., Any]) -> None:
    with pytest.raises(SourceError, match="data: damaged gzip data"):
        read(COMPRESSORS["gzip"](CSV) + b"more", A)


def test_the_content_decides_not_the_name(read: Callable[..., Any]) -> None:
    assert read({"a.csv.gz": b"a\n1\n", "b.csv": gzip.compress(b"a\n2\n")}, A).columns["a"] == ["1", "2"]


def test_many_files(read: Callable[..., Any]) -> None:
    found = read({f"{i:04}.csv": b"a\n%d\n" % i for i in range(500)}, A)
    assert found.columns["a"] == [str(i) for i in range(500)]
