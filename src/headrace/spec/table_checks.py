"""What is wrong between raw columns and the tables and files that should hold them."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.errors import did_you_mean
from headrace.spec.columns import ColumnUse
from headrace.spec.draft import Draft
from headrace.spec.features import Cross, OnVocabulary, Sequence
from headrace.spec.problems import Problem, quoted
from headrace.spec.source import Table


def table_mistakes(draft: Draft) -> Iterator[Problem]:
    """Find columns that no file or table has, and tables that cannot be joined or gathered."""
    yield from _event_tables(draft)
    for column, uses in draft.spec.columns().items():
        for use in uses:
            yield from _column_mistakes(draft, column, use)
    for name, table in draft.spec.tables.items():
        if table.gather == "load":
            yield from _no_id_to_gather_by(draft, name, table)


def _event_tables(draft: Draft) -> Iterator[Problem]:
    for name, feature in draft.spec.features.items():
        if not isinstance(feature, Sequence) or feature.from_ is None:
            continue
        if not draft.has("tables", feature.from_):
            hint = did_you_mean(feature.from_, draft.names("tables"))
            yield Problem(("features", name, "from"), f"there is no [tables.{feature.from_}].{hint}")


def _column_mistakes(draft: Draft, column: str, use: ColumnUse) -> Iterator[Problem]:
    table, rest = draft.spec.table_of(column)
    if table is None:
        yield from _not_in_source(draft, column, use)
        return
    declared = draft.spec.tables[table]
    if declared.columns and rest not in declared.columns and use.path != ("tables", table, "key"):
        hint = did_you_mean(rest, declared.columns)
        yield Problem(use.path, f"the table '{table}' has no column {quoted(rest)}.{hint}")
    if declared.gather == "load" and _needed_while_encoding(draft, use):
        text = f"{quoted(column)} is of a table that is gathered when loading, and is needed before that. "
        yield Problem(use.path, text + f'Write gather = "encode" in [tables.{table}].')


def _needed_while_encoding(draft: Draft, use: ColumnUse) -> bool:
    if use.path[0] == "features":
        return isinstance(draft.spec.features[str(use.path[1])], Cross)
    return use.path[0] != "tables"


def _not_in_source(draft: Draft, column: str, use: ColumnUse) -> Iterator[Problem]:
    columns = draft.spec.source.columns
    prefix = column.partition(".")[0]
    elsewhere = prefix != column and draft.has("tables", prefix)
    if not columns or column in columns or elsewhere or _of_events(draft, use):
        return
    tables = draft.spec.tables.items()
    of_tables = [f"{name}.{rest}" for name, table in tables for rest in table.columns]
    hint = did_you_mean(column, [*columns, *of_tables])
    yield Problem(use.path, f"[source] names its columns, and {quoted(column)} is none of them.{hint}")


def _of_events(draft: Draft, use: ColumnUse) -> bool:
    """Return whether a column is one of a history's events, whose table is not declared."""
    feature = draft.spec.features.get(str(use.path[1])) if use.path[0] == "features" else None
    return isinstance(feature, Sequence) and feature.from_ is not None and use.path[2] != "key"


def _no_id_to_gather_by(draft: Draft, name: str, table: Table) -> Iterator[Problem]:
    features = draft.spec.features.values()
    on_key = any(isinstance(one, OnVocabulary) and one.column == table.key for one in features)
    if not on_key and not any(path[0] == "features" for path in draft.broken):
        yield Problem(
            ("tables", name),
            'gather = "load" gathers by id, and no feature with a vocabulary has the column '
            f'{quoted(table.key)}. Declare one, or write gather = "encode".',
            at=("tables", name, "gather"),
        )
