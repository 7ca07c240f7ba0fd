"""What is known of rows that were encoded by a spec: where they lie, what was declared and fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.dataset.declared import StoredColumns
from headrace.encoding.names import FILE, ID, ROW
from headrace.errors import StoreError

if TYPE_CHECKING:
    from headrace.fit.fitted import Fitted
    from headrace.spec import Spec


class Opened(Protocol):
    """A store that opens what was declared and fitted for it when it is asked for."""

    @property
    def spec(self) -> Spec:
        """The declaration that the store was built from."""

    @property
    def fitted(self) -> Fitted:
        """What was learned from train."""


@dataclass(frozen=True)
class EncodedStore:
    """The store that a dataset's rows come from."""

    folder: Path
    split: str
    columns: StoredColumns
    file_names: tuple[str, ...]
    """Names of the source files, by number."""
    opened: Opened
    records: Sequence[NDArray[Any]] | None = None
    """Those beside the shards: structured [rows + 1] of each; None where there are none."""

    @property
    def spec(self) -> Spec:
        """The declaration; read when it is asked for, which batches do not need."""
        return self.opened.spec

    @property
    def fitted(self) -> Fitted:
        """What was learned from train; opened when it is asked for."""
        return self.opened.fitted


def names_of_rows(
    store: EncodedStore, shards: Sequence[pa.RecordBatch], rows: NDArray[np.int64]
) -> list[str | None]:
    """Return what names each row for people: its ``[id]``, or ``file:row`` where none is declared.

    Raises:
        IndexError: A row is not there.
    """
    table = pa.Table.from_batches(shards)
    wrong = np.flatnonzero((rows < 0) | (rows >= table.num_rows))
    if len(wrong):
        raise IndexError(f"sample {rows[wrong[0]]}: {store.split} has {table.num_rows} rows.")
    if ID in table.column_names:
        names: list[str | None] = table[ID].take(pa.array(rows)).to_pylist()
        return names
    files, places = (table[name].take(pa.array(rows)).to_pylist() for name in (FILE, ROW))
    if max(files, default=0) >= len(store.file_names):
        raise StoreError(
            f"{store.folder}: a row of {store.split} names a file that the manifest does not. "
            "Run `headrace verify` on the store."
        )
    return [f"{store.file_names[file]}:{row}" for file, row in zip(files, places, strict=True)]
