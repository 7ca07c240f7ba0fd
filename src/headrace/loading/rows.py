"""Rows of encoded columns as a sample space: no Arrow, no store, only arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headrace.errors import LoaderError
from headrace.kernels import operations as kernels
from headrace.kernels.gather import gather, locate
from headrace.kernels.gather_lists import spans
from headrace.loading.columns import Column
from headrace.loading.dtypes import dtype_name
from headrace.loading.pool import Fresh
from headrace.loading.space import Batch, Memory, Role
from headrace.loading.tables import Ragged, build_table
from headrace.order.integers import integers
from headrace.order.sampler import digest

_ID_DTYPES = ("int64", "int32")
Selection: TypeAlias = "range | NDArray[np.int64] | None"


class Rows:
    """The rows of a list of shards, or of a selection of them: a ``SampleSpace``.

        rows = Rows([Scalar("user", [users_0, users_1]), Ragged("history", ...)], shard_rows=[1000, 900])
        rows.gather(np.array([3, 1205]), keys)      # {"user": [2], "history": [2, L], "history_mask": …}

    Every batch also has ``sample_id`` int64 [B]: the row in all shards together, whatever is selected.

    Args:
        columns: What a batch is made of.
        shard_rows: Rows of each shard.
        fingerprint: Stands for the data, before ``select``.
        id_dtype: Dtype of ids in a batch.
        masks: Give ``name_present`` bool [B] for every column that is not a label.
        pad_to: Width of padded columns: ``"max"`` their ``max_length``, ``"batch"`` the longest in the batch.
        layout: ``"jagged"`` gives ``name`` [sum of lengths] and ``name_lengths`` instead of padding.
        meta: Names of columns whose role is ``"meta"``, such as ``weight``.
        reopen: A function and its arguments that make these rows anew, without selection, in another
            process; without it the arrays themselves travel.

    Raises:
        LoaderError: Arrays do not fit their column, or two columns give one name.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        shard_rows: Sequence[int],
        fingerprint: str,
        *,
        id_dtype: DTypeLike = "int64",
        masks: bool = False,
        pad_to: Literal["max", "batch"] = "max",
        layout: Literal["padded", "jagged"] = "padded",
        meta: Sequence[str] = ("weight",),
        reopen: tuple[Callable[..., Rows], tuple[Any, ...]] | None = None,
    ) -> None:
        ids = dtype_name(id_dtype, _ID_DTYPES) or id_dtype
        _check_choice("id_dtype", ids, _ID_DTYPES)
        _check_choice("pad_to", pad_to, ("max", "batch"))
        _check_choice("layout", layout, ("padded", "jagged"))
        self._arguments = {"id_dtype": ids, "masks": masks, "pad_to": pad_to, "layout": layout}
        self._columns = tuple(columns)
        self._meta = tuple(meta)
        self._shard_rows = tuple(int(rows) for rows in shard_rows)
        self._reopen = reopen
        self._data_fingerprint = fingerprint
        self._selection: Selection = None
        self._tight = pad_to == "batch" and layout == "padded"
        self._flat = layout == "jagged"
        self._table = build_table(self._columns, self._shard_rows, np.dtype(ids), masks, self._flat)
        self._names = [output.name for output in self._table.outputs]
        self._starts = np.concatenate([[0], np.cumsum(self._shard_rows)]).astype(np.int64)

    def __len__(self) -> int:
        return int(self._starts[-1]) if self._selection is None else len(self._selection)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (
            self._reopen,
            None if self._reopen else self._parts(),
            self._selection,
            self._arguments,
        )

    def _parts(self) -> tuple[Any, ...]:
        return self._columns, self._shard_rows, self._data_fingerprint, self._meta

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of data and selection."""
        if self._selection is None:
            return self._data_fingerprint
        if isinstance(self._selection, range):
            text = f"{self._selection.start}:{len(self._selection)}:{self._selection.step}"
            return f"{self._data_fingerprint}-{digest(np.frombuffer(text.encode(), np.uint8))}"
        return f"{self._data_fingerprint}-{digest(self._selection)}"

    @property
    def data_fingerprint(self) -> str:
        """Stands for the data, whatever is selected of it."""
        return self._data_fingerprint

    @property
    def parameters(self) -> Mapping[str, str]:
        """What changes the shape of a batch: named when a state of another layout is refused."""
        return {"layout": str(self._arguments["layout"]), "pad_to": str(self._arguments["pad_to"])}

    @property
    def fill(self) -> Mapping[str, float]:
        """Nothing: filling rows are all PAD, 0 and False."""
        return MappingProxyType({})

    @property
    def roles(self) -> Mapping[str, Role]:
        """Labels are targets; ``sample_id`` and the weight are meta."""
        roles: dict[str, Role] = {"sample_id": "meta"}
        for output in self._table.outputs:
            if output.label:
                roles[output.name] = "targets"
            elif output.name in self._meta:
                roles[output.name] = "meta"
        return roles

    @property
    def jagged(self) -> Mapping[str, str]:
        """Arrays whose first dimension is a sum of lengths, and the name of those lengths."""
        if not self._flat:
            return MappingProxyType({})
        pairs = {}
        for column in self._table.ragged:
            pairs[column.name] = f"{column.name}_lengths"
            if column.weighted:
                pairs[f"{column.name}_weights"] = f"{column.name}_lengths"
        return pairs

    @property
    def epoch_length(self) -> int:
        """The number of samples, the same in every epoch."""
        return len(self)

    def at(self, seed: int, epoch: int) -> Rows:
        """Return these rows: they are the same in every epoch."""
        return self

    def select(self, rows: range | NDArray[Any] | Sequence[int]) -> Rows:
        """Return a view of some rows, in the given order, as cheap to gather from as all of them.

        Args:
            rows: Indices into this view, each in ``[0, len(self))``; repeats are allowed.

        Raises:
            LoaderError: An index is not in this view.
        """
        view = object.__new__(Rows)
        view.__dict__.update(self.__dict__)
        view._selection = _compose(self._selection, rows, len(self))
        return view

    def over(self, columns: Sequence[Column], size: int) -> Rows:
        """Return ``size`` other rows of the same columns, in one shard; the layout is not made again.

        Args:
            columns: As these rows were made of, with one array each of the same dtype.
            size: Rows in them.

        Raises:
            LoaderError: The columns are others.
        """
        view = object.__new__(Rows)
        view.__dict__.update(self.__dict__)
        view._columns, view._shard_rows, view._selection = tuple(columns), (size,), None
        view._table = self._table.over(columns)
        view._starts = np.array([0, size], np.int64)
        return view

    def lengths(self, name: str) -> NDArray[np.int64]:
        """Return the length of every row of a ragged column: int64 [N], for length-bucketed orders."""
        for column in self._table.ragged:
            if column.name == name:
                return self._lengths(column)
        raise LoaderError(f"'{name}' is not a ragged column of these rows.")

    def sample_lengths(self) -> NDArray[np.int64]:
        """Return the tokens of every row, over all ragged columns: int64 [N], for ``max_tokens=``."""
        if not self._table.ragged:
            raise LoaderError(
                "max_tokens= needs samples with lengths, and no column here is ragged; use batch_size=."
            )
        total: NDArray[np.int64] = np.sum([self._lengths(column) for column in self._table.ragged], axis=0)
        return total

    def _lengths(self, column: Ragged) -> NDArray[np.int64]:
        shards = [
            np.minimum(np.diff(offsets.astype(np.int64)), column.max_length) for offsets in column.offsets
        ]
        every = np.concatenate([np.empty(0, np.int64), *shards])
        if isinstance(self._selection, range):
            return every[np.asarray(self._selection, dtype=np.int64)]
        return every if self._selection is None else every[self._selection]

    def gather(self, indices: NDArray[np.int64], keys: NDArray[np.uint64]) -> Batch:
        """Build one minibatch; ``keys`` are not used, since nothing here is drawn."""
        return self.gather_run(np.array(indices, np.int64), keys, np.array([0, indices.size]), Fresh())[0]

    def gather_run(
        self,
        indices: NDArray[np.int64],
        keys: NDArray[np.uint64],
        bounds: NDArray[np.int64],
        memory: Memory,
    ) -> list[Batch]:
        """Build several minibatches: batch b of the rows ``[bounds[b], bounds[b + 1])`` of ``indices``."""
        rows = self._rows(indices)
        shard = np.empty(rows.size, np.int32)
        place = np.empty(rows.size, np.int64)
        wrong = locate(rows, self._starts, shard, place)
        if wrong >= 0:
            raise LoaderError(
                f"sample {rows[wrong]} is not in [0, {self._starts[-1]}), the rows of these shards."
            )
        operations = self._operations(bounds, shard, place)
        batches, out = self._allocate(rows, bounds, operations, memory)
        addresses, limits = self._table.addresses, self._table.limits
        problem, operation, row = gather(operations, addresses, limits, bounds, shard, place, out)
        if problem != kernels.GOOD:
            raise self._error(problem, operation, int(rows[row]))
        return batches

    def _allocate(
        self,
        rows: NDArray[np.int64],
        bounds: NDArray[np.int64],
        operations: NDArray[np.int64],
        memory: Memory,
    ) -> tuple[list[Batch], NDArray[np.uint64]]:
        """Return the arrays of each batch, of which ``sample_id`` is written, and their addresses."""
        sizes = np.diff(bounds).tolist()
        out = np.zeros((len(sizes), self._table.slots), np.uint64)
        columns: list[list[NDArray[Any]]] = [[]] * len(self._names)
        for alike in self._table.alike:
            arrays, addresses = memory.allocate(alike.shapes(sizes, operations), alike.dtype)
            out[:, alike.slots] = np.array(addresses, np.uint64).reshape(len(sizes), -1)
            for number, place in enumerate(alike.places):
                columns[place] = arrays[number :: len(alike.places)]
        for array, first in zip(columns[-1], bounds.tolist(), strict=False):
            array[:] = rows[first : first + array.size]
        return [dict(zip(self._names, arrays, strict=True)) for arrays in zip(*columns, strict=True)], out

    def will_read(self, ranges: NDArray[np.int64]) -> None:
        """Have the system read these samples ahead: int64 [ranges, 2], first and end of each.

        A selection that is not all rows is not read ahead.
        """
        if self._selection is not None:
            return
        for first, end in ranges.tolist():
            self._read_rows(first, end)

    def _read_rows(self, first: int, end: int) -> None:
        """Read a range of rows ahead, shard by shard."""
        shard = int(np.searchsorted(self._starts, first, side="right")) - 1
        while first < end:
            start, stop = int(self._starts[shard]), int(self._starts[shard + 1])
            self._table.read_ahead(shard, first - start, min(end, stop) - start)
            first, shard = min(end, stop), shard + 1

    def _rows(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row in all shards of each index."""
        if self._selection is None:
            return indices
        if indices.size and not (indices.min() >= 0 and indices.max() < len(self._selection)):
            raise LoaderError(f"a sample is not in [0, {len(self._selection)}), the rows of this selection.")
        if isinstance(self._selection, range):
            return indices * self._selection.step + self._selection.start
        return np.take(self._selection, indices, mode="clip")

    def _operations(
        self, bounds: NDArray[np.int64], shard: NDArray[np.int32], place: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the operations of all batches, or of each where widths depend on the batch."""
        if not (self._tight or self._flat):
            return self._table.operations[None]
        parts = pairwise(bounds.tolist())
        return np.stack([self._measured(shard[first:end], place[first:end]) for first, end in parts])

    def _measured(self, shard: NDArray[np.int32], place: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the operations of one batch, with its widths."""
        operations = self._table.operations.copy()
        for column in self._table.ragged:
            total, longest = self._measure(column, shard, place)
            operations[column.operation, kernels.SIZE] = total
            if self._tight:
                operations[column.operation, kernels.WIDTH] = longest
        return operations

    def _measure(self, column: Ragged, shard: NDArray[np.int32], place: NDArray[np.int64]) -> tuple[int, int]:
        operation = self._table.operations[column.operation]
        row = int(operation[kernels.TABLE])
        lengths = np.empty(place.size, np.int32)
        total, longest, _ = spans(
            self._table.addresses[row],
            int(operation[kernels.STRIDE]),
            bool(operation[kernels.WIDE]),
            self._table.limits[row + 1],
            column.max_length,
            kernels.LEFT,
            shard,
            place,
            np.empty(place.size, np.int64),
            np.uint64(lengths.ctypes.data),
        )
        return total, longest

    def _error(self, problem: int, operation: int, row: int) -> LoaderError:
        name = self._table.names[operation]
        if problem == kernels.TOO_LARGE:
            wide = self._arguments["id_dtype"] == "int64"
            advice = "ids are below 2**63" if wide else "load it with id_dtype='int64'"
            return LoaderError(
                f"{name}: row {row} holds an id that {self._arguments['id_dtype']} cannot hold; {advice}."
            )
        return LoaderError(
            f"{name}: the offsets of row {row} point outside of its values: the shard is damaged. "
            "'headrace verify' names the file."
        )


def _compose(selection: Selection, rows: range | NDArray[Any] | Sequence[int], size: int) -> Selection:
    """Return the selection of ``rows`` from a selection."""
    chosen: range | NDArray[np.int64] = rows if isinstance(rows, range) else _chosen(rows)
    bounds = (
        (min(chosen[0], chosen[-1]), max(chosen[0], chosen[-1]))
        if isinstance(chosen, range) and chosen
        else None
    )
    if isinstance(chosen, np.ndarray) and chosen.size:
        bounds = (int(chosen.min()), int(chosen.max()))
    if bounds and not (bounds[0] >= 0 and bounds[1] < size):
        wrong = bounds[0] if bounds[0] < 0 else bounds[1]
        raise LoaderError(f"row {wrong} is not in [0, {size}), the rows that are selected from.")
    if selection is None:
        return chosen
    if isinstance(chosen, range):
        return selection[chosen.start : _stop(chosen) : chosen.step]
    if isinstance(selection, range):
        return chosen * selection.step + selection.start
    return selection[chosen]


def _chosen(rows: Any) -> NDArray[np.int64]:
    try:
        return integers("row", rows)
    except TypeError as error:
        raise LoaderError(f"select(rows): {error}") from None


def _stop(chosen: range) -> int | None:
    """Return the end of a slice that means the same as a range, also when it runs down to 0."""
    return None if chosen.step < 0 and chosen.stop < 0 else chosen.stop


def _rebuild(
    reopen: tuple[Callable[..., Rows], tuple[Any, ...]] | None,
    parts: tuple[Any, ...] | None,
    selection: Selection,
    arguments: dict[str, Any],
) -> Rows:
    """Make rows in another process."""
    if reopen is None:
        columns, shard_rows, fingerprint, meta = parts or ((), (), "", ())
        rows = Rows(columns, shard_rows, fingerprint, meta=meta, **arguments)
    else:
        rows = reopen[0](*reopen[1])
    rows._selection = selection
    return rows


def _check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise LoaderError(f"{name}={value!r}; it is {' or '.join(repr(choice) for choice in allowed)}.")
