"""Plans kept beside the tokens: which windows a stream or pieces a row has, made once, then mapped.

    store/plans/best_fit-1f0c....arrow      pieces of each packed row
    store/plans/aligned-77ab....arrow       windows of each stream

A plan's name holds the digest of what it depends on, and its schema a checksum of that and of its runs.
One that is missing, damaged, of another name, or does not lie inside the tokens is made again. Where the
folder cannot be written, and for tokens that are in no store, a plan stays in memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from headrace.arrays import numbers_of
from headrace.dataset.shard import open_shard, write_shard
from headrace.errors import StoreError
from headrace.kernels.windows_plans import runs_lie_inside
from headrace.text.runs import Integers
from headrace.text.streams import Streams

FOLDER = "plans"
"""Below a store's folder."""
_RUNS = "runs"
_CHECKSUM = b"headrace.xxh3"
_VERSION = 3
"""Raised when the same declaration is cut otherwise than before."""


class RunPlan(NamedTuple):
    """A list of runs for each stream or row."""

    offsets: Integers
    """int64 [K+1], which runs are of which stream or row."""
    columns: Mapping[str, NDArray[Any]]
    """``position`` int64 [N] and ``size`` int32 [N] of each run, and what else is known of it, int32 [N]."""


def kept_plan(
    streams: Streams,
    kind: str,
    declared: object,
    make: Callable[[], RunPlan],
    fits: Callable[[RunPlan], bool],
) -> RunPlan:
    """Return a plan, made on first use and mapped from then on.

    Args:
        streams: What is cut.
        kind: First part of the file's name.
        declared: What else the plan depends on; its ``repr`` is part of the digest.
        make: Makes the plan.
        fits: Whether a plan that was read, and whose runs lie inside the tokens, fits in the rows.
    """
    tokens = streams.tokens
    if tokens.folder is None:
        return make()
    key = repr((_VERSION, kind, tokens.fingerprint, streams.eos, streams.joined, declared))
    path = tokens.folder / FOLDER / f"{kind}-{xxhash.xxh3_128_hexdigest(key.encode())}.arrow"
    if (kept := _read(path, key, streams, fits)) is not None:
        return kept
    made = make()
    return (_read(path, key, streams, fits) if _write(path, key, made) else None) or made


def remove_plans(folder: Path) -> None:
    """Remove the plans of a store that holds other tokens now; who has mapped one keeps it."""
    shutil.rmtree(folder / FOLDER, ignore_errors=True)


def _read(path: Path, key: str, streams: Streams, fits: Callable[[RunPlan], bool]) -> RunPlan | None:
    """Map the plan of a key; None where there is none that can be trusted."""
    if not path.exists():
        return None
    try:
        batch = open_shard(path)
        plan = _plan_of(batch)
        told = (batch.schema.metadata or {}).get(_CHECKSUM, b"").decode()
        return plan if told == _checksum(key, plan) and _lies_inside(plan, streams) and fits(plan) else None
    except (StoreError, KeyError, AttributeError, TypeError, ValueError):
        return None


def _plan_of(batch: pa.RecordBatch) -> RunPlan:
    """Return a plan's arrays over the bytes of its file."""
    runs = batch.column(_RUNS)
    columns = {field.name: numbers_of(runs.values.field(field.name)) for field in runs.values.type}
    plan = RunPlan(np.asarray(runs.offsets), columns)
    dtypes = {name: np.dtype(np.int64 if name == "position" else np.int32) for name in columns}
    if plan.offsets.dtype != np.int64 or any(columns[name].dtype != dtypes[name] for name in columns):
        raise TypeError("other dtypes than a plan has")
    return plan


def _checksum(key: str, plan: RunPlan) -> str:
    """Return a digest of a plan and of what it depends on: a file that was renamed is no other plan."""
    digest = xxhash.xxh3_64(key.encode())
    for name, array in (("offsets", plan.offsets), *sorted(plan.columns.items())):
        digest.update(f"{name} {array.dtype.str} {array.size};".encode())
        digest.update(array.view(np.uint8).data)
    return digest.hexdigest()


def _lies_inside(plan: RunPlan, streams: Streams) -> bool:
    """Whether all runs lie inside the tokens: kernels read what a plan says without a look."""
    position, size = plan.columns["position"], plan.columns["size"]
    return bool(runs_lie_inside(plan.offsets, position, size, streams.num_positions))


def _write(path: Path, key: str, plan: RunPlan) -> bool:
    """Write a plan; return whether the folder could be written."""
    names, arrays = zip(*plan.columns.items(), strict=True)
    runs = pa.StructArray.from_arrays([pa.array(array) for array in arrays], names)
    rows = pa.LargeListArray.from_arrays(pa.array(plan.offsets), runs)
    batch = pa.RecordBatch.from_arrays([rows], [_RUNS])
    try:
        write_shard(path, batch.replace_schema_metadata({_CHECKSUM: _checksum(key, plan).encode()}))
    except OSError:
        return False
    return True
