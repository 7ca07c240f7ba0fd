"""Features: what the model is given, one declaration for each kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field

from headrace.spec.base import LARGEST_INTEGER, Declared, Text, Texts, one_of
from headrace.spec.problems import Problem, quoted
from headrace.spec.source import time_format_mistakes
from headrace.spec.times import Duration, Unit
from headrace.spec.timezones import Timezone
from headrace.spec.vocabularies import VocabularyKeys, VocabularySpec, fitted_keys_beside

Buckets: TypeAlias = Annotated[int, Field(ge=2, le=LARGEST_INTEGER)]
Length: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]

_FIRST_BEYOND_FLOAT32 = (2 - 2.0**-24) * 2.0**127
"""The smallest number that rounds to infinity."""


class FeatureBase(Declared):
    """What every kind of feature takes."""

    description: str = ""
    """What it means, for people; it changes no byte of the shards."""

    column: Text = ""
    """The raw column, or a dotted path. Left out: the feature's own name, which a ``Spec`` fills in."""


class OnVocabulary(FeatureBase, VocabularyKeys):
    """A feature whose ids come from a vocabulary: a shared one, or one of its own."""

    vocabulary: Text | None = None
    """A name in ``[vocabularies]``. None: a vocabulary of its own, named as the feature."""

    missing: Literal["own", "unknown", "pad"] = "own"
    """The id of a missing value or of a null element: MISSING, UNKNOWN or PAD."""

    def own_vocabulary(self) -> VocabularySpec:
        """Return the vocabulary that this feature declares for itself."""
        return VocabularySpec(**{key: getattr(self, key) for key in VocabularyKeys.model_fields})

    def mistakes(self) -> Iterable[Problem]:
        """Find keys of an own vocabulary beside a shared one."""
        yield from super().mistakes()
        if self.vocabulary is not None:
            yield from fitted_keys_beside(self, "vocabulary")


class OnOwnOrStoredVocabulary(OnVocabulary):
    """Adds the vocabulary of another store."""

    from_: Text | None = None
    """Folder of another store, whose vocabulary of this feature's name is taken instead of fitting one."""

    def own_vocabulary(self) -> VocabularySpec:
        """Return the vocabulary that this feature declares for itself."""
        return super().own_vocabulary() if self.from_ is None else VocabularySpec(from_=self.from_)

    def mistakes(self) -> Iterable[Problem]:
        """Find also two places that the vocabulary should come from."""
        yield from super().mistakes()
        if self.from_ is not None and self.vocabulary is not None:
            yield Problem(
                ("from",), "has no meaning beside 'vocabulary'. Write it in that [vocabularies] table."
            )
        elif self.from_ is not None:
            yield from fitted_keys_beside(self, "from")


class Categorical(OnOwnOrStoredVocabulary):
    """One id per row: ``f`` int64 [B]."""

    kind: Literal["categorical"] = "categorical"

    missing: Literal["own", "unknown", "pad"] = "own"
    """The id of a missing value: MISSING, UNKNOWN or PAD."""


class Sequence(OnVocabulary):
    """Ordered ids: ``f`` int64 [B, L], ``f_mask`` bool [B, L], ``f_lengths`` int32 [B]; L = max_length."""

    kind: Literal["sequence"] = "sequence"

    max_length: Length
    """Most elements kept, and the padded length."""

    time: Text | None = None
    """The raw column of the elements' times: ascending, and strictly before the row's time.
    With ``from``: the events' time column. None: the order in which they stand."""

    keep: Literal["last", "first"] = "last"
    """Which end of a longer sequence is kept."""

    pad: Literal["left", "right"] = "left"
    """The side on which a shorter one is padded."""

    separator: Text = ","
    """Between elements, where the raw value is a text."""

    missing: Literal["own", "unknown"] = "own"
    """The id of a null element, which keeps its place. A missing sequence is an empty one."""

    from_: Text | None = None
    """A table in ``[tables]`` of events, from which the history is made; None: the row holds it."""

    key: Text | None = None
    """With ``from``: the row's column that equals the table's key; None: the column of that name."""

    with_: Texts = ()
    """With ``from``: further columns of the events, which become the arrays ``f_<column>``."""

    lag: Duration | None = None
    """With ``from``: an event counts when its time is strictly before the row's time less this; None is 0."""

    def mistakes(self) -> Iterable[Problem]:
        """Find keys of a history made from events where there is none, and the reverse."""
        yield from super().mistakes()
        if self.from_ is None:
            for key in ("key", "with_", "lag"):
                if self.written(key):
                    yield Problem((key.rstrip("_"),), "has a meaning only beside 'from', a table of events.")
        elif self.time is None:
            yield Problem(
                (), "a history from events needs the key 'time', the events' time column.", at=("from",)
            )
        if self.lag is not None and self.lag.total_seconds() < 0:
            yield Problem(("lag",), "expected a duration of at least 0.")


class Set(OnOwnOrStoredVocabulary):
    """Unordered ids without duplicates, stored ascending: the arrays of a sequence, padded on the right."""

    kind: Literal["set"] = "set"

    max_length: Length
    """Most elements kept: the most frequent in train, ties by value in byte order."""

    separator: Text = ","
    """Between elements, where the raw value is a text."""

    missing: Literal["own", "unknown"] = "own"
    """The id of a null element. A missing set is an empty one."""


class WeightedSet(OnOwnOrStoredVocabulary):
    """Ids with weights: the arrays of a set, and ``f_weights`` float32 [B, L]."""

    kind: Literal["weighted_set"] = "weighted_set"

    max_length: Length
    """Most elements kept: the largest weights."""

    separator: Text = ","
    """Between pairs, where the raw value is a text."""

    pair_separator: Text = ":"
    """Between a value and its weight."""

    missing: Literal["own", "unknown"] = "own"
    """The id of a null element. A missing set is an empty one."""

    def mistakes(self) -> Iterable[Problem]:
        """Find two separators that are one."""
        yield from super().mistakes()
        if self.separator == self.pair_separator:
            yield Problem(
                ("pair_separator",), f"is {quoted(self.separator)}, as is 'separator'. They must differ."
            )


class Numeric(FeatureBase):
    """A number: ``f`` float32 [B]; bucketized: ids, int64 [B]."""

    kind: Literal["numeric"] = "numeric"

    dtype: Literal["int", "float"] = "float"
    """With ``int``, ``1.5`` is a bad row."""

    transform: Literal["none", "log1p", "standardize", "minmax", "bucketize"] = "none"
    """``log1p`` of a value of at most -1 is a bad row; the last three are fitted on train."""

    buckets: Buckets | None = None
    """With ``bucketize``: the number of quantile buckets."""

    missing: float | None = None
    """Filled in for a missing value after the transform, which sees present values only. None: 0.0."""

    nan: Literal["bad", "missing"] = "bad"
    """What NaN and infinity are."""

    def mistakes(self) -> Iterable[Problem]:
        """Find ``bucketize`` without buckets, and keys that it gives no meaning."""
        bucketize = self.transform == "bucketize"
        if bucketize and self.buckets is None:
            yield Problem((), "transform = \"bucketize\" needs the key 'buckets'.", at=("transform",))
        if not bucketize and self.buckets is not None:
            yield Problem(
                ("buckets",), f'has no meaning with transform = "{self.transform}". Write "bucketize".'
            )
        if bucketize and self.missing is not None:
            yield Problem(
                ("missing",), "has no meaning with bucketize, where a missing value has an id of its own."
            )
        elif self.missing is not None and abs(self.missing) >= _FIRST_BEYOND_FLOAT32:
            yield Problem(("missing",), f"{self.missing:g} is beyond float32, which is what a store holds.")


class TimePartRange(NamedTuple):
    """The values of a part of a time."""

    first: int
    size: int


TIME_PARTS: dict[str, TimePartRange] = {
    "second": TimePartRange(0, 60),
    "minute": TimePartRange(0, 60),
    "hour": TimePartRange(0, 24),
    "weekday": TimePartRange(0, 7),
    "day": TimePartRange(1, 31),
    "dayofyear": TimePartRange(1, 366),
    "week": TimePartRange(1, 53),
    "month": TimePartRange(1, 12),
    "quarter": TimePartRange(1, 4),
    "year": TimePartRange(1970, 130),
}
"""Monday is weekday 0; weeks are ISO weeks; a year outside 1970 to 2099 is UNKNOWN."""


class TimePart(FeatureBase):
    """A part of a time column: ids, int64 [B]; a value v of ``TIME_PARTS[part]`` has the id 3 + v - first."""

    kind: Literal["time"] = "time"

    part: Literal[
        "second", "minute", "hour", "weekday", "day", "dayofyear", "week", "month", "quarter", "year"
    ]

    timezone: Timezone | None = None
    """The zone of the part, and of text without an offset. None: that of ``[time]``, else UTC."""

    unit: Unit | None = None
    """What numbers count. None: the unit of ``[time]``, else seconds."""

    format: Text | None = None
    """How text is written. None: the format of ``[time]`` where it is the same column, else ISO 8601."""

    def mistakes(self) -> Iterable[Problem]:
        """Find keys that cannot stand together."""
        return time_format_mistakes(self)


class Cross(Declared):
    """A hashed cross of raw columns: ids, int64 [B]."""

    kind: Literal["cross"] = "cross"

    description: str = ""
    """What it means, for people."""

    columns: Texts
    """The raw columns, at least two; their order counts."""

    buckets: Buckets
    """Number of ids beside the reserved ones."""

    def mistakes(self) -> Iterable[Problem]:
        """Find a cross of one column, or of a column with itself."""
        if len(self.columns) < 2:
            yield Problem(
                ("columns",), f'a cross needs at least two columns, found {len(self.columns)}. Use "hashed".'
            )
        for place, column in enumerate(self.columns):
            if column in self.columns[:place]:
                yield Problem(("columns", place), f"{quoted(column)} is written twice.")


class Hashed(FeatureBase):
    """One id per row from a stable 64-bit hash: no vocabulary to fit or store."""

    kind: Literal["hashed"] = "hashed"

    buckets: Buckets
    """Number of ids beside the reserved ones; two values share one with probability about 1 / buckets."""


class Vector(FeatureBase):
    """Numbers of a fixed count: ``f`` float32 [B, D]."""

    kind: Literal["vector"] = "vector"

    dim: Length
    """Number of numbers; a row with another number of them is bad."""

    separator: Text = ","
    """Between numbers, where the raw value is a text."""


Feature: TypeAlias = Annotated[
    Categorical | Sequence | Set | WeightedSet | Numeric | TimePart | Cross | Hashed | Vector,
    one_of("kind", Categorical, Sequence, Set, WeightedSet, Numeric, TimePart, Cross, Hashed, Vector),
]


def has_ids(feature: Feature) -> bool:
    """Return whether a model looks a feature up in an embedding table."""
    if isinstance(feature, Numeric):
        return feature.transform == "bucketize"
    return not isinstance(feature, Vector)
