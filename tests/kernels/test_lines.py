"""Record boundaries: the kernels against plain Python that looks at one byte at a time."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.kernels.lines import (
    KEEP_BLANK,
    MALFORMED_QUOTE,
    SKIP_BLANK,
    SKIP_EMPTY,
    SPANS_LINES,
    UNCLOSED_QUOTE,
    gather_lines,
    lines_with,
    scan_records,
)

Row = tuple[bytes, int, int]


def plain_records(data: bytes, quote: int, skip: int, limit: int) -> list[Row]:
    """(record, line before it, flags), by the rules as the documentation says them."""
    records: list[Row] = []
    start = line = 0
    while start < len(data):
        end, flag, breaks = plain_end(data, start, quote, limit)
        record = data[start:end]
        blank = (skip == SKIP_EMPTY and not record) or (skip == SKIP_BLANK and not record.strip(b" \t"))
        if not blank:
            records.append((record, line, flag))
        line += breaks
        start = end
        if end < len(data):
            start += 2 if data[end : end + 2] == b"\r\n" else 1
            line += 1
    return records


def plain_end(data: bytes, start: int, quote: int, limit: int) -> tuple[int, int, int]:
    i, flag, breaks, first_break = start, 0, 0, -1
    at_field = True
    while i < len(data) and data[i] not in b"\r\n":
        if not (at_field and data[i] == quote):
            at_field = data[i] == ord(",")
            i += 1
            continue
        i += 1
        inside = 0
        while True:
            if i >= len(data):
                return (first_break if first_break >= 0 else len(data)), UNCLOSED_QUOTE, 0
            newline = data[i] in b"\r\n"
            if newline and first_break < 0:
                first_break = i
            if first_break >= 0 and i - start >= limit and (newline or data[i] == quote):
                return first_break, UNCLOSED_QUOTE, 0
            if newline:
                i += 2 if data[i : i + 2] == b"\r\n" else 1
                inside += 1
            elif data[i] == quote and data[i + 1 : i + 2] == bytes([quote]):
                i += 2
            elif data[i] == quote:
                i += 1
                break
            else:
                i += 1
        breaks += inside
        flag |= SPANS_LINES if inside else 0
        if i < len(data) and data[i] not in b",\r\n":
            flag |= MALFORMED_QUOTE
        at_field = False
    return i, flag, breaks


some_bytes = st.lists(
    st.sampled_from(
        [b",", b'"', b"\n", b"\r", b"\r\n", b"a", b" ", b"\t", b'""', b"abcdefghijk", "é".encode()]
    ),
    max_size=40,
).map(b"".join)


@settings(max_examples=400, deadline=None)
@given(data=some_bytes, quoted=st.booleans(), skip=st.sampled_from([KEEP_BLANK, SKIP_EMPTY, SKIP_BLANK]))
def test_records_are_those_of_the_plain_rules(data: bytes, quoted: bool, skip: int) -> None:
    quote = ord('"') if quoted else -1
    found = scan_records(data, quote=quote, skip=skip)
    assert found.consumed == len(data)
    assert found.line_count == len(re.findall(rb"\r\n|\r|\n", data))
    rows = [
        (data[a:b], int(line), int(flag))
        for a, b, line, flag in zip(found.starts, found.ends, found.lines, found.flags, strict=True)
    ]
    assert rows == plain_records(data, quote, skip, 1 << 24)


@settings(max_examples=300, deadline=None)
@given(data=some_bytes, cut=st.integers(0, 60), limit=st.sampled_from([5, 12, 1 << 24]))
def test_two_pieces_give_what_one_gives(data: bytes, cut: int, limit: int) -> None:
    whole = scan_records(data, quote=34, limit=limit)
    first = scan_records(data[:cut], quote=34, final=False, limit=limit)
    rest = scan_records(data[first.consumed :], quote=34, limit=limit)
    starts = [*first.starts, *(rest.starts + first.consumed)]
    lines = [*first.lines, *(rest.lines + first.line_count)]
    assert starts == whole.starts.tolist()
    assert lines == whole.lines.tolist()
    assert [*first.flags, *rest.flags] == whole.flags.tolist()
    assert [*first.ends, *(rest.ends + first.consumed)] == whole.ends.tolist()


def test_a_quote_that_is_never_closed_takes_its_first_line_only() -> None:
    found = scan_records(b'1,"abc\r\n2,x\n3,y', quote=34)
    assert found.starts.tolist() == [0, 8, 12]
    assert found.ends.tolist() == [6, 11, 15]
    assert found.lines.tolist() == [0, 1, 2]
    assert found.flags.tolist() == [UNCLOSED_QUOTE, 0, 0]


def test_a_quote_that_stays_open_beyond_the_limit_is_never_closed() -> None:
    data = b'1,"' + b"x\n" * 20 + b'"\n2,y\n'
    assert scan_records(data, quote=34, limit=100).flags.tolist() == [SPANS_LINES, 0]
    assert scan_records(data, quote=34, limit=10).flags.tolist()[0] == UNCLOSED_QUOTE


def test_a_long_quoted_field_without_line_ends_has_no_limit() -> None:
    assert scan_records(b'1,"' + b"x" * 99 + b'"\n', quote=34, limit=10).flags.tolist() == [0]


@settings(max_examples=100, deadline=None)
@given(data=some_bytes, newline=st.booleans())
def test_gathered_lines(data: bytes, newline: bool) -> None:
    found = scan_records(data, skip=KEEP_BLANK)
    rows = np.arange(found.starts.size, dtype=np.int64)[::2]
    offsets, out = gather_lines(data, found, rows, newline=newline)
    end = b"\n" if newline else b""
    expected = [data[found.starts[row] : found.ends[row]] + end for row in rows]
    assert out.tobytes() == b"".join(expected)
    assert np.diff(offsets).tolist() == [len(line) for line in expected]


@settings(max_examples=100, deadline=None)
@given(data=some_bytes)
def test_lines_with(data: bytes) -> None:
    found = scan_records(data, skip=KEEP_BLANK)
    expected = [b"\t" in data[a:b] for a, b in zip(found.starts, found.ends, strict=True)]
    assert lines_with(data, found, 9).tolist() == expected
