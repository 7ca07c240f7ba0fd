"""What each source must be read for: the readings and checks of a spec, by source."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import xxhash

from headrace.encoding.checks import row_checks
from headrace.encoding.declared import row_places, source_columns
from headrace.errors import SpecError
from headrace.parse.checks import Check, check_key
from headrace.parse.readings import Ids, Reading, key_of
from headrace.sources import Column
from headrace.spec import Sequence, SourceOptions, Spec


@dataclass(frozen=True)
class ParsePlan:
    """What is parsed of one source: the rows, or one of the joined tables."""

    table: str | None
    """The table's name; None: the rows."""
    source: SourceOptions
    readings: tuple[Reading, ...]
    checks: tuple[Check, ...]
    columns: tuple[Column, ...]

    @functools.cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys of all readings and checks, each once, in the order in which they look at a row."""
        return tuple(dict.fromkeys([*map(key_of, self.readings), *map(check_key, self.checks)]))

    @property
    def how(self) -> str:
        """Digest of the way of reading: format, delimiter, encoding and the like."""
        how: dict[str, Any] = self.source.model_dump(
            mode="json", exclude={"files", "on_bad_row", "max_bad_fraction"}
        )
        return xxhash.xxh3_128_hexdigest(repr(sorted(how.items())).encode())


def parse_plans(spec: Spec, *, labels: bool = True, split: bool = True) -> list[ParsePlan]:
    """Return the plan of the rows and of each table.

    Args:
        spec: The declaration.
        labels: Whether labels and weights are read too.
        split: Whether the column that the split goes by is read too.

    Raises:
        SpecError: One column is asked to be one value and a list, a history is to be made from events, or
            one of a joined table could be later than the row.
    """
    _refuse_events(spec)
    _refuse_unchecked_histories(spec)
    needed: dict[str | None, dict[Reading, str]] = {None: {}}
    for name, table in spec.tables.items():
        needed[name] = {Ids(table.key): f"tables.{name}.key"}
    for where, place in row_places(spec, labels=labels, split=split):
        needed[place.table].setdefault(place.reading, where)
    checks: dict[str | None, dict[str, Check]] = {name: {} for name in needed}
    for table_name, check in row_checks(spec, labels=labels, split=split):
        checks[table_name][check_key(check)] = check
    return [
        ParsePlan(
            table=name,
            source=spec.source if name is None else spec.tables[name],
            readings=tuple(readings),
            checks=tuple(checks[name].values()),
            columns=tuple(source_columns([(where, reading) for reading, where in readings.items()])),
        )
        for name, readings in needed.items()
    ]


def _refuse_events(spec: Spec) -> None:
    for name, feature in spec.features.items():
        if isinstance(feature, Sequence) and feature.from_ is not None:
            raise SpecError(
                spec.message(
                    ("features", name, "from"),
                    "a build makes no histories from events; only a list in the row itself is a sequence. "
                    "Write each row's history into a column of the log, and name it with 'column'.",
                )
            )


def _refuse_unchecked_histories(spec: Spec) -> None:
    """Refuse times of a history that come with a joined table: they are parsed before a row is known."""
    for name, feature in spec.features.items():
        if not isinstance(feature, Sequence) or feature.time is None:
            continue
        table = spec.table_of(feature.time).table
        if table is not None:
            raise SpecError(
                spec.message(
                    ("features", name, "time"),
                    f"is a column of [tables.{table}]: nothing checks that they are before the row's own. "
                    "Write the history and its times into the rows.",
                )
            )
