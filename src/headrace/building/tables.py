"""The joined tables travel with the store, so that new data can be encoded without their raw files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from headrace.dataset.layout import safe_name
from headrace.dataset.shard import FileEntry
from headrace.encoding.tables import JoinedTable
from headrace.errors import StoreError
from headrace.parse.part import Part, check_part, open_part, save_part
from headrace.spec import Spec

TABLES = "tables"


def save_tables(folder: Path, tables: Mapping[str, JoinedTable]) -> Iterator[FileEntry]:
    """Write the tables below a store's folder; yield their files."""
    for name, table in tables.items():
        place = folder / TABLES / safe_name(name)
        if not place.exists():
            save_part(table.part, place)
        for path in sorted(place.iterdir()):
            yield FileEntry.of(folder, path.relative_to(folder).as_posix(), rows=len(table.part))


def load_tables(folder: Path, spec: Spec) -> dict[str, JoinedTable]:
    """Memory-map the tables of a store.

    Raises:
        StoreError: One is missing or damaged.
    """
    return {
        name: JoinedTable(name, table.key, _open_table(folder / TABLES / safe_name(name)))
        for name, table in spec.tables.items()
    }


def _open_table(folder: Path) -> Part:
    try:
        part = open_part(folder)
        check_part(part)
    except (OSError, LookupError, TypeError, AttributeError, ValueError, pa.ArrowException) as error:
        raise StoreError(
            f"{folder}: the joined table cannot be read ({error}). Run `headrace verify` on the store; "
            "restore the files, or build again."
        ) from None
    return part
