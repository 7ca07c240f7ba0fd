"""Any bytes at all: nothing lost, nothing depends on block size, nothing crashes."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import SourceError
from headrace.kernels.lines import KEEP_BLANK, SKIP_BLANK, SPANS_LINES, scan_records
from headrace.sources import Column
from headrace.sources.streams import compression_of

quick = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
pieces = st.sampled_from(
    [
        *(
            b",",
            b'"',
            b'""',
            b"\n",
            b"\r",
            b"\r\n",
            b"\0",
            b"\xff",
            b"\xef\xbb\xbf",
            b"\xe2\x80\xa8",
            b"a",
            b"1",
            b"1.0",
        ),
        *(
            b"\\N",
            b" ",
            b"\t",
            b"a,b\n",
            b'1,"x\ny"\n',
            b"2,z\n",
            b"{",
            b"}",
            b'{"a":1}\n',
            b'"a":',
            b"[",
            b"]",
            b"NaN",
        ),
        *(b'{"a":"x"}\n', b"null\n", b'{"a":1.5}\n', b'{"b":{"a":2}}\n', b"\\", b"\\u0061"),
    ]
)
any_bytes = (
    st.lists(pieces | st.binary(max_size=3), max_size=25)
    .map(b"".join)
    .map(lambda data: b"x" + data if compression_of(data) else data)
)
A_B = [Column("a", "text"), Column("b", "number")]


@quick
@given(data=any_bytes, block_bytes=st.integers(1, 30))
def test_csv(read: Callable[..., Any], data: bytes, block_bytes: int) -> None:
    options = {"header": False, "columns": ("a", "b"), "missing_values": ("", "\\N")}
    try:
        whole = read(data, A_B, **options)
    except SourceError as error:
        assert "byte-order mark" in str(error)  # noqa: PT017
        return
    assert read(data, A_B, block_bytes, **options).key() == whole.key()
    body = data.removeprefix(b"\xef\xbb\xbf")
    records = scan_records(body, quote=34)
    kept_and_bad = [*whole.rows, *(bad.row for bad in whole.bad)]
    assert sorted(set(kept_and_bad)) == list(range(records.starts.size))
    joined = sum(
        scan_records(body[a:b], skip=KEEP_BLANK).line_count
        for row, (a, b) in enumerate(zip(records.starts, records.ends, strict=True))
        if records.flags[row] & SPANS_LINES and row not in whole.rows
    )
    assert len(kept_and_bad) == records.starts.size + joined
    for row, raw in zip(whole.rows, whole.raw, strict=True):
        assert raw == body[records.starts[row] : records.ends[row]]


@quick
@given(data=any_bytes, block_bytes=st.integers(1, 30))
def test_csv_rows_alone_are_what_they_are_together(
    read: Callable[..., Any], data: bytes, block_bytes: int
) -> None:
    options = {"header": False, "columns": ("a", "b")}
    if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
        return
    whole = read(data, A_B, block_bytes, **options)
    alone = [read(b"\n" + raw, A_B, **options) for raw in whole.raw]
    assert [one.columns["a"] for one in alone] == [[value] for value in whole.columns["a"]]
    assert [one.columns["b"] for one in alone] == [[value] for value in whole.columns["b"]]
    for bad in whole.bad:
        assert len(read(b"\n" + bad.raw, A_B, **options).rows) <= (
            "join" in bad.reason or "quote" in bad.reason
        )


@quick
@given(data=any_bytes, block_bytes=st.integers(1, 30))
def test_jsonl(read: Callable[..., Any], data: bytes, block_bytes: int) -> None:
    try:
        whole = read(data, A_B, format="jsonl")
    except SourceError as error:
        assert "byte-order mark" in str(error)  # noqa: PT017
        return
    assert read(data, A_B, block_bytes, format="jsonl").key() == whole.key()
    records = scan_records(data.removeprefix(b"\xef\xbb\xbf"), skip=SKIP_BLANK)
    assert sorted([*whole.rows, *(bad.row for bad in whole.bad)]) == list(range(records.starts.size))


@quick
@given(data=any_bytes, block_bytes=st.integers(1, 30))
def test_text(read: Callable[..., Any], data: bytes, block_bytes: int) -> None:
    if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
        return
    found = read(data, [Column("text", "text")], block_bytes, format="text")
    body = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = body.removesuffix(b"\n").split(b"\n") if body else []
    rows = dict(zip(found.rows, found.columns["text"], strict=True)) | {bad.row: bad.raw for bad in found.bad}
    assert [
        rows[row] if isinstance(rows[row], bytes) else rows[row].encode() for row in range(len(lines))
    ] == lines
    assert len(rows) == len(lines)


@quick
@given(
    data=any_bytes,
    cut=st.integers(0, 80),
    encoding=st.sampled_from(["utf-8", "latin-1", "gb18030", "utf-16-le"]),
)
def test_damaged_streams_and_encodings_never_crash(
    read: Callable[..., Any], data: bytes, cut: int, encoding: str
) -> None:
    stored = gzip.compress(data, mtime=0)[: -1 - cut]
    if len(stored) < 2:
        return
    for form in ("csv", "jsonl", "text", "parquet", "arrow"):
        wanted = [Column("a", "text", optional=True)]
        try:
            found = read(stored, wanted, format=form, encoding=encoding)
        except SourceError:
            continue
        assert found.bad


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@quick
@given(data=st.binary(max_size=60))
def test_tables_of_any_bytes_are_refused(read: Callable[..., Any], form: str, data: bytes) -> None:
    with pytest.raises(SourceError, match=f"data: cannot be read as {form}"):
        read(b"x" + data, A_B, format=form)
