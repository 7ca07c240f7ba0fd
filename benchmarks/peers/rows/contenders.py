"""Who takes part, with the settings that were fastest here, and the others that were tried.

``python benchmarks/peers/rows/tune.py`` tries all of them again.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers.rows.layout import Batches, count

BOTH = ("int64", "int32")


@dataclass(frozen=True)
class Contender:
    """One way to make batches of rows."""

    name: str
    package: str
    """What must be installed."""
    function: str
    """``module:function`` in this folder."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The fastest found."""
    tried: tuple[dict[str, Any], ...] = ()
    """Other settings, each a change of the fastest."""
    rows: int | None = None
    """It reads so many rows only: its pace is the same, and the rest of an epoch takes too long."""
    id_dtypes: Sequence[str] = ("int64",)
    makes_batches: bool = True
    """False where there are no batches to be checked."""
    writes: str | None = None
    """The prefix of the folder with a format of its own, written before it is measured."""

    def installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None

    def start(self, folder: Path, id_dtype: str, **changes: Any) -> Batches:
        """Begin an epoch."""
        return self._function(self.function)(folder, id_dtype, **self.arguments(**changes))  # type: ignore[no-any-return]

    def arguments(self, **changes: Any) -> dict[str, Any]:
        return ({"rows": self.rows} if self.rows else {}) | self.settings | changes

    def own_format(self, folder: Path, **changes: Any) -> Path | None:
        """Return the folder of its own format, where it has one."""
        rows = count(folder, self.rows)
        return folder / f"{self.writes}-{self.arguments(**changes)['form']}-{rows}" if self.writes else None

    def prepare(self, folder: Path, **changes: Any) -> None:
        """Write the format of its own; in this process, of which some leave others behind."""
        target = self.own_format(folder, **changes)
        if target is not None:
            shutil.rmtree(target, ignore_errors=True)
            write = self._function(f"{self.function.partition(':')[0]}:write")
            write(folder, target, count(folder, self.rows), self.arguments(**changes)["form"])
            complete(target).touch()

    @staticmethod
    def _function(name: str) -> Callable[..., Any]:
        module, _, function = name.partition(":")
        return getattr(importlib.import_module(f"peers.rows.{module}"), function)  # type: ignore[no-any-return]


def complete(target: Path) -> Path:
    """Return the file that says that a format was written to its end."""
    return target.with_name(f"{target.name}.complete")


def _workers(*counts: int, **others: Any) -> tuple[dict[str, Any], ...]:
    return tuple({"workers": workers, **others} for workers in counts)


def _headrace(
    name: str, settings: Mapping[str, Any] | None = None, tried: tuple[dict[str, Any], ...] = ()
) -> Contender:
    """Return headrace over the records of a store, which are written before it is measured."""
    settings = {"form": "records", **(settings or {})}
    return Contender(
        name, "numba", "headrace_rows:loader", settings, tried, id_dtypes=BOTH, writes="headrace"
    )


CONTENDERS = [
    _headrace("headrace, 1 thread and the consumer's", tried=({"form": "columns"}, {"threads": 3})),
    _headrace("headrace, 2 threads", {"threads": 2}, tried=({"form": "columns"},)),
    _headrace("headrace, the consumer's thread alone", {"threads": 0}, tried=({"form": "columns"},)),
    _headrace("headrace, block order", {"shuffle": "block"}, tried=({"form": "columns"},)),
    Contender(
        "the machine: random rows, 2 threads",
        "numba",
        "machine:random_rows",
        {"ahead": 0},
        id_dtypes=BOTH,
        makes_batches=False,
    ),
    Contender(
        "the machine: random rows fetched ahead, 2 threads",
        "numba",
        "machine:random_rows",
        tried=({"ahead": 8}, {"ahead": 32}),
        id_dtypes=BOTH,
        makes_batches=False,
    ),
    Contender(
        "NumPy, padded on disk", "numpy", "by_hand:numpy_padded", tried=({"threads": 2},), id_dtypes=BOTH
    ),
    Contender("NumPy, ragged", "numpy", "by_hand:numpy_ragged", tried=({"threads": 2},), id_dtypes=BOTH),
    Contender(
        "torch tensors in memory", "torch", "by_hand:torch_memory", tried=({"way": "index"},), id_dtypes=BOTH
    ),
    Contender(
        "SPDL, padded on disk",
        "spdl",
        "spdl_threads:padded",
        tried=({"threads": 1}, {"threads": 3}, {"sink": 16}, {"order": "completion"}),
        id_dtypes=BOTH,
    ),
    Contender(
        "Polars gather",
        "polars",
        "tables:polars_gather",
        {"history": "padded", "way": "index"},
        tried=({"way": "gather"}, {"history": "ragged"}, {"history": "ragged", "way": "gather"}),
        id_dtypes=BOTH,
    ),
    Contender(
        "pyarrow take",
        "pyarrow",
        "tables:pyarrow_take",
        {"history": "padded", "of": "batch"},
        tried=({"of": "table"}, {"history": "ragged"}, {"history": "ragged", "of": "table"}),
        id_dtypes=BOTH,
    ),
    Contender(
        "TensorDataset, BatchSampler",
        "torch",
        "torch_loaders:tensor_dataset",
        tried=_workers(1, 2),
        id_dtypes=BOTH,
    ),
    Contender(
        "DataLoader, __getitems__",
        "torch",
        "torch_loaders:whole_batches",
        tried=(*_workers(1, 2), {"workers": 2, "prefetch": 4}),
        id_dtypes=BOTH,
    ),
    Contender(
        "datasets, arrow batches",
        "datasets",
        "hugging_face:in_batches",
        {"form": "arrow", "history": "padded", "workers": 2},
        tried=(*_workers(0, 1), *_workers(0, 1, 2, history="ragged")),
        id_dtypes=BOTH,
    ),
    Contender(
        "datasets, torch format, padded lists",
        "datasets",
        "hugging_face:in_batches",
        {"form": "torch", "history": "padded"},
        tried=_workers(1, 2),
    ),
    Contender(
        "datasets, torch format, batched",
        "datasets",
        "hugging_face:in_batches",
        {"form": "torch", "workers": 2},
        tried=_workers(0, 1),
    ),
    Contender(
        "datasets, torch format, row by row",
        "datasets",
        "hugging_face:row_by_row",
        {"workers": 2},
        tried=_workers(0, 1),
        rows=50_000,
    ),
    Contender(
        "datasets, shuffle buffer",
        "datasets",
        "hugging_face:streaming",
        {"form": "arrow"},
        tried=({"form": "torch"}, {"buffer": 1000}, {"buffer": 100_000}),
    ),
    Contender(
        "DataLoader over NumPy rows",
        "torch",
        "torch_loaders:numpy_rows",
        tried=(*_workers(0, 1), {"prefetch": 4}, *_workers(0, 1, 2, collate="default")),
        rows=400_000,
        id_dtypes=BOTH,
    ),
    Contender(
        "DataLoader over NumPy records",
        "torch",
        "torch_loaders:numpy_rows",
        {"collate": "records"},
        tried=_workers(0, 1),
        rows=400_000,
        id_dtypes=BOTH,
    ),
    Contender(
        "DataLoader over Python lists",
        "torch",
        "torch_loaders:list_rows",
        tried=(*_workers(0, 1), {"prefetch": 4}),
        rows=200_000,
        id_dtypes=BOTH,
    ),
    Contender(
        "DataLoader over Python lists, tensors of each row",
        "torch",
        "torch_loaders:list_rows",
        {"collate": "default"},
        tried=_workers(0, 1),
        rows=200_000,
    ),
    Contender(
        "Grain, row by row",
        "grain",
        "grain_rows:row_by_row",
        tried=(
            *_workers(0, 1),
            {"stack": "grain"},
            {"workers": 0, "threads": 2, "ahead": 4},
            {"workers": 0, "threads": 16, "ahead": 16},
        ),
    ),
    Contender(
        "Grain, NumPy records",
        "grain",
        "grain_rows:row_by_row",
        {"stack": "records"},
        tried=(*_workers(0, 1), {"workers": 0, "threads": 2, "ahead": 4}),
    ),
    Contender(
        "Grain, gather of batched indices",
        "grain",
        "grain_rows:by_indices",
        {"workers": 2},
        tried=(*_workers(0, 1), {"workers": 0, "threads": 2, "ahead": 8}),
    ),
    Contender(
        "LitData, dicts",
        "litdata",
        "litdata_rows:loader",
        {"form": "dict"},
        tried=(*_workers(0, 1), {"decode": "auto"}, {"decode": 0}, {"decode": 256}, {"window": 0}),
        rows=200_000,
        writes="litdata",
    ),
    Contender(
        "LitData, rows as bytes",
        "litdata",
        "litdata_rows:loader",
        {"form": "bytes", "decode": "auto"},
        tried=(*_workers(0, 1), {"decode": 1}, {"decode": 0}, {"decode": 256}, {"window": 0}),
        rows=400_000,
        writes="litdata",
    ),
    Contender(
        "MosaicML Streaming, columns",
        "streaming",
        "mosaic_rows:loader",
        {"form": "columns"},
        tried=(*_workers(0, 1), {"shuffle": "py1s"}, {"shuffle": "naive"}),
        rows=200_000,
        writes="mds",
    ),
    Contender(
        "MosaicML Streaming, rows as bytes",
        "streaming",
        "mosaic_rows:loader",
        {"form": "bytes"},
        tried=(*_workers(0, 1), {"shuffle": "py1s"}, {"shuffle": "naive"}),
        rows=400_000,
        writes="mds",
    ),
    Contender(
        "WebDataset, .npy parts",
        "webdataset",
        "webdataset_rows:loader",
        {"form": "parts"},
        tried=(*_workers(0, 1), {"buffer": 1000}),
        rows=100_000,
        writes="wds",
    ),
    Contender(
        "WebDataset, rows as bytes",
        "webdataset",
        "webdataset_rows:loader",
        {"form": "bytes"},
        tried=(*_workers(0, 1), {"buffer": 1000}),
        rows=400_000,
        writes="wds",
    ),
]
"""Ours first: ratios are to it."""
