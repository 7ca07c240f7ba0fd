"""CSV and TSV: odd bytes, drifting rows, headers, encodings; against Python's csv where that is strict."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import SourceError
from headrace.sources import Column, Reader

ID_PRICE = [Column("id", "text"), Column("price", "number")]
A_B = [Column("a", "text"), Column("b", "text")]


@pytest.mark.parametrize("moved_by", [0, 40_000])
def test_bad_and_drifting_rows(read: Callable[..., Any], moved_by: int) -> None:
    good = b"9,9\n" * moved_by
    found = read(b"id,price\n" + good + b"1,10\n2,20\n3,1.5\n4,007\n5\n6,7,8\n7,x\n", ID_PRICE)
    assert found.columns["id"][moved_by:] == ["1", "2", "3", "4", "7"]
    assert found.columns["price"][moved_by:] == ["10", "20", "1.5", "007", "x"]
    assert found.bad_lines == [6 + moved_by, 7 + moved_by]
    assert [bad.raw for bad in found.bad] == [b"5", b"6,7,8"]
    assert [bad.reason for bad in found.bad] == [
        "2 fields expected, 1 found",
        "2 fields expected, 3 found",
    ]
    assert [bad.row for bad in found.bad] == [4 + moved_by, 5 + moved_by]
    assert found.bad[0].byte_offset == 9 + 4 * moved_by + 5 + 5 + 6 + 6


@pytest.mark.parametrize("letters", range(17))
def test_nul_bytes_are_quarantined_wherever_they_stand(read: Callable[..., Any], letters: int) -> None:
    found = read(b"id,text\n1," + b"x" * letters + b'\0y\n2,"x,y"\n3,z\n', [Column("text", "text")])
    assert found.columns["text"] == ["x,y", "z"]
    assert found.bad_lines == [2]
    assert found.bad[0].reason == "holds a NUL byte"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("last", [b"", b"end"])
@pytest.mark.parametrize("block_bytes", [1, 7, 8 << 20])
def test_line_ends_of_every_kind(read: Callable[..., Any], end: bytes, last: bytes, block_bytes: int) -> None:
    content = end.join([b"\xef\xbb\xbfa,b", b'1,"x' + end + b'y"', b"", b'"","say ""hi"""', b"3,"])
    content += end if last else b""
    found = read(content, A_B, block_bytes)
    assert found.columns == {"a": ["1", "", "3"], "b": [f"x{end.decode()}y", 'say "hi"', None]}
    assert found.lines == [2, 5, 6]
    assert found.rows == [0, 1, 2]
    assert found.raw == [
        content[o:].split(end + b"3,")[0].split(end * 2)[0].split(end + b'""')[0]
        if o < found.byte_offsets[2]
        else b"3,"
        for o in found.byte_offsets
    ]
    assert not found.bad


def test_missing_is_what_is_not_quoted(read: Callable[..., Any]) -> None:
    found = read(b'a,b\n,""\n\\N,"\\N"\nNA,\\N \n', A_B, missing_values=("", "\\N"))
    assert found.columns == {"a": [None, None, "NA"], "b": ["", "\\N", "\\N "]}


def test_no_missing_values_at_all(read: Callable[..., Any]) -> None:
    assert read(b"a,b\n,\\N\n", A_B, missing_values=()).columns == {"a": [""], "b": ["\\N"]}


def test_ids_are_never_numbers(read: Callable[..., Any]) -> None:
    found = read(b"a,b\n007,623049e6\n18446744073709551615,1001.0\n", A_B)
    assert found.columns == {"a": ["007", "18446744073709551615"], "b": ["623049e6", "1001.0"]}
    assert found.types == {"a": {"string"}, "b": {"string"}}


@pytest.mark.parametrize("block_bytes", [1, 8 << 20])
def test_an_unclosed_quote_swallows_nothing(read: Callable[..., Any], block_bytes: int) -> None:
    found = read(b'a,b\n1,x\n2,"oops\n3,y\n4,z\n', A_B, block_bytes)
    assert found.columns["a"] == ["1", "3", "4"]
    assert found.bad_lines == [3]
    assert found.bad[0].raw == b'2,"oops'


def test_lines_that_a_lost_quote_joined_are_all_bad(read: Callable[..., Any]) -> None:
    found = read(b'a,b\n1,"oops\n2,x\n3,"fine"\n4,y\n5,"p\nq",r\n6,z\n', A_B)
    assert found.columns["a"] == ["4", "6"]
    assert [(bad.line, bad.row, bad.raw) for bad in found.bad] == [
        (2, 0, b'1,"oops'),
        (3, 0, b"2,x"),
        (4, 0, b'3,"fine"'),
        (6, 2, b'5,"p'),
        (7, 2, b'q",r'),
    ]
    assert "quote" in found.bad[0].reason
    assert "quotes join several lines" in found.bad[3].reason


def test_quoting_off(read: Callable[..., Any]) -> None:
    found = read(b'a\tb\n"1\tx"\n2"\t"y\n', A_B, format="tsv", quote="")
    assert found.columns == {"a": ['"1', '2"'], "b": ['x"', '"y']}


def test_a_quote_inside_an_unquoted_field_is_a_character(read: Callable[..., Any]) -> None:
    assert read(b'a,b\n5" pipe,x\n', A_B).columns["a"] == ['5" pipe']


def test_other_quotes_and_delimiters(read: Callable[..., Any]) -> None:
    found = read(b"a;b\n'x;''y';\"\n", A_B, delimiter=";", quote="'")
    assert found.columns == {"a": ["x;'y"], "b": ['"']}


def test_invalid_utf8_is_a_bad_row(read: Callable[..., Any]) -> None:
    found = read(b"a,b\n1,\xff\n2,\xc3\xa9\n3,\xed\xa0\x80\n", A_B)
    assert found.columns == {"a": ["2"], "b": ["é"]}
    assert [(bad.line, bad.raw) for bad in found.bad] == [(2, b"1,\xff"), (4, b"3,\xed\xa0\x80")]


def test_a_mark_inside_the_file_is_a_character(read: Callable[..., Any]) -> None:
    found = read("a,b\n1,x\n\ufeff2,y\n".encode(), A_B, 4)
    assert found.columns["a"] == ["1", "\ufeff2"]


def test_unicode_line_separators_are_characters(read: Callable[..., Any]) -> None:
    found = read("a,b\n1\u2028x,\x85\x0b\x0c\x1c\u2029\n".encode(), A_B)
    assert found.columns == {"a": ["1\u2028x"], "b": ["\x85\x0b\x0c\x1c\u2029"]}


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"a,b", b"a,b\n", b"\n\na,b\r\n\r\n"])
def test_files_without_rows(read: Callable[..., Any], content: bytes) -> None:
    found = read(content, A_B)
    assert found.columns == {"a": [], "b": []}
    assert not found.bad


def test_columns_go_by_name_whatever_their_order(read: Callable[..., Any]) -> None:
    found = read({"1": b"a,b\n1,x\n", "2": b"b,z,a\ny,?,2\n"}, A_B)
    assert found.columns == {"a": ["1", "2"], "b": ["x", "y"]}


def test_a_missing_column_is_named(opened: Callable[..., Reader]) -> None:
    reader = opened({"1": b"user_id,b\n", "2": b"userid,b\n"}, [Column("user_id", "text")])
    with pytest.raises(SourceError, match=r"2: there is no column 'user_id'. Did you mean 'userid'\?"):
        reader.check()
    with pytest.raises(SourceError, match="2: there is no column 'user_id'"):
        list(reader.blocks())


def test_an_optional_column_may_be_absent(read: Callable[..., Any]) -> None:
    found = read(
        {"1": b"a\n1\n", "2": b"a,b\n2,x\n"}, [Column("a", "text"), Column("b", "text", optional=True)]
    )
    assert found.columns == {"a": ["1", "2"], "b": [None, "x"]}


def test_two_columns_of_one_name(opened: Callable[..., Reader]) -> None:
    reader = opened(b"a,b,a\n1,2,3\n", A_B)
    with pytest.raises(SourceError, match="data:1: two columns are named 'a'"):
        reader.check()


def test_no_header(read: Callable[..., Any]) -> None:
    found = read(b"1,x\n2,y\n", A_B, header=False, columns=("b", "a"))
    assert found.columns == {"a": ["x", "y"], "b": ["1", "2"]}
    assert found.lines == [1, 2]


def test_declared_names_stand_for_the_header(read: Callable[..., Any]) -> None:
    assert read(b"x,x\n1,2\n", A_B, columns=("a", "b")).columns == {"a": ["1"], "b": ["2"]}


def test_typed_headers_are_just_names(read: Callable[..., Any]) -> None:
    found = read(b"user_id:token\trating:float\n1\t2.5\n", [Column("rating:float", "number")], format="tsv")
    assert found.columns["rating:float"] == ["2.5"]


@pytest.mark.parametrize("header", [b'a,"b\n1,2\n', b'"a"x,b\n', b"a,\xff\n", b"a,\0\n"])
def test_a_damaged_header_is_an_error(opened: Callable[..., Reader], header: bytes) -> None:
    with pytest.raises(SourceError, match="data:1: the header"):
        opened(header, [Column("a", "text")]).check()


def test_a_quoted_header_may_span_lines(read: Callable[..., Any]) -> None:
    found = read(b'"a\nx",b\n1,2\n', [Column("a\nx", "text")])
    assert (found.columns["a\nx"], found.lines) == (["1"], [3])


def test_a_very_wide_first_row(read: Callable[..., Any]) -> None:
    names = ",".join(f"c{i}" for i in range(20_000)).encode()
    found = read(names + b"\n" + b"," * 19_998 + b"x,y\n1,2\n", [Column("c19999", "text")])
    assert found.columns["c19999"] == ["y"]
    assert found.bad_lines == [3]


@pytest.mark.parametrize("block_bytes", [1, 50, 8 << 20])
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-be", "gb18030", "utf-32", "utf-8-sig"])
def test_declared_encodings(read: Callable[..., Any], encoding: str, block_bytes: int) -> None:
    text = "ü" if encoding == "latin-1" else "汉字😀"
    content = f'a,b\n1,{text}\n2,"{text}\n{text}"\n3\n4,x'.encode(encoding)
    found = read(content, A_B, block_bytes, encoding=encoding)
    assert found.columns == {"a": ["1", "2", "4"], "b": [text, f"{text}\n{text}", "x"]}
    codec = {"utf-16": "utf-16-le", "utf-32": "utf-32-le", "utf-8-sig": "utf-8"}.get(encoding, encoding)
    assert found.raw[0] == f"1,{text}".encode(codec)
    for offset, raw in zip(found.byte_offsets, found.raw, strict=True):
        assert content[offset : offset + len(raw)] == raw
    assert [content[bad.byte_offset :][: len(bad.raw)] for bad in found.bad] == ["3".encode(codec)]


def test_bytes_that_are_not_of_the_declared_encoding(read: Callable[..., Any]) -> None:
    content = "a,b\n1,汉\n".encode("gb18030") + b"2,\xff\xff\n3,x\n"
    found = read(content, A_B, encoding="gb18030")
    assert found.columns["a"] == ["1", "3"]
    assert [(bad.line, bad.raw, bad.byte_offset) for bad in found.bad] == [(3, b"2,\xff\xff", 9)]
    assert "encoding" in found.bad[0].reason


def test_utf16_that_is_not_declared(opened: Callable[..., Reader]) -> None:
    with pytest.raises(SourceError, match='Write encoding = "utf-16"'):
        opened("a,b\n1,2\n".encode("utf-16"), A_B).check()


@pytest.mark.parametrize("most", [1, 3, 1 << 17])
def test_blocks_of_very_short_rows_are_divided(
    read: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("headrace.sources.cutter.MOST_ROWS", most)
    content = b'a,b\n1,x\n\n2,"y\ny"\n3\n\r\n4,z\n5,w\n\n\n6,"oops\n7,v\n\n'
    found = read(content, A_B)
    assert found.columns["a"] == ["1", "2", "4", "5", "7"]
    assert found.lines == [2, 4, 8, 9, 13]
    assert found.bad_lines == [6, 12]
    assert [
        content[o : o + len(raw)] for o, raw in zip(found.byte_offsets, found.raw, strict=True)
    ] == found.raw


def test_csv_spectrum(read: Callable[..., Any], shared_data: Path) -> None:
    folder = shared_data / "dirty" / "csv-spectrum"
    files = sorted(folder.rglob("*.csv"))
    assert len(files) == 12
    for file in files:
        text = io.StringIO(file.read_bytes().decode(), newline="")
        expected = list(csv.DictReader(text))
        if file.stem != "location_coordinates":  # its JSON holds another telephone number
            truth = next(folder.rglob(f"{file.stem}.json")).read_text()
            assert json.loads(json.dumps(expected)) == json.loads(
                truth.replace("\\r", "")
            )  # no CR in the CSV
        names = list(expected[0])
        found = read(file.read_bytes(), [Column(name, "text") for name in names], missing_values=())
        rows = [dict(zip(names, row, strict=True)) for row in zip(*found.columns.values(), strict=True)]
        assert rows == expected, file.name
        assert not found.bad


fields = st.text(alphabet='a,"\n\r é\t;\u2028', max_size=6)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(fields, fields, fields), max_size=12),
    block_bytes=st.sampled_from([1, 3, 17, 1000]),
    style=st.sampled_from([(csv.QUOTE_ALL, "\n"), (csv.QUOTE_ALL, "\r\n"), (csv.QUOTE_MINIMAL, "\r\n")]),
)
def test_what_pythons_csv_writes_is_read_back(
    read: Callable[..., Any], rows: list[tuple[str, ...]], block_bytes: int, style: tuple[Any, str]
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=style[0], lineterminator=style[1]).writerows([("x", "y", "z"), *rows])
    columns = [Column(name, "text") for name in "xyz"]
    found = read(text.getvalue().encode(), columns, block_bytes, missing_values=())
    assert list(zip(*found.columns.values(), strict=True)) == rows
    assert not found.bad
