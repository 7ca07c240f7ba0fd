"""A spec from a stranger runs no code: whatever it is, it gives a Spec or a SpecError."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import SpecError
from headrace.spec import Spec

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spec.md"
WORDS = [
    *[
        "name",
        "version",
        "source",
        "time",
        "split",
        "vocabularies",
        "features",
        "labels",
        "weight",
        "id",
        "tables",
        "kind",
        "by",
        "column",
        "columns",
        "unit",
        "files",
        "format",
        "delimiter",
        "header",
        "encoding",
        "train",
        "valid",
        "test",
        "from",
        "until",
        "seed",
        "key",
        "gather",
        "lag",
        "with",
        "from_",
        "part",
        "reserved",
        "pad",
        "unknown",
        "missing",
        "min_count",
        "max_size",
        "unseen",
        "unknown_buckets",
        "vocabulary",
        "max_length",
        "separator",
        "transform",
        "buckets",
        "window",
        "given",
        "observed_until",
        "censored",
        "click_time",
        "convert_time",
        "categorical",
        "sequence",
        "set",
        "numeric",
        "cross",
        "hashed",
        "vector",
        "binary",
        "class",
        "attribution",
        "random",
        "group",
        "file",
        "hash",
        "own",
        "load",
        "jsonl",
        "ts",
        "7d",
        "0s",
    ],
    *["", "a b", "é", "\ud800", "x\ny", "__class__", "${HOME}", "a" * 300, "a.b"],
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(WORDS),
    st.datetimes(),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.binary(max_size=3),
    st.builds(lambda: 10**5000),
)
KEYS = st.one_of(st.sampled_from(WORDS), st.text(max_size=3), st.integers(0, 2))


def within(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4)


ANYTHING = st.recursive(SCALARS, within, max_leaves=8)


def whole_spec() -> dict[str, Any]:
    """Return a spec with every kind of feature, label and table."""
    text = PAGE.read_text(encoding="utf-8")
    declared: dict[str, Any] = {}
    for block in text.split("```toml\n")[1:]:
        for section, value in tomllib.loads(block.split("```")[0]).items():
            if isinstance(value, dict) and section in ("vocabularies", "features", "labels", "tables"):
                declared.setdefault(section, {}).update(value)
            else:
                declared.setdefault(section, value)
    return declared


WHOLE = whole_spec()


def paths(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield (*above, key)
            yield from paths(child, (*above, key))


CHANGES = st.tuples(st.sampled_from(list(paths(WHOLE))), st.none() | KEYS, ANYTHING)
"""Where, beside it under which other key, and what."""


def put(declared: Any, path: tuple[str, ...], key: Any, value: Any) -> None:
    """Change one key, or add another one beside it."""
    for part in path[:-1]:
        declared = declared.get(part) if isinstance(declared, dict) else None
    if isinstance(declared, dict):
        declared[path[-1] if key is None else key] = value


def loaded(load: Callable[[Any], Spec], what: Any) -> Spec | str:
    """Return the spec, or the message of the only error that may be."""
    try:
        return load(what)
    except SpecError as error:
        return str(error)


def check(declared: Any) -> None:
    spec = loaded(Spec.from_dict, declared)
    if isinstance(spec, str):
        assert all(line.isprintable() and line for line in spec.split("\n"))
        return
    plain = json.loads(json.dumps(spec.to_dict(), allow_nan=False))
    assert Spec.from_dict(plain) == spec
    assert Spec.from_dict(plain).to_dict() == plain
    assert Spec.from_dict(plain).fingerprint == spec.fingerprint
    assert spec.columns() or spec.features
    assert all(spec.features_on(name) for name in spec.vocabulary_specs)
    assert all(spec.reserved_ids(name).first >= 1 for name in spec.vocabulary_specs)
    assert spec.split_names[0] == "train"
    assert isinstance(spec.warnings, tuple)
    spec.split_bounds()


def test_the_whole_page_is_a_spec() -> None:
    check(WHOLE)
    assert len(Spec.from_dict(WHOLE).features) > 12


@settings(max_examples=300, deadline=None)
@given(st.lists(CHANGES, min_size=1, max_size=3))
def test_a_changed_dict(changes: list[tuple[tuple[str, ...], Any, Any]]) -> None:
    declared = copy.deepcopy(WHOLE)
    for path, key, value in changes:
        put(declared, path, key, value)
    check(declared)


@settings(max_examples=100, deadline=None)
@given(ANYTHING)
def test_any_value(value: Any) -> None:
    check(value)


SIGNS = [*"\"'[]{}#=.,\n\\\r\0\ufeff1-x", '"""', "[["]
CUTS = st.tuples(st.integers(0, 10_000), st.integers(0, 8), st.sampled_from(SIGNS))


@settings(max_examples=150, deadline=None)
@given(st.lists(CUTS, min_size=1, max_size=4))
def test_a_changed_file(tmp_path_factory: pytest.TempPathFactory, cuts: list[tuple[int, int, str]]) -> None:
    text = PAGE.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    for place, length, new in cuts:
        at = place % len(text)
        text = text[:at] + new + text[at + length :]
    path = tmp_path_factory.getbasetemp() / "stranger.toml"
    path.write_bytes(text.encode())
    spec = loaded(Spec.load, path)
    for line in spec.split("\n") if isinstance(spec, str) else ():
        number = line.removeprefix(f"{path}:").split(":")[0]
        assert number.isdecimal()
        assert 1 <= int(number) <= text.count("\n") + 1


@pytest.mark.parametrize("deep", [100, 100_000])
def test_deep_values(deep: int, tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text("name = 1\nx = " + "[" * deep + "]" * deep)
    with pytest.raises(SpecError):
        Spec.load(path)
    value: Any = 0
    for _ in range(deep):
        value = {"source": value, "x": [value]}
    with pytest.raises(SpecError):
        Spec.from_dict(value)
