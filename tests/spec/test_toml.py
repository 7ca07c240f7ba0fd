"""The line of every key, over TOML that is meant to mislead."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.spec.toml import TomlError, parse_toml, where_keys_are

NASTY = '''\
# [comment]  k = 1
"a b".'c.d' = 1 # z = 2
"\\u0041=" = """
[no]
k = 1 \\""" " """"
t = \'\'\'
x = '1'' y
\'\'\'
arr = [ # comment ]
  1, [2, "]"],

  { x = 1, "y.z" = [ {q=1} ] },
]
d = 2025-06-01 00:00:00
"" = ""
e = """"""
f = """a"""""
g = "\\\\" # "
  1234 . 5 = { }
[tab . "le"]
k={a.b=1,c={}}
[[aot]]
x=1
[[aot.sub]]
y=1
[[aot.sub]]
[aot.sub.z]
w.w=3
[[aot]]
x=2
[aot.sub]
'''
LINES = {
    ("a b",): 2,
    ("a b", "c.d"): 2,
    ("A=",): 3,
    ("t",): 6,
    ("arr",): 9,
    ("arr", 0): 10,
    ("arr", 1): 10,
    ("arr", 1, 0): 10,
    ("arr", 1, 1): 10,
    ("arr", 2): 12,
    ("arr", 2, "x"): 12,
    ("arr", 2, "y.z"): 12,
    ("arr", 2, "y.z", 0): 12,
    ("arr", 2, "y.z", 0, "q"): 12,
    ("d",): 14,
    ("",): 15,
    ("e",): 16,
    ("f",): 17,
    ("g",): 18,
    ("1234",): 19,
    ("1234", "5"): 19,
    ("tab",): 20,
    ("tab", "le"): 20,
    ("tab", "le", "k"): 21,
    ("tab", "le", "k", "a"): 21,
    ("tab", "le", "k", "a", "b"): 21,
    ("tab", "le", "k", "c"): 21,
    ("aot",): 22,
    ("aot", 0): 22,
    ("aot", 0, "x"): 23,
    ("aot", 0, "sub"): 24,
    ("aot", 0, "sub", 0): 24,
    ("aot", 0, "sub", 0, "y"): 25,
    ("aot", 0, "sub", 1): 26,
    ("aot", 0, "sub", 1, "z"): 27,
    ("aot", 0, "sub", 1, "z", "w"): 28,
    ("aot", 0, "sub", 1, "z", "w", "w"): 28,
    ("aot", 1): 29,
    ("aot", 1, "x"): 30,
    ("aot", 1, "sub"): 31,
}


def paths(value: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if above:
        yield above
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from paths(child, (*above, key))


def test_nasty_toml_by_hand() -> None:
    assert set(LINES) == set(paths(tomllib.loads(NASTY)))
    assert where_keys_are(NASTY) == LINES


def test_windows_line_ends() -> None:
    assert where_keys_are(NASTY.replace("\n", "\r\n")) == LINES


KEYS = st.one_of(
    st.sampled_from(["a", "b-1", "1", "a.b", "x y", "#", "=", "", "]", '"', "'", "é", "\\"]),
    st.text(max_size=3),
)
SCALARS = st.one_of(
    st.integers(-5, 5),
    st.booleans(),
    st.sampled_from(
        ["", "]", "}", "#", '"', '""""', "'", "'''", "\\", "a\nb", "[x]", "k = 1", '\\"""', "\n\n"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)


def written_text(draw: Any, text: str) -> str:
    escaped = "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08X}" for c in text)
    forms = [f'"{escaped}"', f'"""\n{escaped}"""']
    if text.isprintable() and "'" not in text:
        forms.append(f"'{text}'")
    if all(c.isprintable() or c == "\n" for c in text) and "'" not in text:
        forms.append(f"'''\n{text}'''")
    return draw(st.sampled_from(forms))


def written_key(draw: Any, key: str) -> str:
    bare = key.isascii() and key.replace("-", "a").replace("_", "a").isalnum()
    escaped = "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08X}" for c in key)
    forms = [f'"{escaped}"'] + [key] * bare
    if key.isprintable() and "'" not in key:
        forms.append(f"'{key}'")
    return draw(st.sampled_from(forms))


def written_value(draw: Any, value: Any) -> str:
    space = st.sampled_from(["", " ", "\n", " # ] } ' \"\n"])
    if isinstance(value, dict):
        pairs = [f"{written_key(draw, key)} = {written_value(draw, one)}" for key, one in value.items()]
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list):
        return "[" + "".join(f"{draw(space)}{written_value(draw, one)}{draw(space)}," for one in value) + "]"
    return written_text(draw, value) if isinstance(value, str) else str(value).lower()


@st.composite
def toml_texts(draw: Any) -> str:
    declared = draw(
        st.dictionaries(KEYS.filter(lambda key: max(key, default="") <= "\ud7ff"), VALUES, max_size=4)
    )
    lines = [f"{written_key(draw, key)} = {written_value(draw, value)}" for key, value in declared.items()]
    tables = draw(st.lists(st.lists(st.sampled_from(["t", "u", "v w"]), min_size=1, max_size=3), max_size=4))
    for number, table in enumerate(tables):
        path = ".".join(written_key(draw, part) for part in [f"table {number}", *table])
        lines.append(draw(st.sampled_from([f"[{path}]", f"[[{path}]]", f"[[{path}]]\nx = 1\n[[{path}]]"])))
        lines.append(f"k = {written_value(draw, draw(VALUES))}")
    return "\n".join(lines)


@settings(max_examples=150, deadline=None)
@given(toml_texts())
def test_the_scan_finds_the_keys_that_tomllib_finds(text: str) -> None:
    assert set(where_keys_are(text)) == set(paths(tomllib.loads(text)))


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("ab[]{}\"'\\#=.,\n 1"), max_size=30))
def test_the_scan_never_fails(text: str) -> None:
    where_keys_are(text)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (b"a = 1\nb = \n", 2, "no TOML: Invalid value"),
        (b"a = 1\n[b\n", 2, "no TOML"),
        (b"a = 'x\n", 1, "no TOML"),
        (b"a = 1\nb = 2025-02-30\n", 2, "no TOML"),
        (b"a = 1\n\nb = '\xff'\n", 3, "byte 12 is 0xff, which is no UTF-8. Save the file as UTF-8."),
        (b"a = 1\nb = 2\na = [\n1,\n]\n", 3, "a is written twice; first on line 1."),
        (b"[t]\nx.y = 1\n[u]\n[t]\n", 4, "t is written twice; first on line 1."),
        (b"[t]\nx.y = 1\nx.y = 2", 3, "t.x.y is written twice; first on line 2."),
        (b'[t]\nx = {a=1,"a"=2}', 2, "t.x.a is written twice; first on line 2."),
        (b"[[t]]\na = 1\n[[t]]\na = 1\na = 2", 5, "t[1].a is written twice; first on line 4."),
        (b"a = " + b"[" * 5000, 1, "tables and lists are nested too deeply to be read."),
        (b"a = " + b"1" * 5000, 1, "no TOML"),
        (b'a = """\n\n', 1, "no TOML"),
    ],
)
def test_what_is_no_toml_is_said_with_its_line(text: bytes, line: int, said: str) -> None:
    with pytest.raises(TomlError) as caught:
        parse_toml(text)
    assert caught.value.lines[0][0] == line
    assert caught.value.lines[0][1].startswith(said)


def test_all_keys_that_are_written_twice() -> None:
    with pytest.raises(TomlError) as caught:
        parse_toml(b"a = 1\nb = 2\na = 3\nb = 4\n")
    assert [line for line, _ in caught.value.lines] == [3, 4]


def test_a_byte_order_mark_is_passed_over() -> None:
    assert parse_toml("\ufeffa = 1\n".encode()) == {"a": 1}
