"""Parquet and Arrow IPC: every type, nested columns, odd and corrupt files."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from headrace import build
from headrace.errors import SourceError
from headrace.sources import Column, Reader, open_source
from headrace.sources.arrow_values import Converter, plain


def parquet(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def arrow(table: pa.Table, stream: bool = False, **options: Any) -> bytes:
    buffer = io.BytesIO()
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(buffer, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=2)
    return buffer.getvalue()


STORED: dict[str, tuple[str, Callable[[pa.Table], bytes]]] = {
    "parquet": ("parquet", parquet),
    "row groups": ("parquet", lambda table: parquet(table, row_group_size=2)),
    "parquet in gzip": ("parquet", lambda table: gzip.compress(parquet(table))),
    "file": ("arrow", arrow),
    "stream": ("arrow", lambda table: arrow(table, stream=True)),
    "zstd body": ("arrow", lambda table: arrow(table, compression="zstd")),
    "stream in gzip": ("arrow", lambda table: gzip.compress(arrow(table, stream=True))),
}
every_way = pytest.mark.parametrize("way", STORED)


@every_way
@pytest.mark.parametrize("block_bytes", [1, 8 << 20])
def test_rows_and_places(read: Callable[..., Any], way: str, block_bytes: int) -> None:
    form, store = STORED[way]
    table = pa.table({"a": ["x", None, "y", "z", ""], "n": [1, 2, None, 4, 5], "unwanted": range(5)})
    found = read(store(table), [Column("a", "text"), Column("n", "number")], block_bytes, format=form)
    assert found.columns == {"a": ["x", None, "y", "z", ""], "n": ["1", "2", None, "4", "5"]}
    assert found.rows == [0, 1, 2, 3, 4]
    assert found.lines == [1, 2, 3, 4, 5]
    assert found.byte_offsets == [-1] * 5
    assert found.raw[2] == b'{"a": "y", "n": null}'
    assert found.types == {"a": {"string"}, "n": {"int64"}}


MOMENT = datetime.datetime(2025, 6, 1, 8, 0, 0, 123000)
AWARE = MOMENT.replace(tzinfo=datetime.UTC)
SCALARS: list[tuple[pa.Array, list[str | None], str, list[Any], str]] = [
    (pa.array([1, None], pa.int8()), ["1", None], "int64", [1, None], "int64"),
    (pa.array([255], pa.uint8()), ["255"], "int64", [255], "int64"),
    (pa.array([2**64 - 1], pa.uint64()), [str(2**64 - 1)], "uint64", [2**64 - 1], "uint64"),
    (pa.array([-(2**63)]), [str(-(2**63))], "int64", [-(2**63)], "int64"),
    (
        pa.array([1001.0, 0.1, 1e-7, -0.0]),
        ["1001", "0.1", "1e-07", "0"],
        "string",
        [1001, 0.1, 1e-7, 0],
        "double",
    ),
    (
        pa.array([0.1, 1001], pa.float32()),
        ["0.1", "1001"],
        "string",
        [float(np.float32(0.1)), 1001.0],
        "double",
    ),
    (
        pa.array(np.array([0.5, 1000, 0.1], np.float16)),
        ["0.5", "1000", "0.1"],
        "string",
        [0.5, 1000.0, float(np.float16(0.1))],
        "double",
    ),
    (pa.array([True, False]), ["true", "false"], "string", ["true", "false"], "string"),
    (pa.array([Decimal("1.50")], pa.decimal128(9, 2)), ["1.50"], "string", ["1.50"], "string"),
    (pa.array(["a", None], pa.large_string()), ["a", None], "string", ["a", None], "string"),
    (pa.array(["a"], pa.string_view()), ["a"], "string", ["a"], "string"),
    (pa.array([b"a"], pa.binary()), ["a"], "string", ["a"], "string"),
    (pa.array([b"ab"], pa.binary(2)), ["ab"], "string", ["ab"], "string"),
    (pa.array(["x", "y", "x"]).dictionary_encode(), ["x", "y", "x"], "string", ["x", "y", "x"], "string"),
    (pa.array([7, None]).dictionary_encode(), ["7", None], "int64", [7, None], "int64"),
    (pa.nulls(2), [None, None], "string", [None, None], "string"),
    (
        pa.array([MOMENT], pa.timestamp("ms")),
        ["2025-06-01T08:00:00.123"],
        "string",
        [MOMENT],
        "timestamp[us]",
    ),
    (
        pa.array([AWARE], pa.timestamp("us", "Asia/Tokyo")),
        ["2025-06-01T08:00:00.123000Z"],
        "string",
        [AWARE],
        "timestamp[us, tz=UTC]",
    ),
    (
        pa.array([-1], pa.timestamp("ns")),
        ["1969-12-31T23:59:59.999999999"],
        "string",
        [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)],
        "timestamp[us]",
    ),
    (pa.array([MOMENT.date()]), ["2025-06-01"], "string", [datetime.datetime(2025, 6, 1)], "timestamp[us]"),
    (
        pa.array([MOMENT.date()], pa.date64()),
        ["2025-06-01"],
        "string",
        [datetime.datetime(2025, 6, 1)],
        "timestamp[us]",
    ),
    (pa.array([datetime.time(8, 1)]), ["08:01:00.000000"], "string", ["08:01:00.000000"], "string"),
    (pa.array([5], pa.duration("ms")), ["5"], "int64", [5], "int64"),
]


def one_column(array: pa.Array, kind: Any, tmp_path: Path) -> pa.Array:
    (tmp_path / "one.arrow").write_bytes(arrow(pa.table({"c": array})))
    reader = open_one(tmp_path / "one.arrow", [Column("c", kind)])
    return pa.concat_arrays([reader.parse(block).columns["c"] for block in reader.blocks()])


def open_one(path: Path, wanted: list[Column]) -> Reader:
    from types import SimpleNamespace

    form = "parquet" if path.suffix == ".parquet" else "arrow"
    options = {"delimiter": None, "quote": '"', "header": True, "columns": (), "encoding": "utf-8"}
    return open_source(
        SimpleNamespace(format=form, files=str(path), missing_values=(), **options), None, wanted
    )


@pytest.mark.parametrize("case", SCALARS, ids=lambda case: str(case[0].type))
def test_scalars(case: tuple[Any, ...], tmp_path: Path) -> None:
    array, text, text_type, number, number_type = case
    as_text = one_column(array, "text", tmp_path)
    assert str(as_text.type) == text_type
    assert [None if value is None else str(value) for value in as_text.to_pylist()] == text
    as_number = one_column(array, "number", tmp_path)
    assert str(as_number.type) == number_type
    assert as_number.to_pylist() == number


LISTS = [
    pa.array([[1, None], [], None]),
    pa.array([[1, None], [], None], pa.large_list(pa.int64())),
    pa.array([[1, None], [], None], pa.list_view(pa.int64())),
    pa.array([[1, None], [], None], pa.large_list_view(pa.int32())),
    pa.array([[1, None], [], None], pa.list_(pa.uint8())),
]


@pytest.mark.parametrize("array", LISTS, ids=lambda array: str(array.type))
def test_lists(array: pa.Array, tmp_path: Path) -> None:
    for kind in ("texts", "numbers"):
        found = one_column(array, kind, tmp_path)
        assert str(found.type) == "list<item: int64>"
        assert found.to_pylist() == [[1, None], [], None]


def test_other_lists(tmp_path: Path) -> None:
    fixed = pa.array([[1.0, 0.5], [2.0, 3.0]], pa.list_(pa.float32(), 2))
    assert one_column(fixed, "texts", tmp_path).to_pylist() == [["1", "0.5"], ["2", "3"]]
    assert one_column(fixed, "numbers", tmp_path).to_pylist() == [[1.0, 0.5], [2.0, 3.0]]
    assert one_column(pa.array(["1,2", None]), "texts", tmp_path).to_pylist() == ["1,2", None]
    assert one_column(pa.nulls(2), "texts", tmp_path).to_pylist() == [None, None]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("rows", [[["a"]], [["a"], None, ["b", "c"], []], [], [None], [["x"]] * 1000])
def test_views_of_lists(rows: list[list[str] | None], large: bool, tmp_path: Path) -> None:
    kind = (pa.large_list_view if large else pa.list_view)(pa.string())
    whole = pa.array([["before"], *rows], kind)
    for array in (pa.array(rows, kind), whole.slice(1)):
        found = plain(array)
        found.validate(full=True)
        assert found.to_pylist() == rows
    if rows:
        assert one_column(pa.array(rows, kind), "texts", tmp_path).to_pylist() == rows


def test_views_of_lists_in_any_order() -> None:
    elements = pa.array(["a", "b", "c"])
    views = pa.ListViewArray.from_arrays(
        pa.array([2, 0, 1], pa.int32()),
        pa.array([1, 2, 2], pa.int32()),
        elements,
        mask=pa.array([False, True, False]),
    )
    assert plain(views).to_pylist() == [["c"], None, ["b", "c"]]


def test_pairs(tmp_path: Path) -> None:
    expected = [[{"key": "1", "value": 0.5}, {"key": "2", "value": None}], [], None]
    pairs = [[(1, 0.5), (2, None)], [], None]
    for made in (
        pa.array(pairs, pa.map_(pa.int64(), pa.float64())),
        pa.array(pairs, pa.list_(pa.struct([("id", pa.int64()), ("w", pa.float32())]))),
    ):
        assert one_column(made, "pairs", tmp_path).to_pylist() == expected
    fields = pa.array(
        [{"1": 0.5, "2": None}, {}, None], pa.struct([("1", pa.float64()), ("2", pa.float64())])
    )
    assert one_column(fields, "pairs", tmp_path).to_pylist() == [[{"key": "1", "value": 0.5}], [], None]


@pytest.mark.parametrize(
    ("array", "kind", "message"),
    [
        (
            pa.array([[1]]),
            "text",
            "column 'c' has the Arrow type list<item: int64>, expected one value a row",
        ),
        (pa.array([{"x": 1}]), "number", "expected one value a row"),
        (pa.array([1]), "texts", "has the Arrow type int64, expected a list"),
        (pa.array([[1]]), "pairs", "expected a map"),
        (pa.array([{"x": 1, "y": [1]}]), "pairs", "has the Arrow type list<item: int64>, expected one value"),
    ],
)
def test_types_that_do_not_fit(array: pa.Array, kind: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"one.arrow: column 'c'") as error:
        one_column(array, kind, tmp_path)
    assert message in str(error.value)


@every_way
def test_nested_columns(read: Callable[..., Any], way: str) -> None:
    form, store = STORED[way]
    rows = [{"x": 1, "deep": {"y": "a"}}, None, {"x": None, "deep": None}]
    table = pa.table({"ad": rows, "ad.z": [7, 8, 9]})
    wanted = [Column("ad.x", "number"), Column("ad.deep.y", "text"), Column("ad.z", "text")]
    found = read(store(table), wanted, format=form)
    assert found.columns == {
        "ad.x": ["1", None, None],
        "ad.deep.y": ["a", None, None],
        "ad.z": ["7", "8", "9"],
    }


@every_way
def test_missing_and_optional_columns(
    opened: Callable[..., Reader], read: Callable[..., Any], way: str
) -> None:
    form, store = STORED[way]
    data = store(pa.table({"user_id": [1, 2, 3], "ad": [{"x": 1}] * 3}))
    for path, hint in (("userid", "Did you mean 'user_id'"), ("ad.y", "Did you mean 'ad.x'")):
        with pytest.raises(SourceError, match=re.escape(f"data: there is no column '{path}'. {hint}")):
            opened(data, [Column(path, "text")], format=form).check()
    assert read(data, [Column("x", "text", optional=True)], format=form).columns == {"x": [None] * 3}


@pytest.mark.parametrize("block_bytes", [1, 100, 8 << 20])
def test_lists_of_one_large_batch_in_blocks(read: Callable[..., Any], block_bytes: int) -> None:
    rows = [None if i % 5 == 0 else [float(i)] * (i % 4) for i in range(40)]
    pairs = [None if row is None else [(str(k), value) for k, value in enumerate(row)] for row in rows]
    table = pa.table(
        {"l": rows, "p": pa.array(pairs, pa.map_(pa.string(), pa.float64())), "unwanted": range(40)}
    )
    buffer = io.BytesIO()
    with pa.ipc.new_file(buffer, table.schema) as writer:
        writer.write_table(table)
    found = read(buffer.getvalue(), [Column("l", "texts"), Column("p", "pairs")], block_bytes, format="arrow")
    texts = [None if row is None else [str(int(value)) for value in row] for row in rows]
    assert found.columns["l"] == texts
    assert found.columns["p"] == [
        None if row is None else [(str(k), value) for k, value in enumerate(row)] for row in texts
    ]


@every_way
def test_no_rows(read: Callable[..., Any], way: str) -> None:
    form, store = STORED[way]
    found = read(store(pa.table({"a": pa.array([], pa.string())})), [Column("a", "text")], format=form)
    assert found.columns == {"a": []}


def test_two_columns_of_one_name(read: Callable[..., Any]) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(SourceError, match=r"two columns are named .a."):
        read(arrow(table), [Column("a", "text")], format="arrow")


@every_way
def test_text_that_is_not_utf8(read: Callable[..., Any], way: str) -> None:
    form, store = STORED[way]
    text = pa.array([b"x", b"\xff", None, b"y"]).view(pa.string())
    found = read(
        store(pa.table({"a": text, "n": range(4)})), [Column("a", "text"), Column("n", "text")], format=form
    )
    assert found.columns == {"a": ["x", None, "y"], "n": ["0", "2", "3"]}
    assert [(bad.row, bad.line, bad.reason) for bad in found.bad] == [(1, 2, "a: not valid UTF-8")]


def test_times_beyond_64_bits_of_microseconds(read: Callable[..., Any]) -> None:
    table = pa.table({"t": pa.array([0, 2**62, -(2**62)], pa.timestamp("s"))})
    found = read(arrow(table), [Column("t", "number")], format="arrow")
    assert found.rows == [0]
    assert [bad.row for bad in found.bad] == [1, 2]


@pytest.mark.parametrize(
    ("kind", "ticks", "texts"),
    [
        (pa.timestamp("s"), [0, 2**62, -(2**62), None], ["1970-01-01T00:00:00", None]),
        (pa.timestamp("us", "UTC"), [-(2**63), -1, None], ["1969-12-31T23:59:59.999999Z", None]),
        (pa.date32(), [2**31 - 1, 0, -(2**31), None], ["1970-01-01", None]),
        (pa.date64(), [-86_400_000, 86_400_000, None], ["1969-12-31", "1970-01-02", None]),
    ],
    ids=str,
)
def test_times_that_have_no_text_are_no_ids(
    read: Callable[..., Any], kind: pa.DataType, ticks: list[int | None], texts: list[str | None]
) -> None:
    """Arrow writes ``<value out of range: 2147483647>`` for them."""
    numbers = pa.array(ticks, pa.int32() if kind == pa.date32() else pa.int64())
    found = read(arrow(pa.table({"t": numbers.cast(kind)})), [Column("t", "text")], format="arrow")
    assert found.columns["t"] == texts
    assert {bad.reason for bad in found.bad} <= {"t: a time beyond what its text can hold"}
    assert [json.loads(bad.raw)["t"] for bad in found.bad] == [
        tick for tick in ticks if tick is not None and abs(tick) > 2**30
    ]


def test_dates_with_a_time_of_day_are_dates() -> None:
    """Files that hold them are refused; a table in memory may."""
    ticks = pa.array([86_400_001, -1, None, 2**62])
    array = pa.Array.from_buffers(pa.date64(), 4, ticks.buffers(), null_count=1)
    converted, bad = Converter(Column("d", "text"), "memory").convert(array)
    assert converted.to_pylist()[:3] == ["1970-01-02", "1969-12-31", None]
    assert list(bad) == [3]


def test_structs_of_several_types_are_pairs(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": 0.5, "c": "7", "d": True}, {"a": None, "b": None, "c": "x", "d": None}, None]
    expected = [
        [("a", "1"), ("b", "0.5"), ("c", "7"), ("d", "true")],
        [("c", "x")],
        None,
    ]
    found = one_column(pa.array(rows), "pairs", tmp_path).to_pylist()
    assert [row and [(pair["key"], pair["value"]) for pair in row] for row in found] == expected
    large = one_column(pa.array([{"a": 2**53 + 1, "b": 0.5}]), "pairs", tmp_path).to_pylist()
    assert large[0][0]["value"] == str(2**53 + 1)
    assert one_column(pa.array([{}, None], pa.struct([])), "pairs", tmp_path).to_pylist() == [[], None]


def test_a_large_row_group_comes_in_slices(read: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.sources.tables._LARGEST_GROUP", 1000)
    monkeypatch.setattr("headrace.sources.tables._ROWS_AT_ONCE", 100)
    data = parquet(pa.table({"a": range(1050)}), row_group_size=500)
    found = read(data, [Column("a", "text")], format="parquet")
    assert found.columns["a"] == [str(i) for i in range(1050)]
    assert found.rows == list(range(1050))


def kind_of(kind: pa.DataType) -> Any:
    if pa.types.is_map(kind):
        return None if pa.types.is_nested(kind.item_type) else "pairs"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return None if pa.types.is_nested(kind.value_type) else "texts"
    return None if pa.types.is_nested(kind) or pa.types.is_interval(kind) else "text"


def wanted_of(schema: pa.Schema) -> list[Column]:
    once = [f for f in schema if schema.names.count(f.name) == 1]
    return [Column(f.name, kind_of(f.type)) for f in once if kind_of(f.type)]


def read_table_file(path: Path, wanted: list[Column]) -> tuple[int, dict[str, list[Any]], list[str]]:
    reader = open_one(path, wanted)
    reader.check()
    batches = [reader.parse(block) for block in reader.blocks()]
    columns = {
        column.path: [value for batch in batches for value in batch.columns[column.path].to_pylist()]
        for column in reader.columns
    }
    return sum(map(len, batches)), columns, [bad.reason for batch in batches for bad in batch.bad]


def compare(expected: pa.Table, columns: dict[str, list[Any]], names: dict[str, str]) -> None:
    for path, kind in names.items():
        truth = expected.column(path).to_pylist()
        if kind == "text" and all(value is None or isinstance(value, (int, str)) for value in truth):
            assert [None if v is None else str(v).lower() for v in columns[path]] == [
                None if v is None else str(v).lower() for v in truth
            ]
        else:
            assert [value is None for value in columns[path]] == [value is None for value in truth]
        if kind == "texts":
            assert [None if v is None else len(v) for v in columns[path]] == [
                None if v is None else len(v) for v in truth
            ]


CORRUPT_CHECKSUM = ("datapage_v1-corrupt-checksum", "rle-dict-uncompressed-corrupt-checksum")
REFUSED = ("incorrect_map_schema", *CORRUPT_CHECKSUM)
TOO_LARGE = "large_string_map.brotli"  # unpacks to 2 GiB


def test_odd_parquet_files(shared_data: Path) -> None:
    files = sorted((shared_data / "dirty" / "parquet-testing" / "data").glob("*.parquet"))
    assert len(files) == 34
    for file in files:
        if file.stem == TOO_LARGE:
            continue
        if file.stem in REFUSED:
            with pytest.raises(SourceError, match=file.name):
                read_table_file(file, wanted_of(schema_or_guess(file)))
            continue
        expected = pq.read_table(file)
        rows, columns, bad = read_table_file(file, wanted_of(expected.schema))
        assert rows + len(bad) == expected.num_rows, file.name
        if not bad:
            compare(expected, columns, {column.path: column.kind for column in wanted_of(expected.schema)})
        else:
            assert all("not valid UTF-8" in reason for reason in bad), (file.name, bad[:3])


def test_corrupt_parquet_files(shared_data: Path) -> None:
    files = sorted((shared_data / "dirty" / "parquet-testing" / "bad_data").glob("*.parquet"))
    assert len(files) == 8
    for file in files:
        if file.stem == "ARROW-GH-43605":
            assert read_table_file(file, wanted_of(pq.read_schema(file)))[0] == 21_186
            continue
        schema = schema_or_guess(file)
        with pytest.raises(SourceError, match=file.name):
            read_table_file(file, wanted_of(schema) or [Column(schema.names[0], "pairs")])


def schema_or_guess(file: Path) -> pa.Schema:
    try:
        return pq.read_schema(file)
    except (OSError, pa.ArrowException):
        return pa.schema([("a", pa.string())])


def test_arrow_golden_files(shared_data: Path) -> None:
    folder = shared_data / "dirty" / "arrow-testing"
    files = sorted([*folder.rglob("*.arrow_file"), *folder.rglob("*.stream")])
    assert len(files) > 20
    for file in files:
        opened = (
            pa.ipc.open_file(file) if file.suffix == ".arrow_file" else pa.ipc.open_stream(file.read_bytes())
        )
        expected = opened.read_all()
        rows, columns, bad = read_table_file(file, wanted_of(expected.schema))
        assert rows + len(bad) == expected.num_rows, file.name
        if not bad:
            compare(expected, columns, {column.path: column.kind for column in wanted_of(expected.schema)})


@every_way
def test_a_flipped_byte_never_crashes(way: str, tmp_path: Path) -> None:
    form, store = STORED[way]
    table = pa.table(
        {"a": ["x", None, "yy"], "l": [[1, 2], None, []], "d": pa.array(["p", "q", "p"]).dictionary_encode()}
    )
    data = bytearray(store(table))
    path = tmp_path / f"flipped.{form}"
    wanted = [Column("a", "text"), Column("l", "texts"), Column("d", "text")]
    for place in range(0, len(data), max(1, len(data) // 250)):
        data[place] ^= 0x41
        path.write_bytes(data)
        data[place] ^= 0x41
        reader = open_one(path, wanted)
        try:
            assert sum(len(reader.parse(block)) for block in reader.blocks()) <= 3
        except SourceError:
            continue


@pytest.mark.parametrize("elements", ["dictionary", "run ends", "view", "fixed"])
def test_elements_of_lists_in_any_encoding(read: Callable[..., Any], elements: str) -> None:
    values = pa.array(["a", "bb", None, "a", "cc"])
    encoded = {
        "dictionary": values.dictionary_encode(),
        "run ends": pc.run_end_encode(values),
        "view": values.cast(pa.string_view()),
        "fixed": pa.array(["aa", "bb", None, "aa", "cc"], pa.binary(2)),
    }[elements]
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 5], pa.int32()), encoded)
    found = read(arrow(pa.table({"l": lists, "rest": [1, 2, 3]})), [Column("l", "texts")], format="arrow")
    texts = ["aa" if value == "a" and elements == "fixed" else value for value in values.to_pylist()]
    assert found.columns["l"] == [texts[:2], [], texts[2:]]


@pytest.mark.parametrize("way", ["arrow", "parquet"])
def test_a_column_whose_name_is_no_utf8(tmp_path: Path, way: str) -> None:
    table = pa.table({"abcdefgh": ["x"], "s": [{"ijklmnop": 1}]})
    path = tmp_path / f"a.{way}"
    if way == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    content = path.read_bytes()
    for name in (b"abcdefgh", b"ijklmnop"):
        path.write_bytes(content.replace(name, b"\xf6" + name[1:]))
        declared = {"name": "t", "source": {"files": str(path), "format": way}}
        feature = {"kind": "categorical", "column": "abcdefgh"}
        with pytest.raises(SourceError, match=rf"a\.{way}: cannot be read as {way}"):
            build({**declared, "features": {"f": feature}}, out=tmp_path / "store")
