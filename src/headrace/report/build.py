"""What a build did, for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headrace.dataset.layout import QUARANTINE
from headrace.dataset.splits import DatasetDict, load_from_disk
from headrace.fit.vocabulary import Vocabulary
from headrace.report.text import aligned, counted, indented
from headrace.sources import QuarantinedRow, read_quarantine


@dataclass(frozen=True)
class BuildSummary:
    """What was built, of what, and how fast."""

    store: str
    built: bool
    """False: the store was up to date."""
    reasons: tuple[str, ...]
    """Why it was built."""
    warnings: tuple[str, ...]
    """What the declaration makes possible, and probably does not mean."""
    rows: Mapping[str, Any]
    """``read``; ``written`` by split, ``quarantined``, ``outside`` and ``dropped`` add up to it."""
    vocabularies: Mapping[str, Mapping[str, int]]
    """By name: ``size`` (of its embedding table), ``values``, ``seen`` in train, ``unknown`` of these."""
    number_twins: Mapping[str, int]
    """By vocabulary: values that stand as ``1001`` and as ``1001.0``, which are two ids."""
    rows_without_class: Mapping[str, Mapping[str, int]]
    """By class label and split: rows whose value is none of the classes, so that the label is masked."""
    quarantine: Mapping[str, Any] | None
    """The folder, and the ``first`` bad row; None where there is none."""
    seconds: float
    rows_per_second: float
    """Of the rows read; 0 where nothing was built."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def summarize(
    store: Path, *, built: bool, reasons: tuple[str, ...], warnings: tuple[str, ...], seconds: float
) -> BuildSummary:
    """Describe a store that was just built or found up to date.

    Raises:
        StoreError: A file of the store cannot be read.
    """
    splits = load_from_disk(store)
    return BuildSummary(
        store=str(store),
        built=built,
        reasons=reasons,
        warnings=warnings,
        rows=splits.accounting,
        vocabularies={name: _vocabulary(one) for name, one in splits.vocabularies.items()},
        number_twins=splits.manifest.details.get("number_twins", {}),
        rows_without_class=splits.manifest.details.get("rows_without_class", {}),
        quarantine=_quarantine(splits),
        seconds=seconds,
        rows_per_second=splits.accounting["read"] / seconds if built and seconds > 0 else 0.0,
    )


def _vocabulary(vocabulary: Vocabulary) -> dict[str, int]:
    return {
        "size": len(vocabulary),
        "values": len(vocabulary.values),
        "seen": int(vocabulary.counts.sum()),
        "unknown": _unseen(vocabulary),
    }


def _unseen(vocabulary: Vocabulary) -> int:
    """Return how many values of train the vocabulary does not hold: those of UNKNOWN and of the buckets."""
    buckets = vocabulary.rules.first_id + len(vocabulary.values)
    unknown = vocabulary.counts[vocabulary.unk] if vocabulary.unk != vocabulary.missing else 0
    return int(unknown + vocabulary.counts[buckets:].sum())


def _quarantine(splits: DatasetDict) -> dict[str, Any] | None:
    files = [entry.name for entry in splits.manifest.files if entry.name.startswith(f"{QUARANTINE}/")]
    if not files:
        return None
    first: QuarantinedRow = next(read_quarantine(splits.folder / files[0]))
    return {
        "folder": str(splits.folder / QUARANTINE),
        "first": {
            "file": first.file,
            "line": first.line,
            "byte_offset": first.byte_offset,
            "reason": first.reason,
        },
    }


def build_lines(summary: BuildSummary) -> Iterator[str]:
    """Yield what ``headrace build`` prints."""
    if summary.built:
        speed = f"{summary.seconds:.1f} s, {summary.rows_per_second:,.0f} rows/s"
        yield f"{summary.store}: built in {speed}"
        yield from indented(f"because {reason}" for reason in summary.reasons)
    else:
        yield f"{summary.store}: up to date, nothing was built"
    yield from account_lines(summary.rows)
    yield from _quarantine_lines(summary)
    yield from _class_lines(summary)
    yield from _vocabulary_lines(summary)
    yield from _twin_lines(summary)


def account_lines(rows: Mapping[str, Any]) -> Iterator[str]:
    """Yield where every row that was read went."""
    parts = {
        **rows["written"],
        "quarantined": rows["quarantined"],
        "outside every split": rows["outside"],
        "dropped as censored": rows["dropped"],
    }
    shown = {name: count for name, count in parts.items() if count or name in rows["written"]}
    yield f"{counted(rows['read'], 'row')} read"
    yield from indented(aligned(((name, f"{count:,}") for name, count in shown.items()), right=[1]))


def _quarantine_lines(summary: BuildSummary) -> Iterator[str]:
    if summary.quarantine is None:
        return
    first = summary.quarantine["first"]
    byte = f" (byte {first['byte_offset']})" if first["byte_offset"] >= 0 else ""
    yield f"bad rows are in {summary.quarantine['folder']}; the first one:"
    yield f"  {first['file']}:{first['line']}{byte}: {first['reason']}"


def _vocabulary_lines(summary: BuildSummary) -> Iterator[str]:
    if not summary.vocabularies:
        return
    header = ("vocabulary", "size", "values", "seen in train", "of these unknown")
    rows = [
        (name, *(f"{one[key]:,}" for key in ("size", "values", "seen", "unknown")))
        for name, one in summary.vocabularies.items()
    ]
    yield from aligned([header, *rows], right=[1, 2, 3, 4])


def _twin_lines(summary: BuildSummary) -> Iterator[str]:
    for name, count in summary.number_twins.items():
        yield (
            f"vocabulary {name}: {counted(count, 'value')} in two ways, as 1001 and 1001.0, "
            "which are two ids. Write them in one way where they mean the same."
        )


def _class_lines(summary: BuildSummary) -> Iterator[str]:
    for name, splits in summary.rows_without_class.items():
        counts = ", ".join(f"{counted(count, 'row')} of {split}" for split, count in splits.items())
        yield (
            f"label {name}: {counts} with a value that is no class; the label is masked there. "
            "Add the value to values = [...] where it was forgotten."
        )
