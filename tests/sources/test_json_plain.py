"""Plain rows in one pass: what is accepted is what the exact reader reads, and nothing more."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.sources import Column
from headrace.sources.json_exact import BadValue, read_line
from headrace.sources.json_plain import PlainJson

COLUMNS = (Column("a", "text"), Column("b", "number"), Column("c", "texts"), Column("d", "numbers"))


def read(lines: list[bytes]) -> tuple[list[list[Any]], list[bool]]:
    """Return the rows that were plain, with every number as its text, and which lines they were."""
    data = b"\n".join(lines)
    sizes = np.array([len(line) for line in lines], np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes + 1)[:-1]]).astype(np.int64)
    arrays, plain, _ = PlainJson(COLUMNS).read(data, starts, starts + sizes)
    for array in arrays:
        array.validate(full=True)
    rows = [list(row) for row in zip(*(as_texts(array) for array in arrays), strict=True)]
    return rows, plain.tolist()


def as_texts(array: pa.Array) -> list[Any]:
    if pa.types.is_list(array.type):
        return [
            None if row is None else [None if v is None else str(v) for v in row] for row in array.to_pylist()
        ]
    return [None if value is None else str(value) for value in array.to_pylist()]


def exact(line: bytes) -> list[Any] | None:
    try:
        values = read_line(line, COLUMNS)
    except BadValue:
        return None
    return [
        None if v is None else [None if e is None else str(e) for e in v] if isinstance(v, list) else str(v)
        for v in values
    ]


def check(lines: list[bytes]) -> None:
    rows, plain = read(lines)
    expected = [exact(line) for line, is_plain in zip(lines, plain, strict=True) if is_plain]
    assert [judged(row) for row in rows] == [judged(row) for row in expected]


def judged(row: list[Any] | None) -> list[Any]:
    """Return a row whose numbers, in columns of numbers, are compared as numbers: 0.0 is 0 there."""
    assert row is not None
    return [
        value if column.kind in ("text", "texts") else numbers(value)
        for column, value in zip(COLUMNS, row, strict=True)
    ]


def numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [numbers(element) for element in value]
    try:
        return Decimal(value)
    except (InvalidOperation, TypeError):
        return value


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
    st.sampled_from(["t1", "é", "007", ""]),
)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
objects = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", "e", "a b", ""]),
    st.one_of(scalars, st.lists(scalars, max_size=4), st.lists(st.integers(0, 99), max_size=4), documents),
    max_size=6,
)


@given(rows=st.lists(objects, min_size=1, max_size=5), spaces=st.booleans(), ascii_only=st.booleans())
@settings(deadline=None, max_examples=300)
def test_valid_json(rows: list[dict[str, Any]], spaces: bool, ascii_only: bool) -> None:
    separators = (" , ", "\t: ") if spaces else (",", ":")
    check([json.dumps(row, separators=separators, ensure_ascii=ascii_only).encode() for row in rows])


@given(
    row=objects,
    place=st.integers(0, 200),
    byte=st.sampled_from(list(b'{}[],:"\\0123456789-+.eEtfn \x00\x1fu')),
    cut=st.booleans(),
)
@settings(deadline=None, max_examples=600)
def test_json_with_one_byte_changed_or_cut(row: dict[str, Any], place: int, byte: int, cut: bool) -> None:
    line = bytearray(json.dumps(row).encode())
    place %= len(line)
    if cut:
        del line[place]
    else:
        line[place] = byte
    check([bytes(line), b'{"a":1}'])


@given(line=st.text(alphabet='{}[],:"ab01-.e \\ntrufls', max_size=24).map(str.encode))
@settings(deadline=None, max_examples=600)
def test_any_text(line: bytes) -> None:
    check([line, b'{"c":["x"],"d":[1,2.5]}'])


def test_every_file_of_the_parsing_suite(shared_data: Path) -> None:
    folder = shared_data / "dirty" / "JSONTestSuite" / "test_parsing"
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        if b"\n" in content:
            continue
        for line in (
            content,
            b'{"a":' + content + b"}",
            b'{"e":' + content + b"}",
            b'{"c":[' + content + b"]}",
        ):
            rows, plain = read([line])
            if plain[0] and path.name.startswith("n_") and line.startswith(b'{"e":'):
                json.loads(line)  # plain is valid, whatever the file's name says of it alone
            try:
                line.decode()
            except UnicodeDecodeError:
                continue  # the reader passes valid UTF-8 only
            if plain[0]:
                assert [judged(row) for row in rows] == [judged(exact(line))], path.name


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b'{"a":1,"b":2,"c":["x","y"],"d":[1,2]}', ["1", "2", ["x", "y"], ["1", "2"]]),
        (b' {"d" : [ ] , "c":[null,5,"t"], "a":"007" } ', ["007", None, [None, "5", "t"], []]),
        (b'{"e":{"a":[1,{"b":[]}]},"a":true,"b":1.50}', ["true", "1.5", None, None]),
        (b'{"a":18446744073709551615,"e":"\\n\\""}', ["18446744073709551615", None, None, None]),
        (b'{"a":1.50,"c":[2.0,0.1,1]}', ["1.5", None, ["2", "0.1", "1"], None]),
        (b"{}", [None, None, None, None]),
    ],
)
def test_plain_rows_by_hand(line: bytes, row: list[Any]) -> None:
    assert read([line]) == ([row], [True])


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":1,"a":2}',
        b'{"a":1.5e0}',
        b'{"c":[1E5]}',
        b'{"b":1e3}',
        b'{"b":-0}',
        b'{"b":01}',
        b'{"a":"\\u0041"}',
        b'{"\\u0061":1}',
        b'{"a":1}{"a":2}',
        b'{"a":1} x',
        b'{"a":[1]}',
        b'{"c":5}',
        b'{"e":tru}',
        b'{"e":[1,]}',
        b'{"e":[1}',
        b'{"e":' + b"[" * 100 + b"]" * 100 + b"}",
        b"null",
        b"",
        b"[1]",
        b'{"a"',
        b'{"a":1,}',
    ],
)
def test_what_is_left_to_the_library(line: bytes) -> None:
    rows, plain = read([line, b'{"a":"next"}'])
    assert plain == [False, True]
    assert rows == [["next", None, None, None]]
