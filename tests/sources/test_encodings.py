"""Other encodings: every byte comes back, whatever it was."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import SourceError
from headrace.sources.encodings import Transcoder, is_utf8

ENCODINGS = [
    *("latin-1", "cp1252", "ascii", "koi8-r", "utf-16", "utf-16-be", "utf-32"),
    *("gb18030", "gbk", "big5", "shift_jis", "euc-kr"),
]


def transcoded(encoding: str, data: bytes, size: int) -> tuple[bytes, bytes]:
    transcoder = Transcoder(encoding, data[:4])
    pieces = [data[i : i + size] for i in range(transcoder.mark_length, len(data), size)]
    utf8 = b"".join(transcoder.decode(piece, False) for piece in pieces) + transcoder.decode(b"", True)
    return utf8, data[: transcoder.mark_length] + transcoder.original(utf8)


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=40), size=st.integers(1, 9))
def test_any_bytes_come_back_with_their_length(encoding: str, data: bytes, size: int) -> None:
    utf8, back = transcoded(encoding, data, size)
    assert len(back) == len(data)
    assert transcoded(encoding, back, 99)[0] == utf8


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=12), size=st.integers(1, 9))
def test_text_is_what_python_decodes(encoding: str, text: str, size: int) -> None:
    data = text.encode(encoding, "ignore")
    utf8, back = transcoded(encoding, data, size)
    assert utf8.decode().removeprefix("\ufeff") == data.decode(encoding).removeprefix("\ufeff")
    assert back == data


def test_names_of_utf8() -> None:
    assert all(is_utf8(name) for name in ("utf-8", "UTF8", "utf_8", "utf-8-sig"))
    assert not is_utf8("latin-1")


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("utf8-x", "is not an encoding that Python knows"),
        ("rot13", "is no encoding of text files"),
        ("unicode_escape", "is no encoding of text files"),
        ("iso-2022-jp", "Convert the files to UTF-8 first"),
        ("utf-7", "Convert the files to UTF-8 first"),
    ],
)
def test_encodings_that_cannot_be(encoding: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        is_utf8(encoding)
