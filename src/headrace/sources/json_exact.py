"""One JSON line at a time, exactly: what every faster way of reading JSON must agree with.

The standard library's ``json`` parses; numbers keep their literal. What a wanted
column may hold is decided here, once, for both ways.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from headrace.kernels.json_checks import nesting_depth
from headrace.sources.batch import Column, Kind
from headrace.sources.values import number_text

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
DEEPEST = 256
"""A line with more ``[`` and ``{`` open at once is a bad row."""


class BadValue(Exception):  # noqa: N818 (carries the reason for a bad row, never reaches a user as an error)
    """Why a row cannot be read as declared."""


class Integer(str):
    """The text of a JSON integer."""

    __slots__ = ()


class Float(str):
    """The text of a JSON number with a fraction or an exponent."""

    __slots__ = ()


class Boolean(str):
    """``"true"`` or ``"false"``."""

    __slots__ = ()


class _Object(dict[str, Any]):
    """A JSON object that remembers which of its keys came twice."""

    repeated: frozenset[str] = frozenset()


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        made.repeated = frozenset(name for name in made if names.count(name) > 1)
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise BadValue(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=Integer, parse_float=Float, parse_constant=_refuse_constant
)


def parse_line(line: bytes) -> dict[str, Any]:
    """Parse one line whose value must be an object.

    Raises:
        BadValue: It is not valid UTF-8, not JSON, not an object, or nested too deeply.
    """
    if nesting_depth(line) > DEEPEST:
        raise BadValue(f"nested more than {DEEPEST} deep")
    value = _decode(line)
    if not isinstance(value, dict):
        raise BadValue(f"a JSON object is expected, found {_what(value)}")
    return value


def _decode(line: bytes) -> Any:
    try:
        text = line.decode()
        value = _DECODER.decode(text)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise BadValue(f"not valid UTF-8: {error.reason} at byte {error.start} of the row") from None
    except UnicodeEncodeError:
        raise BadValue("holds half of a surrogate pair, which is no character") from None
    except json.JSONDecodeError as error:
        message = error.msg.removesuffix(" at")
        raise BadValue(f"not JSON: {message} at character {error.pos + 1} of the row") from None
    except RecursionError:
        raise BadValue("nested too deeply") from None
    return value


def read_line(line: bytes, columns: Sequence[Column]) -> list[Any]:
    """Return the wanted values of one line.

    Returns:
        For each column None, text (``Integer``, ``Float``, ``Boolean`` or a JSON string), a list of
        texts and None, or a list of (key, text) pairs.

    Raises:
        BadValue: The line or one of the wanted values cannot be read as declared.
    """
    row = parse_line(line)
    return [_judged(_at(row, column.path), column) for column in columns]


def names_in(row: dict[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted paths of an object's values, nested objects included."""
    names = []
    for name, value in row.items():
        names.append(prefix + name)
        if isinstance(value, dict):
            names += names_in(value, f"{prefix}{name}.")
    return names


def _at(row: dict[str, Any], path: str) -> Any:
    literal = _member(row, path, path)
    if literal is not None or "." not in path:
        return literal
    value: Any = row
    for name in path.split("."):
        value = _member(value, name, path)
        if value is None:
            return None
    return value


def _member(value: Any, name: str, path: str) -> Any:
    if not isinstance(value, _Object):
        raise BadValue(f"{path}: an object is expected around {name!r}, found {_what(value)}")
    if name in value.repeated:
        raise BadValue(f"{path}: the key {name!r} stands twice in one object")
    return value.get(name)


def _judged(value: Any, column: Column) -> Any:
    return None if value is None else _JUDGES[column.kind](value, column.path)


def _scalar(value: Any, path: str) -> str:
    if value is True or value is False:
        return Boolean("true" if value else "false")
    if isinstance(value, (Integer, Float)):
        try:
            return type(value)(number_text(value))
        except OverflowError:
            raise BadValue(f"{path}: {value[:40]} is beyond the range of float64") from None
    if isinstance(value, str):
        return value
    raise BadValue(f"{path}: one value is expected, found {_what(value)}")


def _list(value: Any, path: str) -> list[str | None]:
    if not isinstance(value, list):
        raise BadValue(f"{path}: a list is expected, found {_what(value)}")
    return [None if element is None else _scalar(element, path) for element in value]


def _pairs(value: Any, path: str) -> list[tuple[str, str | None]]:
    if not isinstance(value, _Object):
        raise BadValue(f"{path}: an object of keys and numbers is expected, found {_what(value)}")
    if value.repeated:
        raise BadValue(f"{path}: the key {min(value.repeated)!r} stands twice in one object")
    return [(key, None if weight is None else _scalar(weight, path)) for key, weight in value.items()]


_JUDGES: dict[Kind, Callable[[Any, str], Any]] = {
    "text": _scalar,
    "number": _scalar,
    "texts": _list,
    "numbers": _list,
    "pairs": _pairs,
}


def _what(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    shown = value if len(value) <= 40 else f"{value[:40]}…"
    return f"the number {shown}" if isinstance(value, (Integer, Float)) else f"the text {shown!r}"
