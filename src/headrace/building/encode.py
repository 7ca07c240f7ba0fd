"""New data encoded with a store's tables: tomorrow's log, or one request at serving time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from headrace import disk
from headrace.building.build import check_accounting, claim, refuse_foreign, settings_of
from headrace.building.ingest import parse_source
from headrace.building.memory_source import MemoryRows, MemorySource
from headrace.building.plan import ParsePlan, parse_plans
from headrace.building.publishing import finish_publishing, publish, staging_folder
from headrace.building.quarantining import write_quarantines
from headrace.building.rowset import RowSet
from headrace.building.settings import Progress, no_progress
from headrace.building.staleness import describe_files, store_fingerprint
from headrace.building.tables import load_tables, save_tables
from headrace.building.twins import number_twins
from headrace.building.unclassed import rows_without_class
from headrace.building.writing import write_shards
from headrace.dataset.dataset import Dataset
from headrace.dataset.fitted import fitted_details, fitted_files, save_fitted
from headrace.dataset.layout import WORK
from headrace.dataset.manifest import Manifest, read_manifest
from headrace.dataset.splits import load_from_disk
from headrace.encoding.batch import loader_columns
from headrace.encoding.rows import Rows
from headrace.encoding.shard import RowEncoder
from headrace.errors import BuildError, SourceError, StoreError
from headrace.loading.columns import Column
from headrace.loading.rows import Rows as LoaderRows
from headrace.loading.space import Batch
from headrace.parse.checks import check_key
from headrace.parse.part import read_part
from headrace.parse.readings import key_of
from headrace.sources import open_source
from headrace.sources.files import patterns_of
from headrace.spec import Attribution, Spec

SPLIT = "data"
"""The one split of a store of new data."""


def encode(
    store: str | Path,
    files: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    labels: bool = True,
    memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> Dataset:
    """Encode new raw files with the vocabularies, statistics and tables of a store.

    Args:
        store: A built store.
        files: Raw files of the format that the store's spec declares: globs or fsspec URLs.
        out: The folder of the new store; its one split is ``"data"``.
        labels: Whether labels and weights are encoded too; their columns may be absent all the same.
        memory: As for ``build``.
        threads: As for ``build``.
        progress: As for ``build``.

    Returns:
        The encoded rows, in byte order of path, then line.

    Raises:
        SourceError: Files are missing, or a feature's column is.
        BuildError: Too many rows are bad, or ``out`` is the store itself.
    """
    settings = settings_of(memory, threads, progress, stacklevel=3)
    opened = load_from_disk(store)
    patterns = [str(pattern) for pattern in patterns_of(files, "files")]
    out = disk.as_path("out", out, BuildError)
    if out.resolve() == opened.folder.resolve():
        raise BuildError(f"{out} is the store that encodes. Choose another folder for --out.")
    plan = _rows_plan(opened.spec, labels=labels)
    reader = open_source(plan.source.model_copy(update={"files": tuple(patterns)}), None, plan.columns)
    spec, plan = _without_absent(opened.spec, plan, reader.names(0), labels=labels)
    reader = open_source(plan.source.model_copy(update={"files": tuple(patterns)}), None, plan.columns)
    refuse_foreign(out)
    with disk.locked(out / WORK / "lock", str(out)):
        finish_publishing(out)
        sources = {"rows": describe_files(reader.files, {})}
        fingerprint = store_fingerprint(spec, sources) + opened.manifest.fingerprint[:8]
        if _is_finished(out, fingerprint):
            return load_from_disk(out)[SPLIT]
        staging = staging_folder(out)
        claim(staging, fingerprint)
        reader.check()
        parsed = parse_source(
            reader,
            plan,
            out / WORK / "parsed" / "rows",
            settings,
            required={reading.path for reading in _rows_plan(spec, labels=False).readings},
        )
        tables = load_tables(opened.folder, spec)
        parts = [Rows(part, tables, plan.keys) for part in parsed.open()]
        names = [file.name for file in reader.files]
        rowset = RowSet(spec, parts, names, split=SPLIT)
        fitted = replace(opened.fitted, observed_until=rowset.observed_until())
        rowset.drop_censored(fitted.observed_until)
        save_fitted(staging, fitted)
        written = write_shards(rowset, fitted, staging, settings, labels=labels)
        files_ = (
            *fitted_files(staging, fitted),
            *save_tables(staging, tables),
            *write_quarantines(staging, rowset.bad(), names),
        )
        accounting = rowset.accounting()
        check_accounting(accounting)
        details = {
            "name": spec.name,
            "spec": spec.to_dict(),
            "spec_fingerprint": spec.fingerprint,
            "encoded_with": opened.manifest.fingerprint,
            "sources": sources,
            "rows": asdict(accounting),
            "number_twins": number_twins(rowset),
            "rows_without_class": rows_without_class(rowset, fitted),
            "fitted": fitted_details(fitted),
        }
        publish(out, Manifest("rows", fingerprint, written.splits, (*written.records, *files_), details))
    return load_from_disk(out)[SPLIT]


def _is_finished(out: Path, fingerprint: str) -> bool:
    """Return whether ``out`` holds these rows already, whole: what a killed run had all but published."""
    try:
        manifest = read_manifest(out)
    except StoreError:
        return False
    there = all((out / entry.name).exists() for entry in manifest.entries())
    return manifest.fingerprint == fingerprint and there


def _rows_plan(spec: Spec, *, labels: bool) -> ParsePlan:
    return parse_plans(spec, labels=labels, split=False)[0]


def _without_absent(
    spec: Spec, plan: ParsePlan, names: Iterable[str], *, labels: bool
) -> tuple[Spec, ParsePlan]:
    """Take labels and the weight out of the declaration whose columns new data lacks.

    JSON Lines tell no columns: a label that is null in every row is kept, and masked.
    """
    there = set(names)

    def lacks(column: str | None) -> bool:
        return column is not None and spec.table_of(column).table is None and column not in there

    declared = spec.to_dict()
    if spec.weight is not None and (not labels or lacks(spec.weight.column)):
        declared.pop("weight")
    for name, label in spec.labels.items():
        columns = [getattr(label, key, None) for key in ("column", "click_time", "convert_time")]
        absent = spec.source.format != "jsonl" and any(map(lacks, columns))
        if not labels or absent or lacks(label.weight):
            declared["labels"].pop(name)
    for name, label in spec.labels.items():
        if (
            isinstance(label, Attribution)
            and label.given is not None
            and label.given not in declared["labels"]
        ):
            declared["labels"].pop(name, None)
    reduced = Spec.from_dict(declared, folder=spec.folder)
    return reduced, _rows_plan(reduced, labels=labels)


class Encoder:
    """Encodes rows in memory with a store's tables: the same bits as a loader over the store gives.

    Args:
        store: A built store.
        labels: Whether labels and weights are encoded too.
    """

    def __init__(self, store: str | Path, *, labels: bool = False) -> None:
        opened = load_from_disk(store)
        spec = opened.spec
        plan = _rows_plan(spec, labels=labels)
        split = next(iter(opened), spec.split_names[0])
        self._spec = spec
        self._keys = plan.keys
        self._readings = {key_of(reading): reading for reading in plan.readings}
        self._checks = {check_key(check): check for check in plan.checks}
        self._source = MemorySource(plan.columns, spec.source)
        self._tables = load_tables(opened.folder, spec)
        self._encoder = RowEncoder(spec, split, opened.fitted, labels=labels)
        self._layout = LoaderRows(self._columns([])[1], [0], "encoder")

    def encode(self, rows: MemoryRows) -> Batch:
        """Encode rows; safe to call from many threads.

        Args:
            rows: A list of dicts as JSON would give them, or an Arrow table. Of a store that was built from
                CSV or TSV a list may also be the text that such a file holds, as ``"a|b|c"``, and
                a text of the source's ``missing_values`` is missing.

        Returns:
            The batch that a loader gives for these rows; ``sample_id`` counts from 0.

        Raises:
            SourceError: A row is bad; the message says which, and why.
            VocabularyError: A value is not in its vocabulary, and ``unseen="error"``.
        """
        size, columns = self._columns(rows)
        everything = np.arange(size, dtype=np.int64)
        return self._layout.over(columns, size).gather(everything, everything.astype(np.uint64))

    def _columns(self, rows: MemoryRows) -> tuple[int, list[Column]]:
        """Return how many rows there are, and their encoded columns."""
        part = read_part(self._source.batch(rows), self._readings, self._checks)
        parsed = Rows(part, self._tables, self._keys)
        for bad in parsed.bad():
            raise SourceError(f"row {bad.row}: {bad.reason}.")
        everything = np.arange(len(part), dtype=np.int64)
        return len(part), loader_columns(self._spec, self._encoder.columns(parsed, everything))
