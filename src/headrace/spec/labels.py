"""Labels: what the model is to learn, one declaration for each kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, TypeAlias

from pydantic import PlainValidator

from headrace.spec.base import Declared, IdTexts, Text, one_of
from headrace.spec.problems import Problem, ProblemsError, quoted, wrong
from headrace.spec.times import Duration, Moment, declared_moment


class LabelBase(Declared):
    """What every kind of label takes."""

    description: str = ""
    """What it means, for people; it changes no byte of the shards."""

    weight: Text | None = None
    """A raw column with a weight for each row: the array ``name_weight``."""


class ColumnLabel(LabelBase):
    """A label that stands in one raw column; a null one is masked, never 0."""

    column: Text = ""
    """The raw column, or a dotted path. Left out: the label's own name, which a ``Spec`` fills in."""


class Binary(ColumnLabel):
    """0 or 1: ``name`` float32 [B], ``name_mask`` bool [B]."""

    kind: Literal["binary"] = "binary"

    at_least: float | None = None
    """For a numeric column: 1 from this number on, 0 below. None: the column holds 0 and 1, or false
    and true."""


class Continuous(ColumnLabel):
    """A number: ``name`` float32 [B], ``name_mask`` bool [B]."""

    kind: Literal["continuous"] = "continuous"


class ClassLabel(ColumnLabel):
    """One of several classes: ``name`` int64 [B] from 0, ``name_mask`` bool [B]."""

    kind: Literal["class"] = "class"

    values: IdTexts | None = None
    """The classes in the order of their numbers. None: the values in train, in byte order."""

    def mistakes(self) -> Iterable[Problem]:
        """Find classes that are none."""
        if self.values is not None and len(self.values) < 2:
            yield Problem(("values",), f"a class label needs at least two classes, found {len(self.values)}.")
        for place, value in enumerate(self.values or ()):
            if self.values is not None and value in self.values[:place]:
                yield Problem(("values", place), f"{quoted(value)} is written twice.")


def _observed_until(value: object) -> Moment | str:
    if isinstance(value, str) and value in ("split", "log"):
        return value
    try:
        return declared_moment(value)
    except ProblemsError as error:
        text = error.problems[0].text
        raise wrong(f'expected "split", "log" or a time: {text}') from None


class Attribution(LabelBase):
    """Whether a conversion came in a window after the click: ``name`` float32 [B], ``name_mask`` bool [B]."""

    kind: Literal["attribution"] = "attribution"

    click_time: Text
    """The raw column with the time of the click, as ``[time]`` writes times."""

    convert_time: Text
    """The raw column with the time of the conversion; null: none came."""

    window: Duration
    """A conversion counts when 0 <= convert - click <= window."""

    given: Text | None = None
    """A binary label: rows without it have no such label (CVR). None: every row has one (CTCVR)."""

    observed_until: Annotated[Literal["split", "log"] | Moment, PlainValidator(_observed_until)] = "split"
    """What is known: conversions up to the end of the row's split, the largest time of the log, or a time."""

    censored: Literal["mask", "drop", "keep"] = "mask"
    """What becomes of rows with click + window > observed_until."""

    def mistakes(self) -> Iterable[Problem]:
        """Find a window that no conversion can fall into."""
        if self.window.total_seconds() <= 0:
            yield Problem(("window",), "expected a duration of more than 0.")
        if self.click_time == self.convert_time:
            yield Problem(
                ("convert_time",), f"is {quoted(self.click_time)}, as is 'click_time'. They must differ."
            )


Label: TypeAlias = Annotated[
    Binary | Continuous | ClassLabel | Attribution,
    one_of("kind", Binary, Continuous, ClassLabel, Attribution),
]
