"""The whole declaration of a data set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self, TypeAlias, TypeVar

from pydantic import AfterValidator, Field, PrivateAttr, ValidationError
from pydantic.functional_validators import ModelWrapValidatorHandler

from headrace.spec.arrays import feature_arrays, label_arrays
from headrace.spec.base import LARGEST_INTEGER, Declared, Text
from headrace.spec.canonical import fingerprint_of, to_plain
from headrace.spec.checks import mistakes_between, warnings_of
from headrace.spec.columns import ColumnUse, TableColumn, column_uses
from headrace.spec.draft import Draft, key_of, part_of, without
from headrace.spec.features import Feature, OnVocabulary
from headrace.spec.labels import Attribution, Label
from headrace.spec.origin import Origin
from headrace.spec.problems import Path as KeyPath
from headrace.spec.problems import Problem, from_validation
from headrace.spec.source import Id, Source, Table, Time, Weight
from headrace.spec.splits import Split, TimeSplit, bounds_in_microseconds
from headrace.spec.times import to_microseconds
from headrace.spec.vocabularies import ReservedIds, VocabularySpec

_Named = TypeVar("_Named", bound=Mapping[str, Any])


def _with_columns(declared: _Named) -> Any:
    """Fill in that the column of a feature or label is the one of its own name."""
    return {
        name: one.model_copy(update={"column": name}) if getattr(one, "column", None) == "" else one
        for name, one in declared.items()
    }


Features: TypeAlias = Annotated[Mapping[str, Feature], AfterValidator(_with_columns)]
Labels: TypeAlias = Annotated[Mapping[str, Label], AfterValidator(_with_columns)]


class Spec(Declared):
    """What the user declares: ``Spec.load("ads.toml")``, ``Spec.from_dict({...})`` or ``Spec(...)``."""

    name: Text
    """What the data is called."""

    version: Annotated[int, Field(ge=0, le=LARGEST_INTEGER)] = 1
    """The user's own; any change of it rebuilds."""

    description: str = ""
    """What it is, for people."""

    source: Source
    time: Time | None = None
    split: Split | None = None
    """None: every row is in ``train``."""

    vocabularies: Mapping[str, VocabularySpec] = Field(default_factory=dict)
    features: Features
    """In the order of the arrays in a batch and of the columns in a shard."""

    labels: Labels = Field(default_factory=dict)
    weight: Weight | None = None
    id: Id | None = None
    tables: Mapping[str, Table] = Field(default_factory=dict)

    _folder: str | None = PrivateAttr(default=None)
    _origin: Origin | None = PrivateAttr(default=None)

    @property
    def folder(self) -> Path | None:
        """Where relative files start: the folder of the spec's file; no part of the fingerprint."""
        return None if self._folder is None else Path(self._folder)

    def mistakes(self) -> Iterable[Problem]:
        """Find what is wrong between the tables of the spec."""
        return mistakes_between(Draft(self))

    @classmethod
    def _attempt(
        cls, data: dict[Any, Any], handler: ModelWrapValidatorHandler[Self]
    ) -> tuple[Self | None, list[Problem]]:
        """Validate, and where a part is wrong, check the others against each other all the same."""
        made, problems = super()._attempt(data, handler)
        if made is not None:
            return made, problems
        draft = cls._draft({key: value for key, value in data.items() if cls.takes(key)}, problems, handler)
        return None, [*problems, *(mistakes_between(draft) if draft else ())]

    @classmethod
    def _draft(
        cls, data: dict[Any, Any], problems: list[Problem], handler: ModelWrapValidatorHandler[Self]
    ) -> Draft | None:
        """Return what is left without the wrong keys, or where that is not enough, without their tables."""
        cut = {key_of(problem.place) for problem in problems if problem.place}
        for _ in range(2):
            try:
                sound = handler(without(data, cut))
                return Draft(sound, frozenset(cut))
            except ValidationError as error:
                cut |= {part_of(problem.place) for problem in from_validation(error) if problem.place}
        return None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a spec from a TOML file; its relative files start at that file's folder.

        Raises:
            SpecError: The file is missing or no TOML, or the declaration is impossible; one line
                with file and line number for each mistake.
        """
        from headrace.spec.load import load_spec

        return load_spec(cls, path)

    @classmethod
    def from_dict(cls, declared: Mapping[str, Any], *, folder: str | os.PathLike[str] | None = None) -> Self:
        """Make a spec from what TOML would give, or from what ``to_dict`` gave.

        Args:
            declared: The tables and keys of a spec.
            folder: Where relative files start; None is the working folder.

        Raises:
            SpecError: The declaration is impossible; one line for each mistake.
        """
        from headrace.spec.load import spec_from_dict

        return spec_from_dict(cls, declared, folder)

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as JSON values without defaults: ``Spec.from_dict(spec.to_dict()) == spec``."""
        return to_plain(self)

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits, the same in every process, on every machine and Python version."""
        return fingerprint_of(self.to_dict())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def locate(self, file: str) -> str:
        """Return where a file or glob of this spec is: relative ones start at its folder."""
        if self._folder is None or "://" in file or os.path.isabs(file):
            return file
        return os.path.join(self._folder, file)

    def message(self, path: KeyPath, text: str) -> str:
        """Return one line that says what is wrong with a key: ``ads.toml:24: features.user_id.column: ...``.

        Args:
            path: The key, as ``columns()`` gives it.
            text: What was found, what is allowed, what to do.
        """
        problem = Problem(path, text)
        return problem.line() if self._origin is None else self._origin.message(problem)

    def vocabulary_of(self, feature: str) -> tuple[str, VocabularySpec]:
        """Return the name and declaration of the vocabulary that a feature's ids come from.

        Raises:
            KeyError: There is no such feature, or its kind has no vocabulary.
        """
        declared = self.features[feature]
        if not isinstance(declared, OnVocabulary):
            raise KeyError(f"features.{feature} of kind {declared.kind} has no vocabulary")
        if declared.vocabulary is None:
            return feature, declared.own_vocabulary()
        return declared.vocabulary, self.vocabularies[declared.vocabulary]

    @cached_property
    def vocabulary_specs(self) -> Mapping[str, VocabularySpec]:
        """Every vocabulary that a feature uses, shared and own, by name."""
        return dict(self.vocabulary_of(features[0]) for features in self._features_by_vocabulary.values())

    @cached_property
    def _features_by_vocabulary(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for name, feature in self.features.items():
            if isinstance(feature, OnVocabulary):
                vocabulary, _ = self.vocabulary_of(name)
                found[vocabulary] = (*found.get(vocabulary, ()), name)
        return found

    def features_on(self, vocabulary: str) -> tuple[str, ...]:
        """Return the features whose ids come from a vocabulary."""
        return self._features_by_vocabulary.get(vocabulary, ())

    def reserved_ids(self, vocabulary: str) -> ReservedIds:
        """Return PAD, UNKNOWN and MISSING of a vocabulary, and the id of its first value.

        MISSING is there when a feature on the vocabulary has ``missing = "own"``.
        """
        on_it = [self.features[name] for name in self.features_on(vocabulary)]
        has_missing = any(isinstance(one, OnVocabulary) and one.missing == "own" for one in on_it)
        return self.vocabulary_specs[vocabulary].reserved.ids(has_missing=has_missing)

    def batch_names(self) -> dict[str, tuple[str, ...]]:
        """Return the arrays of a batch by what gives them: ``{"features.tags": ("tags", "tags_mask", ...)}``.

        All that a loader can be asked for are among them, such as ``tags_present``.
        """
        features = {f"features.{name}": feature_arrays(name, one) for name, one in self.features.items()}
        labels = {f"labels.{name}": label_arrays(name, one) for name, one in self.labels.items()}
        return features | labels | ({"weight": ("weight",)} if self.weight else {})

    def columns(self) -> dict[str, tuple[ColumnUse, ...]]:
        """Return every raw column that is needed, and what for."""
        return column_uses(self)

    def table_of(self, column: str) -> TableColumn:
        """Return whose column a path is: ``ad.industry`` is of ``[tables.ad]`` where that is declared."""
        prefix, dot, rest = column.partition(".")
        return TableColumn(prefix, rest) if dot and prefix in self.tables else TableColumn(None, column)

    @property
    def split_time(self) -> Time | None:
        """The time that a split by time goes by; None where the split is of another kind."""
        if not isinstance(self.split, TimeSplit):
            return None
        if self.split.column is None:
            return self.time
        return Time(column=self.split.column, unit=self.split.unit or "s")

    def split_bounds(self) -> dict[str, tuple[int | None, int | None]]:
        """Return ``[from, until)`` of each split by time, in int64 microseconds UTC; None is open."""
        if not isinstance(self.split, TimeSplit):
            return {}
        unit = self.split_time.unit if self.split_time else "s"
        return {name: bounds_in_microseconds(bounds, unit) for name, bounds in self.split.parts.items()}

    def observed_until(self, label: str) -> int | str:
        """Return an attribution's ``observed_until``: ``"split"``, ``"log"``, or int64 microseconds UTC."""
        declared = self.labels[label]
        if not isinstance(declared, Attribution):
            raise KeyError(f"labels.{label} of kind {declared.kind} is not attributed")
        if isinstance(declared.observed_until, str):
            return declared.observed_until
        return to_microseconds(declared.observed_until, self.time.unit if self.time else "s")

    @property
    def split_names(self) -> tuple[str, ...]:
        """The splits of a store: train, valid, test, then others as written."""
        return ("train",) if self.split is None else tuple(self.split.parts)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What is possible, and probably not meant; one line each."""
        return warnings_of(self)
