"""What was learned from train, to and from a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.dataset.layout import STATISTICS, vocabulary_file
from headrace.dataset.manifest import Manifest
from headrace.dataset.shard import FileEntry, open_shard, write_table
from headrace.errors import HeadraceError, StoreError
from headrace.fit.fitted import Fitted
from headrace.fit.saved import index_path
from headrace.fit.statistics import Statistics
from headrace.fit.vocabulary import Vocabulary
from headrace.scratch import IN_MEMORY, Scratch
from headrace.spec import Attribution, ClassLabel, Numeric, Spec

FITTED_TRANSFORMS = ("standardize", "minmax", "bucketize")
"""Transforms of numbers that need statistics."""

_STATISTICS = pa.schema(
    [
        pa.field("feature", pa.string(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        *(
            pa.field(name, pa.float64(), nullable=False)
            for name in ("mean", "deviation", "minimum", "maximum")
        ),
        pa.field("boundaries", pa.list_(pa.float64()), nullable=False),
    ]
)


def save_fitted(folder: Path, fitted: Fitted, scratch: Scratch = IN_MEMORY) -> None:
    """Write vocabularies and statistics below a store's folder; large arrays lie in ``scratch``."""
    for name, vocabulary in fitted.vocabularies.items():
        vocabulary.save(folder / vocabulary_file(name), scratch)
    rows = [
        {
            "feature": name,
            "count": one.count,
            "mean": one.mean,
            "deviation": one.deviation,
            "minimum": one.minimum,
            "maximum": one.maximum,
            "boundaries": list(one.boundaries),
        }
        for name, one in fitted.statistics.items()
    ]
    write_table(folder / STATISTICS, pa.Table.from_pylist(rows, schema=_STATISTICS))


def fitted_files(folder: Path, fitted: Fitted) -> Iterator[FileEntry]:
    """Describe the files that ``save_fitted`` wrote, for the manifest."""
    for name, vocabulary in fitted.vocabularies.items():
        table = vocabulary_file(name)
        yield FileEntry.of(folder, table, rows=len(vocabulary))
        yield FileEntry.of(folder, str(index_path(Path(table))), rows=1)
    yield FileEntry.of(folder, STATISTICS, rows=len(fitted.statistics))


def fitted_details(fitted: Fitted) -> dict[str, Any]:
    """Return what the manifest itself holds of it."""
    return {
        "classes": {name: list(values) for name, values in fitted.classes.items()},
        "observed_until": {name: dict(ends) for name, ends in fitted.observed_until.items()},
    }


def load_fitted(folder: Path, spec: Spec, manifest: Manifest) -> Fitted:
    """Memory-map what a store learned.

    Raises:
        StoreError: A file is missing or damaged.
    """
    table = open_shard(folder / STATISTICS)
    try:
        statistics = {row.pop("feature"): _statistics(row) for row in table.to_pylist()}
        details: Mapping[str, Any] = manifest.details["fitted"]
        fitted = Fitted(
            vocabularies={
                name: Vocabulary.load(folder / vocabulary_file(name)) for name in spec.vocabulary_specs
            },
            statistics=statistics,
            classes={name: tuple(values) for name, values in details["classes"].items()},
            observed_until={
                name: {split: int(end) for split, end in ends.items()}
                for name, ends in details["observed_until"].items()
            },
        )
        _check(fitted, spec)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, HeadraceError):
            raise
        raise StoreError(
            f"{folder}: what was fitted cannot be read ({error}). Build the store again."
        ) from None
    return fitted


def _check(fitted: Fitted, spec: Spec) -> None:
    """Raise ``ValueError`` where something is missing that encoding looks up."""
    for name, feature in spec.features.items():
        if isinstance(feature, Numeric) and feature.transform in FITTED_TRANSFORMS:
            boundaries = fitted.statistics[name].boundaries
            if len(boundaries) >= (feature.buckets or 1):
                raise ValueError(f"{name} has {len(boundaries)} boundaries")
    for name, label in spec.labels.items():
        if isinstance(label, ClassLabel) and not all(isinstance(one, str) for one in fitted.classes[name]):
            raise ValueError(f"a class of {name} is no text")
        if isinstance(label, Attribution) and not fitted.observed_until[name]:
            raise ValueError(f"up to when {name} was observed is not there")


def _statistics(row: dict[str, Any]) -> Statistics:
    return Statistics(**{**row, "boundaries": tuple(row["boundaries"])})
