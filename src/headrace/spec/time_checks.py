"""What is wrong, or doubtful, about times: splits, histories, attribution windows and purge gaps."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

from headrace.errors import did_you_mean
from headrace.spec.draft import Draft
from headrace.spec.features import Sequence
from headrace.spec.labels import Attribution, Binary
from headrace.spec.problems import Problem
from headrace.spec.splits import TimeSplit
from headrace.spec.times import Moment, Unit, duration_text, to_microseconds

_MICROSECOND = datetime.timedelta(microseconds=1)
_ALWAYS = 2**63


def time_mistakes(draft: Draft) -> Iterator[Problem]:
    """Find every mistake about times."""
    if isinstance(draft.spec.split, TimeSplit):
        yield from _split_mistakes(draft, draft.spec.split)
    yield from _times_without_a_row_time(draft)
    for name, label in draft.spec.labels.items():
        if isinstance(label, Attribution):
            yield from _given_mistakes(draft, name, label)
            where = ("labels", name, "observed_until")
            yield from _moment_mistakes(where, label.observed_until, _unit(draft))


def time_warnings(draft: Draft) -> Iterator[Problem]:
    """Find what is possible and probably not meant: a short purge gap, a split before train."""
    split = draft.spec.split
    if isinstance(split, TimeSplit) and not split.require_gap:
        yield from _short_gaps(draft, split)
    if isinstance(split, TimeSplit):
        yield from _before_train(draft)


def _unit(draft: Draft) -> Unit:
    return draft.spec.time.unit if draft.spec.time else "s"


def _split_mistakes(draft: Draft, split: TimeSplit) -> Iterator[Problem]:
    if split.column is None and not draft.has("time"):
        text = "a split by time needs the row's time: write [time] with its 'column', or 'column' here."
        yield Problem(("split",), text, at=("split", "by"))
    if split.column is None and ("time",) in draft.broken:
        return
    problems = list(_bounds_mistakes(draft, split)) or list(_order_mistakes(draft))
    yield from problems
    if split.require_gap and not problems:
        yield from _short_gaps(draft, split)


def _bounds_mistakes(draft: Draft, split: TimeSplit) -> Iterator[Problem]:
    unit = draft.spec.split_time.unit if draft.spec.split_time else "s"
    for name, bounds in split.parts.items():
        yield from _moment_mistakes(("split", name, "from"), bounds.from_, unit)
        yield from _moment_mistakes(("split", name, "until"), bounds.until, unit)


def _moment_mistakes(path: tuple[str, ...], moment: Moment | str | None, unit: Unit) -> Iterable[Problem]:
    if moment is None or isinstance(moment, str):
        return
    try:
        to_microseconds(moment, unit)
    except ValueError as error:
        yield Problem(path, str(error))


def _order_mistakes(draft: Draft) -> Iterator[Problem]:
    """Find stretches that are empty, and stretches that overlap."""
    stretches = _stretches(draft)
    for name, (start, end) in stretches.items():
        if start >= end:
            yield Problem(("split", name), "'from' must be before 'until'.")
    names = list(stretches)
    for place, name in enumerate(names):
        for other in names[:place]:
            if _overlap(stretches[name], stretches[other]):
                text = f"overlaps '{other}': a row would be in both. Write 'from' and 'until'."
                yield Problem(("split", name), text)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])


def _stretches(draft: Draft) -> dict[str, tuple[int, int]]:
    return {
        name: (-_ALWAYS if start is None else start, _ALWAYS if end is None else end)
        for name, (start, end) in draft.spec.split_bounds().items()
    }


def _gap(draft: Draft) -> int | None:
    """Return the microseconds between train and the next split, or None where there is no next."""
    stretches = _stretches(draft)
    end = stretches["train"][1]
    later = [start for name, (start, _) in stretches.items() if name != "train" and start >= end]
    return min(later) - end if later else None


def _short_gaps(draft: Draft, split: TimeSplit) -> Iterator[Problem]:
    gap = _gap(draft)
    for name, label in draft.spec.labels.items():
        if gap is None or not isinstance(label, Attribution) or gap >= label.window // _MICROSECOND:
            continue
        if ("labels", name, "window") in draft.broken:
            continue
        short = duration_text(gap * _MICROSECOND)
        window = duration_text(label.window)
        yield Problem(
            ("split",),
            f"the purge gap after train is {short}, shorter than the window of labels.{name}, {window}: "
            f"conversions of train's last clicks fall into the next split. Leave {window} between them.",
            at=("split", "require_gap") if split.require_gap else ("split", "train"),
        )


def _before_train(draft: Draft) -> Iterator[Problem]:
    stretches = _stretches(draft)
    for name, (start, _) in stretches.items():
        if start < stretches["train"][0]:
            yield Problem(("split", name), "lies before train: a model is tested on what came before it.")


def _times_without_a_row_time(draft: Draft) -> Iterator[Problem]:
    if draft.has("time"):
        return
    for name, feature in draft.spec.features.items():
        if isinstance(feature, Sequence) and feature.time is not None:
            text = "the times of a sequence must be before the row's time: write [time] with its 'column'."
            yield Problem(("features", name, "time"), text)


def _given_mistakes(draft: Draft, name: str, label: Attribution) -> Iterator[Problem]:
    given = label.given
    if given is None:
        return
    where = ("labels", name, "given")
    if not draft.has("labels", given):
        yield Problem(where, f"there is no [labels.{given}].{did_you_mean(given, draft.names('labels'))}")
    elif given in draft.spec.labels and not isinstance(draft.spec.labels[given], Binary):
        kind = draft.spec.labels[given].kind
        yield Problem(where, f"labels.{given} is of kind {kind}; a label is given by one of kind binary.")
