"""What is wrong between the tables of a spec, each of which is right by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from headrace.errors import did_you_mean
from headrace.spec.arrays import RESERVED_ARRAYS
from headrace.spec.draft import SECTIONS_OF_NAMES, Draft
from headrace.spec.features import OnVocabulary, has_ids
from headrace.spec.problems import Problem, quoted
from headrace.spec.table_checks import table_mistakes
from headrace.spec.time_checks import time_mistakes, time_warnings

if TYPE_CHECKING:
    from headrace.spec.model import Spec

_NAME = re.compile(r"\w(?:[\w.\- ]*\w)?")
_LONGEST_NAME = 200


def mistakes_between(draft: Draft) -> Iterator[Problem]:
    """Find every mistake that takes more than one table to see."""
    yield from _no_feature(draft)
    for section in SECTIONS_OF_NAMES:
        yield from _impossible_names(section, draft)
    yield from _colliding_arrays(draft)
    yield from _vocabulary_references(draft)
    yield from time_mistakes(draft)
    yield from table_mistakes(draft)


def _no_feature(draft: Draft) -> Iterable[Problem]:
    if not draft.spec.features and not any(path[0] == "features" for path in draft.broken):
        yield Problem((), "no feature is declared; write at least one [features.NAME].", at=("features",))


def _impossible_names(section: str, draft: Draft) -> Iterable[Problem]:
    """Find names that could not stand in file names and paths of columns."""
    for name in getattr(draft.spec, section):
        if not _NAME.fullmatch(name) or len(name.encode()) > _LONGEST_NAME:
            text = "is no name here; one has letters, digits and '_', inside also '-', '.' and blanks, "
            yield Problem((section, name), f"{text}and at most {_LONGEST_NAME} bytes.")
        elif section == "tables" and "." in name:
            text = "the name of a table has no dot, since paths such as ad.industry begin with it."
            yield Problem((section, name), text)


def _colliding_arrays(draft: Draft) -> Iterator[Problem]:
    """Find two arrays of one name in a batch, once for each pair of what gives them."""
    owners = dict.fromkeys(RESERVED_ARRAYS, "the loader")
    reported: set[tuple[str, str]] = set()
    for (section, name), arrays in _arrays(draft.spec):
        owner = f"{section}.{name}"
        for array in arrays:
            other = owners.setdefault(array, owner)
            if other != owner and (other, owner) not in reported:
                reported.add((other, owner))
                text = (
                    f"its array '{array}' is also given by {other}. Each array has its own name: rename one."
                )
                yield Problem((section, name), text)


def _arrays(spec: Spec) -> Iterator[tuple[tuple[str, str], tuple[str, ...]]]:
    for owner, arrays in spec.batch_names().items():
        section, dot, name = owner.partition(".")
        if dot:
            yield (section, name), arrays


def _vocabulary_references(draft: Draft) -> Iterator[Problem]:
    for name, feature in draft.spec.features.items():
        if not isinstance(feature, OnVocabulary):
            if draft.has("vocabularies", name) and has_ids(feature):
                text = f"has ids of its own, and the name of [vocabularies.{name}]. Rename one of them."
                yield Problem(("features", name), text)
            continue
        wanted = feature.vocabulary
        if wanted is not None and not draft.has("vocabularies", wanted):
            yield Problem(("features", name, "vocabulary"), _no_such_vocabulary(wanted, draft))
        if wanted is None and draft.has("vocabularies", name):
            yield Problem(
                ("features", name),
                f"has a vocabulary of its own, of the same name as [vocabularies.{name}]. "
                f"Write vocabulary = {quoted(name)} to share that one, or rename one.",
            )


def _no_such_vocabulary(wanted: str, draft: Draft) -> str:
    vocabularies = draft.names("vocabularies")
    hint = did_you_mean(wanted, vocabularies)
    other = draft.spec.features.get(wanted)
    if not hint and isinstance(other, OnVocabulary) and other.vocabulary is None:
        hint = f" features.{wanted} has its vocabulary to itself; write [vocabularies.{wanted}] to share one."
    return f"there is no [vocabularies.{wanted}].{hint}"


def warnings_of(spec: Spec) -> tuple[str, ...]:
    """Return what is possible, and probably not meant."""
    draft = Draft(spec)
    problems = [*_unused_vocabularies(spec), *time_warnings(draft)]
    return tuple(problem.line() for problem in problems)


def _unused_vocabularies(spec: Spec) -> Iterator[Problem]:
    used = {one.vocabulary for one in spec.features.values() if isinstance(one, OnVocabulary)}
    for name in spec.vocabularies:
        if name not in used:
            yield Problem(("vocabularies", name), "no feature uses it, so it is not fitted.")
