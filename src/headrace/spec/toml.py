"""TOML with line numbers: ``tomllib`` reads the values, a scan finds the line of each key.

The scan follows the grammar of keys, tables, strings, arrays and inline tables, and
leaves every value to ``tomllib``. It never fails: on text that is no TOML it stops,
and gives the lines that it found until then.
"""

from __future__ import annotations

import bisect
import contextlib
import re
import tomllib
from collections.abc import Generator, Iterator
from typing import Any

from headrace.spec.problems import Path, dotted

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK_IN_LINE = re.compile(r"[ \t]*")
_KEY_PART = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"'.=\[\]{}#,]+)"""
_KEY = re.compile(rf"[ \t]*{_KEY_PART}(?:[ \t]*\.[ \t]*{_KEY_PART})*[ \t]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")'
    r"|'''.*?'{3,5}(?!')"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]+")
_POSITION = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


_DEEPEST = 100
"""Values that are nested deeper get no line numbers of their own."""


class TomlError(ValueError):
    """Text that is no TOML.

    Attributes:
        lines: Each mistake as its line number, from 1, and what is wrong.
    """

    def __init__(self, lines: list[tuple[int, str]]) -> None:
        self.lines = lines
        super().__init__(lines)


def parse_toml(content: bytes) -> dict[str, Any]:
    """Return the tables of a TOML file; a byte order mark is passed over.

    Raises:
        TomlError: The bytes are no UTF-8, or the text is no TOML.
    """
    text = _decoded(content)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TomlError([(1, "tables and lists are nested too deeply to be read.")]) from None
    except ValueError as error:
        twice = list(_written_twice(text))
        raise TomlError(twice or [_placed(str(error), text)]) from None


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found = f"byte {error.start} is 0x{content[error.start]:02x}"
        raise TomlError([(line, f"{found}, which is no UTF-8. Save the file as UTF-8.")]) from None


def _placed(message: str, text: str) -> tuple[int, str]:
    found = _POSITION.search(message)
    if found is None:
        return 1, f"no TOML: {message}."
    line = int(found[1]) if found[1] else text.rstrip().count("\n") + 1
    return line, f"no TOML: {message[: found.start()]}."


def _written_twice(text: str) -> Iterator[tuple[int, str]]:
    first: dict[Path, int] = {}
    for path, line, defines in _Scan(text).found():
        if defines and path in first:
            yield line, f"{dotted(path)} is written twice; first on line {first[path]}."
        if defines:
            first.setdefault(path, line)


def where_keys_are(text: str) -> dict[Path, int]:
    """Return the line, from 1, of every key, table and list element of a TOML text.

    A table that is never written by itself, such as ``a`` in ``[a.b]``, has the line
    where it is first named.
    """
    lines: dict[Path, int] = {}
    for path, line, defines in _Scan(text).found():
        if defines or path not in lines:
            lines[path] = line
    return lines


class _UnreadableError(Exception):
    """The text is no TOML from here on."""


class _Scan:
    """One pass over a TOML text; ``at`` is the next character."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self.newlines = [found.start() for found in re.finditer("\n", self.text)]
        self.elements: dict[Path, int] = {}

    def found(self) -> Iterator[tuple[Path, int, bool]]:
        """Yield path, line, and whether the key is written there and not only named on the way to another."""
        table: Path = ()
        with contextlib.suppress(_UnreadableError):
            while not self._ended():
                if self._next("[["):
                    table = yield from self._header("]]")
                elif self._next("["):
                    table = yield from self._header("]")
                else:
                    yield from self._pair(table, 0)

    def _header(self, closing: str) -> Generator[tuple[Path, int, bool], None, Path]:
        line = self._line()
        path: Path = ()
        parts = self._key()
        self._must(closing)
        for part in parts[:-1]:
            path = self._inside((*path, part))
            yield path, line, False
        path = (*path, parts[-1])
        if closing == "]]":
            yield path, line, False
            self.elements[path] = self.elements.get(path, 0) + 1
            path = self._inside(path)
        yield path, line, True
        return path

    def _inside(self, path: Path) -> Path:
        """Return the path of the present element where ``path`` is an array of tables."""
        return (*path, self.elements[path] - 1) if path in self.elements else path

    def _pair(self, table: Path, depth: int) -> Iterator[tuple[Path, int, bool]]:
        line, parts = self._line(), self._key()
        self._must("=")
        for length in range(1, len(parts)):
            yield (*table, *parts[:length]), line, False
        path = (*table, *parts)
        yield path, line, True
        yield from self._value(path, depth)

    def _value(self, path: Path, depth: int) -> Iterator[tuple[Path, int, bool]]:
        if depth > _DEEPEST:
            raise _UnreadableError
        self._match(_BLANK_IN_LINE)
        if self._next("["):
            yield from self._array(path, depth)
        elif self._next("{"):
            yield from self._inline_table(path, depth)
        elif self.text.startswith(('"', "'"), self.at):
            self._must_match(_STRING)
        else:
            self._must_match(_SCALAR)

    def _array(self, path: Path, depth: int) -> Iterator[tuple[Path, int, bool]]:
        place = 0
        while not self._closed("]"):
            yield (*path, place), self._line(), True
            yield from self._value((*path, place), depth + 1)
            place += 1
            if not self._closed(",", "]"):
                raise _UnreadableError
            if self.text[self.at - 1] == "]":
                return

    def _inline_table(self, path: Path, depth: int) -> Iterator[tuple[Path, int, bool]]:
        while not self._closed("}"):
            yield from self._pair(path, depth + 1)
            if not self._closed(",", "}"):
                raise _UnreadableError
            if self.text[self.at - 1] == "}":
                return

    def _key(self) -> Path:
        """Return the parts of a key; ``tomllib`` reads its quotes and escapes."""
        try:
            value: Any = tomllib.loads(f"{self._must_match(_KEY)} = 0")
        except ValueError:
            raise _UnreadableError from None
        parts = []
        while isinstance(value, dict):
            [(part, value)] = value.items()
            parts.append(part)
        return tuple(parts)

    def _ended(self) -> bool:
        self._match(_BLANK)
        return self.at == len(self.text)

    def _closed(self, *tokens: str) -> bool:
        self._match(_BLANK)
        return any(self._next(token) for token in tokens)

    def _next(self, token: str) -> bool:
        found = self.text.startswith(token, self.at)
        self.at += len(token) * found
        return found

    def _must(self, token: str) -> None:
        if not self._next(token):
            raise _UnreadableError

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[0]

    def _must_match(self, pattern: re.Pattern[str]) -> str:
        found = self._match(pattern)
        if found is None:
            raise _UnreadableError
        return found

    def _line(self) -> int:
        return bisect.bisect_left(self.newlines, self.at) + 1
