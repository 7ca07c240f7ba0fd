"""JSON Lines: every value exactly as the standard library reads it, whichever way it went."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.kernels.lines import scan_records
from headrace.sources import Column, Reader
from headrace.sources.json_exact import BadValue, read_line

A = [Column("a", "text")]
N = [Column("n", "number")]
L = [Column("l", "texts")]


def lines(*rows: str) -> bytes:
    return "\n".join(rows).encode() + b"\n"


@pytest.mark.parametrize("late_first", [False, True])
@pytest.mark.parametrize("block_bytes", [1, 1000, 8 << 20])
def test_null_first_text_later(read: Callable[..., Any], late_first: bool, block_bytes: int) -> None:
    rows = ['{"t": null}'] * 1000 + ['{"t": "x"}']
    found = read(
        lines(*(rows[::-1] if late_first else rows)), [Column("t", "text")], block_bytes, format="jsonl"
    )
    expected = [None] * 1000 + ["x"]
    assert found.columns["t"] == (expected[::-1] if late_first else expected)
    assert not found.bad


def test_a_text_where_a_number_is_wanted_comes_as_text(read: Callable[..., Any]) -> None:
    found = read(lines('{"n":1}', '{"n":"Nan"}', '{"n":3}', "{}", '{"n":""}'), N, format="jsonl")
    assert found.columns["n"] == ["1", "Nan", "3", None, ""]


@pytest.mark.parametrize("turned", [False, True])
def test_numbers_are_never_rounded(read: Callable[..., Any], turned: bool) -> None:
    literals = {
        "1": "1",
        "1001.0": "1001",
        "-0": "0",
        "0.1": "0.1",
        "1e3": "1000",
        "9007199254740993": "9007199254740993",
        "18446744073709551615": "18446744073709551615",
        "12345678901234567890123": "12345678901234567890123",
        "1e-7": "1e-07",
        "12345678901.5": "12345678901.5",
        "1.5e22": "15000000000000000000000",
        "5e-324": "5e-324",
        "true": "true",
        '"007"': "007",
        '"1.50"': "1.50",
    }
    keys = list(literals)[::-1] if turned else list(literals)
    content = lines(*(f'{{"a":{key},"n":{key},"l":[{key},null]}}' for key in keys))
    found = read(content, [*A, *N, *L], format="jsonl")
    assert found.columns["a"] == [literals[key] for key in keys]
    assert found.columns["n"] == found.columns["a"]
    assert found.columns["l"] == [[literals[key], None] for key in keys]


def test_integers_are_native_where_all_rows_allow_it(read: Callable[..., Any]) -> None:
    wanted = [
        Column("i", "text"),
        Column("u", "text"),
        Column("f", "text"),
        Column("x", "number"),
        Column("l", "numbers"),
        Column("b", "number"),
    ]
    row = '{"i":%d,"u":%d,"f":1.5,"x":2.5,"l":[1,2.5],"b":true}'
    found = read(lines(*(row % (i, i + 2**63) for i in range(50))), wanted, format="jsonl")
    assert {path: types.pop() for path, types in found.types.items()} == {
        "i": "int64",
        "u": "string",
        "f": "string",
        "x": "double",
        "l": "list<item: double>",
        "b": "string",
    }


def test_a_large_integer_among_floats_stays_exact(read: Callable[..., Any]) -> None:
    rows = ['{"n":0.5}'] * 200 + ['{"n":9007199254740993}', '{"n":-0.0}', '{"n":-0}']
    assert read(lines(*rows), N, format="jsonl").columns["n"][-3:] == ["9007199254740993", "0", "0"]


@pytest.mark.parametrize("block_bytes", [1, 8 << 20])
def test_places_and_blank_lines(read: Callable[..., Any], block_bytes: int) -> None:
    content = b'\xef\xbb\xbf{"a":1}\r\n\r\n \t\n{"a":2}\n[]\r{"a":3}'
    found = read(content, A, block_bytes, format="jsonl")
    assert found.columns["a"] == ["1", "2", "3"]
    assert found.rows == [0, 1, 3]
    assert found.lines == [1, 4, 6]
    assert found.byte_offsets == [3, 17, 28]
    assert found.raw == [b'{"a":1}', b'{"a":2}', b'{"a":3}']
    assert [(bad.row, bad.line, bad.byte_offset, bad.raw) for bad in found.bad] == [(2, 5, 25, b"[]")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("null", "a JSON object is expected, found null"),
        ("[]", "a JSON object is expected, found a list"),
        ("17", "a JSON object is expected, found the number 17"),
        ('"x"', "a JSON object is expected, found the text 'x'"),
        ('{"a":1', "not JSON: Expecting ',' delimiter at character 7 of the row"),
        ('{"a":1}{"a":2}', "not JSON: Extra data at character 8 of the row"),
        ('{"a":NaN}', "NaN is not JSON"),
        ('{"a":1,"z":Infinity}', "Infinity is not JSON"),
        ('{"a":1,"z":[-Infinity]}', "-Infinity is not JSON"),
        ('{"a":1,"a":2}', "a: the key 'a' stands twice in one object"),
        ('{"a":1,"\\u0061":2}', "a: the key 'a' stands twice in one object"),
        ('{"a":[1]}', "a: one value is expected, found a list"),
        ('{"a":{}}', "a: one value is expected, found an object"),
        ('{"a":"\\ud800"}', "holds half of a surrogate pair, which is no character"),
        ('{"z":"\\udc00"}', "holds half of a surrogate pair, which is no character"),
        ('{"a":1e999}', "a: 1e999 is beyond the range of float64"),
        ('{"a":"\x01"}', "not JSON: Invalid control character at character 7 of the row"),
        ('{"a":1}\x00', "not JSON: Extra data at character 8 of the row"),
        (
            '\ufeff{"a":1}',
            "not JSON: Expecting value at character 1 of the row",
        ),
    ],
)
def test_bad_lines_have_a_reason(read: Callable[..., Any], line: str, reason: str) -> None:
    found = read(lines('{"a":"first"}', line, '{"a":"last"}'), A, format="jsonl")
    assert found.columns["a"] == ["first", "last"]
    assert [(bad.line, bad.raw, bad.reason) for bad in found.bad] == [(2, line.encode(), reason)]


@pytest.mark.parametrize("bad", [b'{"a":"\xff"}', b'{"a":1,"z":"\xed\xa0\x80"}', b'{"a":1,"\xc3":0}'])
def test_invalid_utf8_anywhere_is_bad(read: Callable[..., Any], bad: bytes) -> None:
    found = read(b'{"a":1}\n' + bad + b'\n{"a":2}\n', A, format="jsonl")
    assert found.columns["a"] == ["1", "2"]
    assert found.bad[0].reason.startswith("not valid UTF-8")


def test_what_is_not_wanted_may_be_odd(read: Callable[..., Any]) -> None:
    rows = ['{"a":1,"z":1,"z":2}', '{"a":2,"z":1e999}', '{"a":3,"":{"a":[{}]}}', '{"a":"\\u0000"}']
    assert read(lines(*rows), A, format="jsonl").columns["a"] == ["1", "2", "3", "\0"]


@pytest.mark.parametrize("depth", [255, 256, 100_000])
@pytest.mark.parametrize("opening", ["[", '{"z":'])
def test_deep_nesting(read: Callable[..., Any], depth: int, opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    deep = '{"a":1,"z":' + opening * depth + "1" + closing * depth + "}"
    found = read(lines(deep, '{"a":2}'), A, format="jsonl")
    assert found.columns["a"] == (["1", "2"] if depth < 256 else ["2"])


def test_unicode_line_separators_are_characters(read: Callable[..., Any]) -> None:
    content = '{"a":"x\u2028y\u2029\x85\x7f"}\n'.encode()
    assert read(content, A, format="jsonl").columns["a"] == ["x\u2028y\u2029\x85\x7f"]


NESTED = [Column("ad.industry", "text"), Column("ad.deep.er", "number")]


@pytest.mark.parametrize("filler", [0, 300])
def test_dotted_paths(read: Callable[..., Any], filler: int) -> None:
    rows = [
        '{"ad":{"industry":"x","deep":{"er":1}}}',
        '{"ad":{"industry":"x"},"ad.industry":"literal"}',
        '{"ad":{"industry":"x"},"ad.industry":null}',
        '{"ad":null}',
        "{}",
        '{"ad":{}}',
        '{"ad":{"deep":null}}',
        '{"ad":5}',
        '{"ad":[{"industry":"x"}]}',
        '{"ad":{"industry":1},"ad":{"industry":2}}',
    ]
    found = read(lines(*rows[:1] * filler, *rows), NESTED, format="jsonl")
    assert found.columns["ad.industry"][filler:] == ["x", "literal", "x", None, None, None, None]
    assert found.columns["ad.deep.er"][filler:] == ["1", None, None, None, None, None, None]
    assert [bad.row - filler for bad in found.bad] == [7, 8, 9]


def test_a_name_that_is_value_and_object(read: Callable[..., Any]) -> None:
    wanted = [Column("a", "text"), Column("a.b", "text")]
    found = read(lines('{"a":"x"}', '{"a":"x","a.b":"y"}', '{"a.b":"z"}'), wanted, format="jsonl")
    assert found.columns == {"a": ["x", None], "a.b": ["y", "z"]}


def test_lists(read: Callable[..., Any]) -> None:
    rows = [
        '{"l":[1,2]}',
        '{"l":[]}',
        '{"l":null}',
        "{}",
        '{"l":["x",null,1.0,true]}',
        '{"l":"1,2"}',
        '{"l":[[1]]}',
        '{"l":[{}]}',
        '{"l":3}',
    ]
    found = read(lines(*rows), L, format="jsonl")
    assert found.columns["l"] == [["1", "2"], [], None, None, ["x", None, "1", "true"]]
    assert found.bad_lines == [6, 7, 8, 9]
    assert found.bad[0].reason == "l: a list is expected, found the text '1,2'"


def test_pairs(read: Callable[..., Any]) -> None:
    rows = [
        '{"p":{"1001":0.7,"x":2}}',
        '{"p":{}}',
        '{"p":null}',
        "{}",
        '{"p":{"a":null,"b":"0.50"}}',
        '{"p":{"a":1,"a":2}}',
        '{"p":[1]}',
        '{"p":{"a":[]}}',
    ]
    found = read(lines(*rows), [Column("p", "pairs")], format="jsonl")
    assert found.columns["p"] == [[("1001", "0.7"), ("x", "2")], [], None, None, [("a", None), ("b", "0.50")]]
    assert found.bad_lines == [6, 7, 8]


def test_pairs_of_every_size_and_shape(read: Callable[..., Any]) -> None:
    many = {str(i): i / 4 for i in range(70)}
    rows = [
        '{"p" : { "1" : 1 , "2" :2 } }',
        json.dumps({"p": many}),
        json.dumps({"p": {**dict.fromkeys("abc", 1), "\u00e9": "x"}}),
        '{"p":{"1":9007199254740993,"2":0.5}}',
        '{"p":{"1":1,"2":2,"1":3}}',
        '{"p":{"1":1,}}',
        '{"p":{"1":{}}}',
        '{"p":{"":true}}',
    ]
    found = read(lines(*rows), [Column("p", "pairs"), Column("x", "text")], format="jsonl")
    assert found.columns["p"] == [
        [("1", "1"), ("2", "2")],
        [(key, f"{value:.2f}".rstrip("0").rstrip(".")) for key, value in many.items()],
        [("a", "1"), ("b", "1"), ("c", "1"), ("é", "x")],
        [("1", "9007199254740993"), ("2", "0.5")],
        [("", "true")],
    ]
    assert found.bad_lines == [5, 6, 7]


ESCAPED = [
    '{"a":"\\u00e9","n":1.5,"l":[1,2],"ad":{"x":"\\n"}}',
    '{"a":"e\\u0301","n":1e-7,"l":["\\u00e9",null]}',
    '{"a":7,"n":9007199254740993,"ad":{"x":1}}',
    '{"a":"plain","n":2}',
    '{"a":"\\ud800"}',
    '{"a":"\\t","n":"n/a","ad":{"x":true}}',
]


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
@pytest.mark.parametrize("block_bytes", [3000, 8 << 20])
def test_many_rows_with_escapes(
    read: Callable[..., Any], order: slice, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.sources.jsonl._RUN_BYTES", 2000)
    wanted = [*A, *N, *L, Column("ad.x", "text")]
    rows = (ESCAPED[:1] * 200 + ESCAPED * 50 + ESCAPED[2:3] * 100 + ESCAPED[1:2] * 200)[order]
    found = read(lines(*rows), wanted, block_bytes, format="jsonl")
    one_by_one: dict[str, list[Any]] = {row: [] for row in ESCAPED}
    for row in ESCAPED:
        try:
            one_by_one[row] = read_line(row.encode(), wanted)
        except BadValue:
            continue
    expected = [one_by_one[row] for row in rows if one_by_one[row]]
    assert [list(row) for row in zip(*found.columns.values(), strict=True)] == expected
    assert len(found.bad) == rows.count(ESCAPED[4])


def test_one_very_long_line(read: Callable[..., Any]) -> None:
    long = "x" * (5 << 20)
    found = read(lines('{"a":1}', f'{{"a":"{long}"}}', '{"a":2}'), A, 1 << 16, format="jsonl")
    assert found.columns["a"] == ["1", long, "2"]


def test_empty_files(read: Callable[..., Any]) -> None:
    for content in (b"", b"\n", b"\xef\xbb\xbf", b" \n\r\n"):
        found = read(content, A, format="jsonl")
        assert found.columns["a"] == []
        assert not found.bad


def test_names_of_the_first_rows(opened: Callable[..., Reader]) -> None:
    reader = opened(lines('{"user_id":1}', "bad", '{"ad":{"x":1}}'), A, format="jsonl")
    assert reader.names(0) == ["user_id", "ad", "ad.x"]
    assert "Did you mean 'user_id'?" in str(reader.missing("userid", 0))


def test_json_test_suite(read: Callable[..., Any], shared_data: Path) -> None:
    files = sorted((shared_data / "dirty" / "JSONTestSuite" / "test_parsing").glob("*.json"))
    assert len(files) == 318
    for file in files:
        data = file.read_bytes()
        if data[:2] in (b"\xff\xfe", b"\xfe\xff") or scan_records(data).line_count:
            continue
        before, after = b'{"w":"before"}\n', b'\n{"w":"after"}\n'
        found = read(before + data + after, [Column("w", "text")], format="jsonl")
        assert len(found.bad) + len(found.rows) == 2 + bool(data.strip(b" \t"))
        if file.name.startswith("n_"):
            assert found.columns["w"] == ["before", "after"], file.name
        elif file.name.startswith("y_object"):
            assert len(found.rows) == 3, file.name
        elif file.name.startswith("y_"):
            assert found.bad[0].reason.startswith("a JSON object is expected"), file.name


def test_json_test_suite_inside_an_object(read: Callable[..., Any], shared_data: Path) -> None:
    """What must not parse is bad as a value too, also where nobody wants it; what must parse is good."""
    for file in sorted((shared_data / "dirty" / "JSONTestSuite" / "test_parsing").glob("*.json")):
        data = file.read_bytes()
        if scan_records(data).line_count or not data.strip():
            continue
        if file.name.startswith(("n_", "y_")):
            found = read(b'{"a":"x"}\n{"z":' + data + b"}\n", A, format="jsonl")
            assert len(found.bad) == file.name.startswith("n_"), file.name


def test_json_transform_suite_never_crashes(read: Callable[..., Any], shared_data: Path) -> None:
    for file in sorted((shared_data / "dirty" / "JSONTestSuite" / "test_transform").glob("*.json")):
        for kind in ("text", "number", "texts", "pairs"):
            found = read(b'{"z":' + file.read_bytes().strip() + b"}", [Column("z", kind)], format="jsonl")
            assert len(found.rows) + len(found.bad) == 1


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
)
values = (
    scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.sampled_from("abn"), scalars, max_size=2)
)
objects = st.dictionaries(st.sampled_from(["a", "b", "n", "a.b", "l", "p", "z"]), values, max_size=4)
odd_lines = st.sampled_from(
    [
        b"",
        b" ",
        b"null",
        b"{",
        b'{"a":1,}',
        b'{"a":01}',
        b'{"n":1.}',
        b'{"z":NaN}',
        b'{"z":"NaN"}',
        b'{"z": Inf}',
        b'{"n":1e400}',
        b'{"n":-0.0}',
        b'{"n":9007199254740993.0}',
        b'{"a":"\xff"}',
        b'{"a":1}{"a":2}',
        b'{"a":\t1 }',
        b'{"a":"\\ud83d\\ude00"}',
        b'{"a":"\\ud83d"}',
        b'{"n":1,"n":2}',
        b'{"z":1,"z":2}',
        b"\x00",
        b'{"l":[1,2,[3]]}',
        b'{"p":{"1":1,"1":2}}',
        b'{"l":[-0.0,1e2,-0]}',
        b'{"a":{"b":1}}',
        b'{"a":{"b":{}}}',
        b"{}",
        b'[{"a":1}]',
    ]
)
json_lines = objects.map(lambda value: json.dumps(value).encode()) | objects.map(
    lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
)
WANTED = [
    Column("a", "text"),
    Column("n", "number"),
    Column("l", "numbers"),
    Column("z", "texts"),
]


@pytest.mark.parametrize(
    "wanted", [WANTED, [*A, *N, *L, Column("p", "pairs")], [Column("a.b", "number"), *L]]
)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.lists(st.tuples(json_lines | odd_lines, st.integers(1, 4)), max_size=10),
    block_bytes=st.sampled_from([1, 40, 8 << 20]),
)
def test_the_fast_way_gives_what_the_exact_way_gives(
    read: Callable[..., Any], wanted: list[Column], content: list[tuple[bytes, int]], block_bytes: int
) -> None:
    rows = [line for line, times in content for _ in range(times)]
    found = read(b"\n".join(rows), wanted, block_bytes, format="jsonl")
    expected: dict[str, list[Any]] = {column.path: [] for column in wanted}
    bad = []
    for number, line in enumerate(rows, 1):
        if not line.strip(b" \t"):
            continue
        try:
            for column, value in zip(wanted, read_line(line, wanted), strict=True):
                expected[column.path].append(value)
        except BadValue as reason:
            bad.append((number, str(reason)))
    assert found.columns == expected
    assert [(row.line, row.reason) for row in found.bad] == bad


def test_many_bad_rows_among_rows_that_only_arrow_reads(read: Callable[..., Any]) -> None:
    """A run of them is refused, and read exactly; each row comes once, good or bad."""
    rows = [
        f'{{"a": "caf\\u00e9 {n}", "n": {n}}}' if n % 3 else f'{{"a": "caf\\u00e9 {n}", "n": oops}}'
        for n in range(30_000)
    ]
    found = read("\n".join(rows).encode(), [Column("a", "text"), Column("n", "number")], format="jsonl")
    assert found.rows == [n for n in range(30_000) if n % 3]
    assert found.columns["a"] == [f"caf\u00e9 {n}" for n in range(30_000) if n % 3]
    assert [bad.row for bad in found.bad] == [n for n in range(30_000) if not n % 3]
    assert {bad.reason.partition(" at ")[0] for bad in found.bad} == {"not JSON: Expecting value"}
