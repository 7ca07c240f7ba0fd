"""Quarantine files: written, read back, the same bytes each time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import StoreError
from headrace.sources import BadRow, QuarantinedRow, read_quarantine, write_quarantine

ROW = QuarantinedRow.of(
    BadRow(0, 18230, 18231, 9120044, "price is 'n/a', a number is expected", b'{"p":"n/a"}'), "r.gz"
)


def test_a_row_is_one_json_object() -> None:
    assert json.loads(ROW.to_json()) == {
        "file": "r.gz",
        "row": 18230,
        "line": 18231,
        "byte_offset": 9120044,
        "reason": "price is 'n/a', a number is expected",
        "raw": '{"p":"n/a"}',
    }


def test_other_bytes_are_base64() -> None:
    row = QuarantinedRow("f", 0, 1, 0, "not valid UTF-8", b"a\xff")
    assert json.loads(row.to_json())["raw"] == "Yf8="
    assert json.loads(row.to_json())["base64"] is True


@settings(max_examples=200, deadline=None)
@given(raw=st.binary() | st.text().map(str.encode), reason=st.text(), file=st.text())
def test_a_row_survives(raw: bytes, reason: str, file: str) -> None:
    row = QuarantinedRow(file, 1, 2, -1, reason, raw)
    line = row.to_json()
    assert line.count(b"\n") == 1
    assert QuarantinedRow.from_json(line) == row


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "quarantine" / "00000.jsonl"
    assert write_quarantine(path, (ROW for _ in range(3))) == 3
    assert path.read_bytes() == ROW.to_json() * 3
    assert list(read_quarantine(path)) == [ROW] * 3


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"{}", b"null", b'{"raw": "?", "base64": true}', b"[" * 10**5, b"\xff"]
)
def test_a_file_changed_by_hand_is_told_with_its_line(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(ROW.to_json() + line + b"\n")
    with pytest.raises(StoreError, match=r"q.jsonl:2: not a quarantined row"):
        list(read_quarantine(path))
