"""Fields of delimited records, against a state machine over characters."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.kernels import delimited
from headrace.kernels.lines import MALFORMED_QUOTE, UNCLOSED_QUOTE, scan_records

QUOTE, COMMA = 34, 44
PIECES = st.sampled_from(
    [b",", b'"', b'""', b"\n", b"a", b"1234567", b"12345678", b'"x",', b'"a""b",', b"\r\n"]
)


def fields_of(record: bytes) -> list[tuple[bytes, bool]]:
    """Read a record a byte at a time: each field's bytes, and whether it stood between quotes."""
    fields, field, quoted, inside, place = [], b"", False, False, 0
    while place < len(record):
        byte = record[place : place + 1]
        if inside and record[place : place + 2] == b'""':
            field, place = field + b'"', place + 1
        elif inside and byte == b'"':
            inside = False
        elif inside or (byte not in (b",", b'"')) or (byte == b'"' and field):
            field += byte
        elif byte == b'"':
            quoted = inside = True
        else:
            fields.append((field, quoted))
            field, quoted = b"", False
        place += 1
    return [*fields, (field, quoted)]


def read(data: bytes, wanted: list[int]) -> tuple[list[list[tuple[bytes, bool]]], list[int], list[bytes]]:
    """Return the wanted fields of each well-formed record, how many each has, and the records."""
    records = scan_records(data, quote=QUOTE)
    rows = np.flatnonzero(records.flags & (MALFORMED_QUOTE | UNCLOSED_QUOTE) == 0)
    view = np.frombuffer(data, np.uint8)
    begins, stops = np.full((2, len(wanted), rows.size), 0, np.int32)
    marks, counts = np.zeros((len(wanted), rows.size), np.uint8), np.empty(rows.size, np.int32)
    numbers = np.array(wanted, np.int64)
    delimited.split_fields(
        view, records.starts, records.ends, rows, COMMA, QUOTE, numbers, begins, stops, marks, counts
    )
    columns = []
    for field in zip(begins, stops, marks, strict=True):
        offsets = np.empty(rows.size + 1, np.int32)
        delimited.field_borders(view, *field, QUOTE, offsets)
        out = np.empty(offsets[-1], np.uint8)
        delimited.copy_fields(view, *field, QUOTE, offsets, out)
        texts = [out[a:b].tobytes() for a, b in itertools.pairwise(offsets)]
        columns.append(list(zip(texts, (field[2] != delimited.PLAIN).tolist(), strict=True)))
    return columns, counts.tolist(), [data[records.starts[row] : records.ends[row]] for row in rows]


@given(data=st.lists(PIECES, max_size=30).map(b"".join), wanted=st.sets(st.integers(0, 4), max_size=3))
@example(data=b'"a""",b\n"""",c\n"",\n', wanted={0, 1})
@settings(deadline=None, max_examples=200)
def test_fields_are_those_of_a_reader_that_goes_byte_by_byte(data: bytes, wanted: set[int]) -> None:
    columns, counts, records = read(data, sorted(wanted))
    expected = [fields_of(record) for record in records]
    assert counts == [len(fields) for fields in expected]
    for number, column in zip(sorted(wanted), columns, strict=True):
        for fields, found in zip(expected, column, strict=True):
            assert len(fields) <= number or found == fields[number]


@given(
    texts=st.lists(st.binary(max_size=3), min_size=1, max_size=9),
    missing=st.lists(st.binary(max_size=2), max_size=3),
    quoted=st.integers(0, 511),
)
@settings(deadline=None, max_examples=100)
def test_missing_is_what_is_spelled_so_and_not_quoted(
    texts: list[bytes], missing: list[bytes], quoted: int
) -> None:
    borders = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    marks = np.array([quoted >> place & 1 for place in range(len(texts))], np.uint8)
    valid = np.empty(len(texts), np.bool_)
    count = delimited.mark_missing(
        np.frombuffer(b"".join(texts) + b" ", np.uint8),
        borders[:-1],
        borders[1:],
        marks,
        np.frombuffer(b"".join(missing) + b" ", np.uint8),
        np.cumsum([0, *map(len, missing)]).astype(np.int64),
        valid,
    )
    expected = [bool(mark) or text not in missing for text, mark in zip(texts, marks, strict=True)]
    assert valid.tolist() == expected
    assert count == expected.count(False)
