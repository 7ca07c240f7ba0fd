"""Lines that a fast JSON parser must not see, and how deep a line is nested."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.kernels.json_checks import NEEDS_EXACT, NOT_AN_OBJECT, check_objects, nesting_depth
from headrace.kernels.lines import SKIP_BLANK, scan_records


def flags_of(lines: list[bytes]) -> list[int]:
    data = b"\n".join(lines)
    return check_objects(data, scan_records(data, skip=SKIP_BLANK), 256).tolist()


@pytest.mark.parametrize(
    ("line", "flag"),
    [
        (b'{"a":1}', 0),
        (b' \t{"a":1} ', 0),
        (b"null", NOT_AN_OBJECT),
        (b"[1]", NOT_AN_OBJECT),
        (b'{"a":1', NOT_AN_OBJECT),
        (b"{", NOT_AN_OBJECT),
        (b'{"a":NaN}', NEEDS_EXACT),
        (b'{"a": -Infinity}', NEEDS_EXACT),
        (b'{"a":[1, NaN]}', NEEDS_EXACT),
        (b'{"a":"no NaN or Infinity here"}', 0),
        (b'{"Name":"Inf"}', 0),
        (b'{"a":' + b"[" * 300 + b"]" * 300 + b"}", NEEDS_EXACT),
    ],
)
def test_lines_that_a_fast_parser_must_not_see(line: bytes, flag: int) -> None:
    assert flags_of([b'{"before":1}', line, b'{"after":1}']) == [0, flag, 0]


@settings(max_examples=100, deadline=None)
@given(
    value=st.recursive(st.text(alphabet='[]{}"\\a') | st.none(), lambda inner: st.lists(inner, max_size=3))
)
def test_nesting_depth(value: object) -> None:
    def depth(value: object) -> int:
        return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0

    assert nesting_depth(json.dumps(value).encode()) == depth(value)
