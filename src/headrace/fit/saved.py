"""A vocabulary on disk: ``NAME.arrow`` is the table for people, ``NAME.index.arrow`` the index for machines.

    NAME.arrow         value string (null for reserved ids), id uint64, count int64, kind string
    NAME.index.arrow   one row of lists: integers int64, integer_codes int32, texts int64 (see kernels.lookup)

Both are memory-mapped when loaded. The rules lie in the table's schema
metadata. The counts of all rows add up to the values seen.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace import disk
from headrace.arrays import numbers_of
from headrace.errors import StoreError
from headrace.fit.index import Index
from headrace.fit.rules import Rules
from headrace.kernels.lookup import FREE

_RULES_KEY = b"headrace.rules"
_TABLE = pa.schema(
    [
        pa.field("value", pa.large_string()),
        pa.field("id", pa.uint64(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
    ]
)


def index_path(path: Path) -> Path:
    """Return where the index of the vocabulary at ``path`` lies."""
    return path.with_name(f"{path.stem}.index.arrow")


@dataclass(frozen=True)
class Tables:
    """What a vocabulary is made of."""

    values: pa.Array
    """large_string [values], by falling count."""
    counts: NDArray[np.int64]
    """int64 [ids], by id."""
    index: Index
    rules: Rules


def write(path: Path, tables: Tables) -> None:
    """Write a vocabulary's table and index; each file appears whole, the table last."""
    lists = {name: _one_list(getattr(tables.index, name)) for name in _INDEX_ARRAYS}
    _write_table(index_path(path), pa.table(lists))
    _write_table(path, _table(tables))


def _table(tables: Tables) -> pa.Table:
    rules, values, size = tables.rules, tables.values, len(tables.counts)
    first, after = rules.first_id, len(tables.counts) - rules.first_id - len(values)
    nothing = pa.array([None], pa.large_string())
    column = pa.concat_arrays([nothing] * first + [values.cast(pa.large_string())] + [nothing] * after)
    kinds = [rules.kind_of(token_id, len(values)) for token_id in range(first)]
    kind = pa.concat_arrays(
        [pa.array(kinds, pa.string()), pa.repeat("value", len(values)), pa.repeat("bucket", after)]
    )
    schema = _TABLE.with_metadata({_RULES_KEY: json.dumps(asdict(rules), sort_keys=True).encode()})
    ids = pa.array(np.arange(size, dtype=np.uint64))
    return pa.Table.from_arrays([column, ids, pa.array(tables.counts), kind], schema=schema)


def _one_list(array: NDArray[Any]) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), pa.array(array))


def _write_table(path: Path, table: pa.Table) -> None:
    with disk.writing(path) as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table.combine_chunks())


_INDEX_ARRAYS = ("integers", "integer_codes", "texts")


def read(path: Path) -> Tables:
    """Memory-map a saved vocabulary and check that table and index fit together.

    Raises:
        StoreError: A file is missing or damaged, or the two do not belong together.
    """
    table, index = _open(path), _open(index_path(path))
    try:
        rules = Rules(**json.loads(table.schema.metadata[_RULES_KEY]))
        rules.check()
        values = (
            table["value"].chunk(0).slice(rules.first_id, len(table) - rules.first_id - rules.unknown_buckets)
        )
        counts = numbers_of(table["count"].chunk(0))
        integers, codes, texts = (numbers_of(index[name].chunk(0).values) for name in _INDEX_ARRAYS)
        _check_index(integers, codes, texts, len(values))
        found = Index.over(values, integers, codes, texts)
    except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise StoreError(f"{path}: not a saved vocabulary ({error}). Build the store again.") from None
    return Tables(values, counts, found, rules)


def _check_index(
    integers: NDArray[np.int64], codes: NDArray[np.int32], texts: NDArray[np.int64], size: int
) -> None:
    """Refuse an index that would lead a look-up outside its arrays or into an endless probe."""
    taken, written = integers != FREE, texts != 0
    for slots, used in ((integers, taken), (texts, written)):
        if len(slots) == 0 or len(slots) & (len(slots) - 1) or 2 * np.count_nonzero(used) > len(slots):
            raise ValueError("its index does not fit its table")
    places = np.concatenate([codes[taken].astype(np.int64), (texts[written] & 0xFFFFFFFF) - 1])
    if len(integers) != len(codes) or len(places) != size or not ((places >= 0) & (places < size)).all():
        raise ValueError("its index points outside its table")


def _open(path: Path) -> pa.Table:
    try:
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
            table.validate(full=True)
            return table
    except FileNotFoundError:
        raise StoreError(f"{path}: the vocabulary is missing. Build the store again.") from None
    except (pa.ArrowException, OSError) as error:
        raise StoreError(
            f"{path}: not a readable Arrow file ({error}). Run `headrace verify` on the store."
        ) from None
