"""From a TOML file or a dict to a ``Spec``, or to all mistakes at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from headrace.disk import as_path
from headrace.errors import SpecError, did_you_mean
from headrace.spec.origin import Origin
from headrace.spec.problems import Problem, from_validation, on_one_line, shown
from headrace.spec.toml import TomlError, parse_toml, where_keys_are

if TYPE_CHECKING:
    from headrace.spec.model import Spec

_Spec = TypeVar("_Spec", bound="Spec")


def load_spec(made: type[_Spec], path: str | os.PathLike[str]) -> _Spec:
    """Return the spec that a TOML file declares; see ``Spec.load``."""
    file = as_path("the path of a spec", path, SpecError)
    name = on_one_line(str(file))
    content = _read(file, name)
    try:
        declared = parse_toml(content)
    except TomlError as mistake:
        raise SpecError("\n".join(f"{name}:{line}: {text}" for line, text in mistake.lines)) from None
    origin = Origin(name, where_keys_are(content.decode("utf-8-sig")))
    spec, problems = validated(made, declared)
    if spec is None:
        in_order = sorted(problems, key=lambda problem: origin.line_of(problem.place))
        raise SpecError("\n".join(map(origin.message, in_order)))
    spec._origin = origin
    return in_folder(spec, file.parent)


def _read(path: FilePath, name: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise SpecError(
            f"{name}: there is no such file.{did_you_mean(path.name, _specs_beside(path))}"
        ) from None
    except (OSError, ValueError) as error:
        raise SpecError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def _specs_beside(path: FilePath) -> Iterable[str]:
    try:
        return [other.name for other in path.parent.glob("*.toml")]
    except (OSError, ValueError):
        return []


def spec_from_dict(made: type[_Spec], declared: object, folder: str | os.PathLike[str] | None) -> _Spec:
    """Return the spec that a dict declares; see ``Spec.from_dict``."""
    spec, problems = validated(made, declared)
    if spec is None:
        raise SpecError("\n".join(problem.line() for problem in problems))
    return in_folder(spec, folder)


def validated(made: type[_Spec], declared: object) -> tuple[_Spec | None, list[Problem]]:
    """Return the spec, or None and every mistake."""
    if not isinstance(declared, Mapping):
        return None, [Problem((), f"a spec is a table of keys, found {shown(declared)}.")]
    try:
        return made.model_validate(dict(declared)), []
    except ValidationError as error:
        return None, list(from_validation(error))


def in_folder(spec: _Spec, folder: str | os.PathLike[str] | None) -> _Spec:
    """Let the relative files of a new spec start at ``folder``."""
    if folder is not None:  # os.path.dirname of a file beside the process is an empty text
        spec._folder = str(as_path("folder", "." if folder == "" else folder, SpecError))
    return spec
