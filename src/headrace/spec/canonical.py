"""The one plain form of a declaration, and its fingerprint.

TOML, a dict and Python that say the same give the same plain form: defaults and
what follows from other keys are left out, times are ISO text, durations have
their largest whole unit.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from headrace.spec.base import Declared, plain_key
from headrace.spec.times import duration_text, moment_json

_ALWAYS = ("kind", "by", "version")
_FORM = "headrace spec 1"
"""Changes when the plain form changes its meaning."""


def to_plain(declared: Declared) -> dict[str, Any]:
    """Return a declaration as JSON values: what ``Spec.from_dict`` takes."""
    fields = type(declared).model_fields
    plain = {
        plain_key(name): _plain(getattr(declared, name))
        for name, field in fields.items()
        if name in _ALWAYS or getattr(declared, name) != field.get_default(call_default_factory=True)
    }
    return {**plain, **{name: _plain(value) for name, value in (declared.model_extra or {}).items()}}


def _plain(value: object) -> Any:
    match value:
        case Declared():
            return to_plain(value)
        case Mapping():
            return {name: _without_own_name(name, _plain(one)) for name, one in value.items()}
        case tuple():
            return [_plain(one) for one in value]
        case datetime.datetime():
            return moment_json(value)
        case datetime.timedelta():
            return duration_text(value)
        case _:
            return value


def _without_own_name(name: str, plain: Any) -> Any:
    """Leave out the column of a feature or label where it is the default, its own name."""
    if isinstance(plain, dict) and plain.get("column") == name:
        return {key: value for key, value in plain.items() if key != "column"}
    return plain


def fingerprint_of(plain: Mapping[str, Any]) -> str:
    """Return 32 hexadecimal digits that change when a store built from the spec would.

    The order of features and labels counts, since it is the order of columns and
    arrays; that of other keys does not. Descriptions, written for people, do not
    count, and neither does the folder that relative files start from.

    Args:
        plain: What ``to_plain`` returned for a ``Spec``.
    """
    ordered = {
        **{key: _without_descriptions(value) for key, value in plain.items() if key != "description"},
        **{key: list(_without_descriptions(plain.get(key, {})).items()) for key in ("features", "labels")},
    }
    text = json.dumps(
        [_FORM, ordered], sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False
    )
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _without_descriptions(value: Any) -> Any:
    """Leave out the texts ``description``; a feature of that name is a table, and stays."""
    if not isinstance(value, dict):
        return value
    return {
        key: _without_descriptions(one)
        for key, one in value.items()
        if key != "description" or not isinstance(one, str)
    }
