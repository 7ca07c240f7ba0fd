"""``Dataset``: immutable rows over memory-mapped shards or arrays in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import DTypeLike, NDArray

from headrace.dataset.encoded import EncodedStore, names_of_rows
from headrace.dataset.memory import columns_of, table_of
from headrace.dataset.shard import empty_batch
from headrace.dataset.view import encoded_rows
from headrace.errors import SourceError, StoreError, did_you_mean
from headrace.loading.loader import Loader
from headrace.loading.rows import Rows
from headrace.order.integers import integers

if TYPE_CHECKING:
    import pandas as pd

    from headrace.loading.torch import TorchDataset

_ITERATION_ROWS = 1000


class Dataset:
    """Rows with named columns; a row, a slice or a column is read when it is asked for.

    Args:
        shards: Record batches in row order, at least one, of one schema.
        fingerprint: Stands for the rows of the shards.
        store: Where they came from, when a spec encoded them.
        selection: Which rows of the shards, in which order; ``None``: all.
        place: Folder and split of the store whose rows these are, all of them and in its order; ``None``
            for a selection, and for rows in memory.
    """

    def __init__(
        self,
        shards: Sequence[pa.RecordBatch],
        fingerprint: str,
        store: EncodedStore | None = None,
        selection: NDArray[np.int64] | None = None,
        place: tuple[Path, str] | None = None,
    ) -> None:
        self.shards = tuple(shards)
        self.store = store
        self.place = place
        self._data_fingerprint = fingerprint
        self._selection = selection
        self._table = pa.Table.from_batches(self.shards)

    @classmethod
    def from_dict(cls, columns: Mapping[str, Any]) -> Dataset:
        """Make a dataset of columns, each a list, a NumPy or an Arrow array, all of one length.

        Raises:
            SourceError: They are of several lengths, or Arrow has no type for the values of one.
        """
        return cls.from_arrow(table_of(columns))

    @classmethod
    def from_list(cls, rows: Iterable[Mapping[str, Any]]) -> Dataset:
        """Make a dataset of rows, each a mapping; a name that a row lacks is null in it.

        Raises:
            SourceError: A row is no mapping, or Arrow has no type for the values of a name.
        """
        return cls.from_arrow(table_of(columns_of(rows)))

    @classmethod
    def from_arrow(cls, table: pa.Table | pa.RecordBatch) -> Dataset:
        """Make a dataset of an Arrow table that is in memory or memory-mapped.

        Raises:
            SourceError: It is no Arrow table.
        """
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        if not isinstance(table, pa.Table):
            raise SourceError(f"expected an Arrow table, found {type(table).__name__}.")
        batches = table.combine_chunks().to_batches() or [empty_batch(table.schema)]
        return cls(batches, _digest(batches))

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._table.column_names)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._table.num_rows if self._selection is None else len(self._selection)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow types of the columns."""
        return self._table.schema

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of the rows."""
        if self._selection is None:
            return self._data_fingerprint
        return f"{self._data_fingerprint}-{xxhash.xxh3_64_hexdigest(self._selection.tobytes())}"

    def __len__(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        return f"Dataset(num_rows={self.num_rows}, columns={self.column_names})"

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for start in range(0, len(self), _ITERATION_ROWS):
            yield from self._rows(np.arange(start, min(start + _ITERATION_ROWS, len(self)))).to_pylist()

    def __getitem__(self, key: int | slice | str | Sequence[int] | NDArray[Any]) -> Any:
        """Return one row as a dict, several rows as a dict of lists, or one column as a list.

        Raises:
            IndexError: A row is not there.
            KeyError: A column is not there; the message names the nearest one.
            TypeError: It is none of these; a mask is not either.
        """
        if isinstance(key, str):
            return self._column(key)
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            return self._rows(self._checked(np.array([key], np.int64))).to_pylist()[0]
        if isinstance(key, slice):
            return self._rows(np.arange(*key.indices(len(self)), dtype=np.int64)).to_pydict()
        return self._rows(self._checked(integers("row", key))).to_pydict()

    def _column(self, name: str) -> list[Any]:
        if name not in self._table.column_names:
            raise KeyError(f"there is no column '{name}'.{did_you_mean(name, self._table.column_names)}")
        column = self._table[name]
        values: list[Any] = (
            column if self._selection is None else column.take(pa.array(self._selection))
        ).to_pylist()
        return values

    def _checked(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        wrong = np.flatnonzero((rows < -len(self)) | (rows >= len(self)))
        if len(wrong):
            raise IndexError(f"row {rows[wrong[0]]}: the dataset has {len(self)} rows.")
        return np.where(rows < 0, rows + len(self), rows)

    def _rows(self, rows: NDArray[np.int64]) -> pa.Table:
        return self._table.take(pa.array(rows if self._selection is None else self._selection[rows]))

    def select(self, rows: Iterable[int] | NDArray[Any] | range) -> Dataset:
        """Return some rows, in the given order, without a copy.

        Raises:
            IndexError: A row is not there.
            TypeError: They are no integers; a mask is not either.
        """
        chosen = self._checked(integers("row", rows))
        selection = chosen if self._selection is None else self._selection[chosen]
        return Dataset(self.shards, self._data_fingerprint, self.store, selection)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table; without a selection the store's own bytes."""
        return self._table if self._selection is None else self._rows(np.arange(len(self)))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists."""
        columns: dict[str, list[Any]] = self.to_arrow().to_pydict()
        return columns

    def to_list(self) -> list[dict[str, Any]]:
        """Return the rows as dicts."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas table; needs pandas."""
        table: pd.DataFrame = self.to_arrow().to_pandas()
        return table

    def ids(self, sample_id: Iterable[int] | NDArray[Any]) -> list[str | None]:
        """Return what names the samples of a batch: the ``[id]`` of the spec, or ``file:row``.

        Args:
            sample_id: The array of that name in a batch: rows of the split, whatever is selected.
        """
        if self.store is None:
            raise StoreError("these rows were not encoded by a spec, so that they have no ids.")
        return names_of_rows(self.store, self.shards, integers("sample", sample_id))

    def sample_space(
        self,
        *,
        id_dtype: DTypeLike = "int64",
        masks: bool = False,
        pad_to: Literal["max", "batch"] = "max",
        layout: Literal["padded", "jagged"] = "padded",
    ) -> Rows:
        """Return the rows as a sample space: what a ``Loader`` or a ``Mixture`` takes.

        Args:
            id_dtype: Dtype of ids in a batch.
            masks: Give ``f_present`` bool [B] for every feature.
            pad_to: Width of padded columns: the declared length, or the longest in the batch.
            layout: Padding, or values and lengths.

        Raises:
            StoreError: The rows were not encoded by a spec.
        """
        if self.store is None:
            raise StoreError(
                "these rows were not encoded by a spec, so that they have no batches. "
                "Build a store with headrace.build, and take a split of it; of tokens, "
                "headrace.text.Windows makes batches: Windows(dataset, window).loader(...)."
            )
        rows = encoded_rows(
            self.store.columns,
            self.shards,
            self._data_fingerprint,
            id_dtype=id_dtype,
            masks=masks,
            pad_to=pad_to,
            layout=layout,
            store=(self.store.folder, self.store.split),
            records=self.store.records,
        )
        return rows if self._selection is None else rows.select(self._selection)

    def loader(
        self,
        *,
        id_dtype: DTypeLike = "int64",
        masks: bool = False,
        pad_to: Literal["max", "batch"] = "max",
        layout: Literal["padded", "jagged"] = "padded",
        **options: Any,
    ) -> Loader:
        """Return minibatches of the rows.

        Args:
            id_dtype: Dtype of ids in a batch.
            masks: Give ``f_present`` bool [B] for every feature.
            pad_to: Width of padded columns: the declared length, or the longest in the batch.
            layout: Padding, or values and lengths.
            **options: See ``headrace.loading.loader.Loader``: ``batch_size``, ``shuffle``, ``seed``,
                ``rank``, ``world_size``, ``last``, ``output``, ``threads``, ...

        Raises:
            StoreError: The rows were not encoded by a spec.
        """
        space = self.sample_space(id_dtype=id_dtype, masks=masks, pad_to=pad_to, layout=layout)
        return Loader(space, **options)

    def as_torch_dataset(self, *, seed: int = 0, epoch: int = 0, **options: Any) -> TorchDataset:
        """Return the rows as a map-style ``torch.utils.data.Dataset``, for a user's own ``collate_fn``.

        ``__getitems__`` gathers the samples of a whole batch at once.

        Args:
            seed: For what is drawn.
            epoch: For what is drawn.
            **options: As of ``sample_space``.

        Raises:
            StoreError: The rows were not encoded by a spec.
        """
        from headrace.loading.torch import TorchDataset

        return TorchDataset(self.sample_space(**options), seed=seed, epoch=epoch)


def _digest(batches: Sequence[pa.RecordBatch]) -> str:
    digest = xxhash.xxh3_128()
    for batch in batches:
        digest.update(batch.serialize())
    return digest.hexdigest()
