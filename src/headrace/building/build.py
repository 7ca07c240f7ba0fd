"""``build``: from a spec to a store, in stages that can each be taken up again.

parse      raw bytes -> parts in .build/parsed, once
split      each row to its split; censored rows out
fit        vocabularies and statistics, from train
encode     parts -> shards in .build/store
publish    the old manifest goes, files move up, the new manifest comes last
"""

from __future__ import annotations

import functools
import shutil
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from headrace import disk
from headrace.building.fitting import fit, taken_vocabulary
from headrace.building.ingest import Parsed, parse_source
from headrace.building.plan import ParsePlan, parse_plans
from headrace.building.publishing import finish_publishing, publish, staging_folder
from headrace.building.quarantining import write_quarantines
from headrace.building.rowset import Accounting, RowSet
from headrace.building.settings import Progress, Settings, machine_memory, no_progress, parse_size
from headrace.building.staleness import SourceEntry, describe_files, reasons_to_build, store_fingerprint
from headrace.building.tables import save_tables
from headrace.building.twins import number_twins
from headrace.building.unclassed import rows_without_class
from headrace.building.writing import write_shards
from headrace.dataset.fitted import fitted_details, fitted_files, save_fitted
from headrace.dataset.layout import WORK, safe_name, vocabulary_file
from headrace.dataset.manifest import MANIFEST_NAME, Manifest, read_manifest, write_manifest
from headrace.dataset.shard import FileEntry
from headrace.dataset.splits import DatasetDict, load_from_disk
from headrace.encoding.rows import Rows
from headrace.encoding.split import OUTSIDE, split_of_file
from headrace.encoding.tables import JoinedTable
from headrace.engine.local import default_threads, run_beside, working_beside
from headrace.errors import BuildError, StoreError
from headrace.order.integers import integer
from headrace.scratch import give_back
from headrace.sources import BadRow, Reader, SourceFile, open_source
from headrace.spec import FileSplit, Spec


@dataclass(frozen=True)
class BuildReport:
    """What a build did."""

    built: bool
    """False where the store was up to date."""
    reasons: tuple[str, ...]
    """Why it was built, one line a reason."""
    accounting: Mapping[str, Any]
    """Where every row that was read went."""


def build(
    spec: Spec | str | Path | Mapping[str, Any],
    out: str | Path,
    *,
    memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> DatasetDict:
    """Build a store from raw files, or open it where it is up to date.

    Args:
        spec: The declaration: a ``Spec``, a TOML file or a dict.
        out: The store's folder.
        memory: Anonymous memory to stay under, in bytes or as ``"4GiB"``; default: a quarter of the machine.
        threads: How many threads parse and encode; default: the processors of this machine.
        progress: Called with a stage and its share done.

    Returns:
        The store's splits.

    Warns:
        UserWarning: ``memory`` is less than the program itself needs, and cannot be kept.

    Raises:
        SpecError: The declaration is impossible.
        SourceError: Raw files are missing or cannot be read as declared.
        BuildError: Too many rows are bad, or another process builds this store.
    """
    build_store(spec, out, memory=memory, threads=threads, progress=progress)
    return load_from_disk(out)


def build_store(
    spec: Spec | str | Path | Mapping[str, Any],
    out: str | Path,
    *,
    memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> BuildReport:
    """Build a store as ``build`` does; return what was done and why."""
    folder = disk.as_path("out", out, BuildError)
    return _Build(to_spec(spec), folder, settings_of(memory, threads, progress, stacklevel=4)).run()


def to_spec(spec: Spec | str | Path | Mapping[str, Any]) -> Spec:
    """Return the spec that a path, a dict or a ``Spec`` means."""
    if isinstance(spec, Spec):
        return spec
    return Spec.from_dict(spec) if isinstance(spec, Mapping) else Spec.load(spec)


def settings_of(
    memory: int | str | None, threads: int | None, progress: Progress, stacklevel: int = 2
) -> Settings:
    """Return the settings of a build; ``None`` takes the defaults.

    Args:
        memory: As of ``build``.
        threads: As of ``build``.
        progress: As of ``build``.
        stacklevel: Whose line a warning names: 2 is the caller's, 3 its caller's.

    Warns:
        UserWarning: They cannot be kept.

    Raises:
        BuildError: One of them is impossible.
    """
    if threads is not None and integer("threads", threads, BuildError) < 1:
        raise BuildError(f"threads is {threads}; it must be at least 1.")
    if not callable(progress):
        raise BuildError(f"progress is {progress!r}; expected a function of a stage and a share.")
    settings = Settings(
        memory=machine_memory() // 4 if memory is None else parse_size(memory),
        threads=threads or default_threads(),
        progress=progress,
    )
    for line in settings.warnings if memory is not None else ():
        warnings.warn(line, UserWarning, stacklevel=stacklevel)
    return settings


def why_stale(spec: Spec | str | Path | Mapping[str, Any], out: str | Path) -> list[str]:
    """Return why ``build`` would build this store again, one line a reason; nothing when it is up to date."""
    folder = disk.as_path("out", out, BuildError)
    return _Build(to_spec(spec), folder, settings_of(None, None, no_progress)).reasons()


class _Build:
    """One build of one store."""

    def __init__(self, spec: Spec, out: Path, settings: Settings) -> None:
        self.spec = spec
        self.out = out
        self.settings = settings
        self.plans = parse_plans(spec)
        self.readers = {
            plan.table: open_source(plan.source, spec.folder, plan.columns) for plan in self.plans
        }
        self.before = self._manifest()
        self._described = run_beside(self._describe)

    def _describe(self) -> dict[str, list[SourceEntry]]:
        """Describe every source; checksums are made while the rows are parsed."""
        known = self.before.details["sources"] if self.before else {}
        sources = {
            _source_name(table): describe_files(reader.files, _by_name(known.get(_source_name(table), [])))
            for table, reader in self.readers.items()
        }
        return sources | _taken_vocabularies(self.spec, known)

    @property
    def sources(self) -> dict[str, list[SourceEntry]]:
        """Every source file, with its checksum."""
        return self._described.result()

    @functools.cached_property
    def fingerprint(self) -> str:
        """Digest of everything that the store's bytes depend on."""
        return store_fingerprint(self.spec, self.sources)

    def _manifest(self) -> Manifest | None:
        """Return the manifest of the store as it is; None where there is none that can be used."""
        try:
            manifest = read_manifest(self.out)
        except StoreError:
            return None
        return manifest if manifest.kind == "rows" else None

    def reasons(self) -> list[str]:
        """Return why the store must be built."""
        if self.before is None:
            return [f"{self.out} holds no store that this headrace can read"]
        reasons = reasons_to_build(self.before, self.spec, self.sources)
        return reasons + [
            f"{entry.name} is missing"
            for entry in self.before.entries()
            if not (self.out / entry.name).exists()
        ]

    def run(self) -> BuildReport:
        """Build where there is a reason to."""
        refuse_foreign(self.out)
        with disk.locked(self.out / WORK / "lock", str(self.out)):
            finish_publishing(self.out)
            self.before = self._manifest()
            reasons = self.reasons()
            if not reasons and self.before is not None:
                self._renew_descriptions(self.before)
                return BuildReport(False, (), self.before.details["rows"])
            return BuildReport(True, tuple(reasons), self._build())

    def _renew_descriptions(self, manifest: Manifest) -> None:
        """Write new descriptions, which change no shard, into the manifest of a store that is up to date."""
        declared = self.spec.to_dict()
        if manifest.details["spec"] != declared:
            write_manifest(self.out, replace(manifest, details={**manifest.details, "spec": declared}))

    def _build(self) -> dict[str, Any]:
        rowset = self._rowset()
        observed_until = rowset.observed_until()
        rowset.drop_censored(observed_until)
        staging = staging_folder(self.out)
        claim(staging, self.fingerprint)
        self.settings.progress("fitting", 0.0)
        scratch = self.settings.scratch(self.out / WORK / "scratch")
        fitted = fit(rowset, observed_until, scratch, self.settings.workers)
        if self.settings.is_little:
            give_back()
        with working_beside() as run:
            run(lambda: save_fitted(staging, fitted, scratch))
            twins = run(lambda: number_twins(rowset))
            written = write_shards(rowset, fitted, staging, self.settings, labels=True)
        quarantined = self._write_quarantines(staging, rowset)
        accounting = rowset.accounting()
        check_accounting(accounting)
        details = {
            "name": self.spec.name,
            "spec": self.spec.to_dict(),
            "spec_fingerprint": self.spec.fingerprint,
            "sources": self.sources,
            "rows": asdict(accounting),
            "number_twins": twins.result(),
            "rows_without_class": rows_without_class(rowset, fitted),
            "tables": {
                name: {"read": len(table.part) + table.part.bad.left_out, "quarantined": table.bad_count}
                for name, table in self.tables.items()
            },
            "fitted": fitted_details(fitted),
        }
        files = (*fitted_files(staging, fitted), *save_tables(staging, self.tables), *quarantined)
        manifest = Manifest("rows", self.fingerprint, written.splits, (*written.records, *files), details)
        publish(self.out, manifest)
        return asdict(accounting)

    def _write_quarantines(self, staging: Path, rowset: RowSet) -> list[FileEntry]:
        sources: dict[str | None, Iterator[BadRow]] = {None: rowset.bad()}
        sources |= {name: table.bad() for name, table in self.tables.items()}
        return [
            entry
            for name, rows in sources.items()
            for entry in write_quarantines(staging, rows, [f.name for f in self.readers[name].files], name)
        ]

    def _rowset(self) -> RowSet:
        parsed = {plan.table: self._parse(plan) for plan in self.plans}
        plan_of = {plan.table: plan for plan in self.plans}
        self.tables = {
            name: JoinedTable(
                name,
                self.spec.tables[name].key,
                parsed[name].open()[0],
                self.settings.scratch(self.out / WORK / "scratch"),
            )
            for name in self.spec.tables
        }
        parts = [Rows(part, self.tables, plan_of[None].keys) for part in parsed[None].open()]
        return RowSet(self.spec, parts, [file.name for file in self.readers[None].files])

    def _parse(self, plan: ParsePlan) -> Parsed:
        reader = self.readers[plan.table]
        reader.check()
        folder = (
            self.out / WORK / "parsed" / ("rows" if plan.table is None else f"table-{safe_name(plan.table)}")
        )
        return parse_source(
            reader,
            plan,
            folder,
            self.settings,
            files=self._files_to_read(reader) if plan.table is None else None,
            one_part=plan.table is not None,
        )

    def _files_to_read(self, reader: Reader) -> list[int] | None:
        if not isinstance(self.spec.split, FileSplit):
            return None
        split = self.spec.split
        return [
            number for number, file in enumerate(reader.files) if split_of_file(split, file.name) != OUTSIDE
        ]


def _source_name(table: str | None) -> str:
    return "rows" if table is None else f"tables.{table}"


def _taken_vocabularies(spec: Spec, known: Mapping[str, list[SourceEntry]]) -> dict[str, list[SourceEntry]]:
    """Describe the vocabularies of other stores: when one changes, so would the ids."""
    described = {}
    for name, declared in spec.vocabulary_specs.items():
        if declared.from_ is None:
            continue
        path = taken_vocabulary(spec, name, declared.from_)
        if path.exists():
            where = f"{declared.from_}/{vocabulary_file(name)}"
            status = path.stat()
            file = SourceFile(where, str(path), status.st_size, status.st_mtime_ns)
            source = f"vocabularies.{name}"
            described[source] = describe_files([file], _by_name(known.get(source, [])))
    return described


def _by_name(entries: list[SourceEntry]) -> dict[str, SourceEntry]:
    return {entry["name"]: entry for entry in entries}


def refuse_foreign(out: Path) -> None:
    """Refuse to build into a folder with other things in it, or where the system lets nobody look.

    Raises:
        BuildError: It is one of these.
    """
    try:
        _refuse_foreign(out)
    except OSError as error:
        raise BuildError(f"{out} cannot be looked at ({error.strerror}). Choose another --out.") from None


def _refuse_foreign(out: Path) -> None:
    if (out / MANIFEST_NAME).exists():
        _refuse_other_kind(out)
        return
    if (out / WORK).is_dir() or not out.exists():
        return
    if not out.is_dir():
        raise BuildError(f"{out} is a file. Choose a folder for --out.")
    if any(out.iterdir()):
        raise BuildError(
            f"{out} is not empty and holds no store. "
            "Choose an empty or new folder for --out, or empty this one."
        )


def _refuse_other_kind(out: Path) -> None:
    """Refuse to put a store of rows in the place of one of another kind; a damaged one may be replaced."""
    try:
        kind = read_manifest(out).kind
    except StoreError:
        return
    if kind != "rows":
        raise BuildError(f"{out} holds a store of {kind}, not of rows. Choose another folder for --out.")


def claim(staging: Path, fingerprint: str) -> None:
    """Empty the staging folder unless what is in it is of this build."""
    marker = staging.with_name("store.fingerprint")
    if not marker.exists() or marker.read_text() != fingerprint:
        shutil.rmtree(staging, ignore_errors=True)
        disk.write_bytes(marker, fingerprint.encode())
    staging.mkdir(parents=True, exist_ok=True)
    disk.remove_temporaries(staging)


def check_accounting(accounting: Accounting) -> None:
    """Hold that every row that was read went somewhere."""
    written = sum(accounting.written.values())
    total = written + accounting.quarantined + accounting.outside + accounting.dropped
    assert accounting.read == total, accounting
