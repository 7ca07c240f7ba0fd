"""A vocabulary on disk: ``NAME.arrow`` is the table for people, ``NAME.index.arrow`` the index for machines.

    NAME.arrow         value string (null for reserved ids), id uint64, count int64, kind dictionary
    NAME.index.arrow   one row of lists: integers int64, integer_codes int32, texts int64 (see kernels.lookup)

Both are memory-mapped when loaded. The rules lie in the table's schema
metadata. The counts of all rows add up to the values seen.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace import disk
from headrace.arrays import bitmap, numbers_of, texts_of
from headrace.errors import StoreError
from headrace.fit.index import Index
from headrace.fit.rules import Rules
from headrace.kernels.lookup import slots_are_sound
from headrace.scratch import IN_MEMORY, Scratch

_RULES_KEY = b"headrace.rules"
_AT_ONCE = 1 << 20
KINDS = ("pad", "unknown", "missing", "value", "bucket")
_TABLE = pa.schema(
    [
        pa.field("value", pa.large_string()),
        pa.field("id", pa.uint64(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("kind", pa.dictionary(pa.int8(), pa.string()), nullable=False),
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


def write(path: Path, tables: Tables, scratch: Scratch = IN_MEMORY) -> None:
    """Write a vocabulary's table and index; each file appears whole, the table last."""
    lists = {name: _one_list(getattr(tables.index, name)) for name in _INDEX_ARRAYS}
    _write_table(index_path(path), pa.table(lists))
    _write_table(path, _table(tables, scratch))


def _table(tables: Tables, scratch: Scratch) -> pa.Table:
    size = len(tables.counts)
    schema = _TABLE.with_metadata({_RULES_KEY: json.dumps(asdict(tables.rules), sort_keys=True).encode()})
    ids = scratch.empty(size, np.uint64)
    for start in range(0, size, _AT_ONCE):
        ids[start : start + _AT_ONCE] = np.arange(start, min(start + _AT_ONCE, size))
    columns = [_value_column(tables, scratch), pa.array(ids), pa.array(tables.counts), _kinds(tables)]
    return pa.Table.from_arrays(columns, schema=schema)


def _value_column(tables: Tables, scratch: Scratch) -> pa.Array:
    """Return the values with a null for each reserved id and bucket, over the same bytes."""
    size, first, values = len(tables.counts), tables.rules.first_id, tables.values
    texts = texts_of(values)
    offsets = scratch.zeros(size + 1, np.int64)
    start = int(texts.begins[0]) if len(texts) else 0
    np.subtract(texts.ends, start, out=offsets[first + 1 : first + 1 + len(values)])
    offsets[first + 1 + len(values) :] = offsets[first + len(values)]
    valid = np.zeros(size, bool)
    valid[first : first + len(values)] = True
    data = texts.data[start : start + int(offsets[-1])]
    buffers = [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), size, buffers)


def _kinds(tables: Tables) -> pa.Array:
    rules, values = tables.rules, len(tables.values)
    codes = np.full(len(tables.counts), KINDS.index("value"), np.int8)
    codes[rules.first_id + values :] = KINDS.index("bucket")
    for token_id in range(rules.first_id):
        codes[token_id] = KINDS.index(rules.kind_of(token_id, values))
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(KINDS))


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
    for slots in (integers, texts):
        if len(slots) == 0 or len(slots) & (len(slots) - 1):
            raise ValueError("its index does not fit its table")
    if len(integers) != len(codes) or not slots_are_sound(integers, codes, texts, size):
        raise ValueError("its index points outside its table")


def _open(path: Path) -> pa.Table:
    try:
        with pa.memory_map(os.fsencode(path)) as source:
            table = pa.ipc.open_file(source).read_all()
            table.validate(full=True)
            return table
    except FileNotFoundError:
        raise StoreError(f"{path}: the vocabulary is missing. Build the store again.") from None
    except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: a column's name is no UTF-8
        raise StoreError(
            f"{path}: not a readable Arrow file ({error}). Run `headrace verify` on the store."
        ) from None
