"""Mistakes in a declaration: where each stands, what was found, and what is allowed."""

from __future__ import annotations

import datetime
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pydantic import ValidationError

from headrace.errors import did_you_mean

Path: TypeAlias = tuple[str | int, ...]
"""Keys and list places from the root of a spec: ``("features", "user_id", "min_count")``."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Problem:
    """One mistake.

    Attributes:
        path: What the message is about.
        text: What was found, what is allowed, what to do.
        at: The key whose line is shown, where it is not ``path`` itself.
    """

    path: Path
    text: str
    at: Path | None = None

    @property
    def place(self) -> Path:
        """The key whose line is shown."""
        return self.path if self.at is None else self.at

    def below(self, prefix: Path) -> Problem:
        """Return the same mistake seen from further up."""
        return replace(self, path=prefix + self.path, at=None if self.at is None else prefix + self.at)

    def line(self, where: str = "") -> str:
        """Return the message on one line, after ``where`` (``"ads.toml:24"``)."""
        return on_one_line(": ".join(part for part in (where, dotted(self.path), self.text) if part))


class ProblemsError(ValueError):
    """Carries mistakes out of a validator; users see a ``SpecError``."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"{len(self.problems)} mistakes")


def wrong(text: str) -> ProblemsError:
    """Return the mistake ``text`` of the value that is being validated."""
    return ProblemsError([Problem((), text)])


def dotted(path: Path) -> str:
    """Return a path as TOML writes it: ``features."user id".columns[2]``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += "." * bool(text) + (part if _BARE_KEY.fullmatch(part) else quoted(part))
    return text


def quoted(text: str) -> str:
    """Return ``text`` on one line between double quotes, as TOML and JSON write it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{on_one_line(escaped)}"'


def on_one_line(text: str) -> str:
    """Return a text without line breaks and other characters that cannot be seen or written."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04X}" for c in text)


def shown(value: object) -> str:
    """Return a value that was found, short and on one line, whatever it is."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quoted(value if len(value) <= 60 else value[:57] + "...")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "a table"
    if value is None:
        return "nothing"
    if isinstance(value, (list, tuple)) and not value:
        return "an empty list"
    return _number_or_object(value)


def _number_or_object(value: object) -> str:
    try:
        return reprlib.repr(value).replace("\n", " ")
    except ValueError:  # Python refuses to write integers of more than 4,300 digits
        return "a number of thousands of digits"


def unknown_key(key: object, allowed: Iterable[str]) -> Problem:
    """Return the mistake of a key that does not exist, with the nearest that does."""
    if not isinstance(key, str):
        return Problem((), f"every key is a text, found {shown(key)}.")
    return Problem((), f"unknown key '{key}'.{did_you_mean(key, allowed)}", at=(key,))


def from_validation(error: ValidationError) -> Iterator[Problem]:
    """Translate pydantic's errors into mistakes in our words."""
    for detail in error.errors(include_url=False):
        path = tuple(part for part in detail["loc"] if part != "[key]")
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, ProblemsError):
            yield from (problem.below(path) for problem in cause.problems)
        elif detail["type"] == "missing":
            yield Problem(path[:-1], f"the key '{path[-1]}' is missing.", at=path)
        else:
            yield Problem(path, f"expected {_expected(detail)}, found {shown(detail['input'])}.")


_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "float_type": "a number",
    "finite_number": "a finite number",
    "int_type": "an integer",
    "mapping_type": "a table",
    "model_attributes_type": "a table",
    "model_type": "a table",
    "string_type": "a text",
    "string_unicode": "a text of whole characters",
    "time_delta_type": 'a duration such as "7d"',
    "tuple_type": "a list",
}


def _limit(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _expected(detail: Any) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    match kind:
        case "literal_error":
            return str(context["expected"]).replace("'", '"')
        case "greater_than_equal":
            return f"at least {_limit(context['ge'])}"
        case "greater_than":
            return f"more than {_limit(context['gt'])}"
        case "less_than_equal":
            return f"at most {_limit(context['le'])}"
        case "too_short":
            return f"a list of at least {context['min_length']}"
        case "string_too_short":
            return "a text that is not empty"
        case _:
            return _EXPECTED.get(kind) or str(detail["msg"])
