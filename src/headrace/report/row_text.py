"""A decoded row as lines of text."""

from __future__ import annotations

from typing import Any

from headrace.report.cells import Cell
from headrace.report.rows import ShownLabel, ShownRow
from headrace.report.text import aligned, indented, number_text, quoted

_OF_TEXTS = ("categorical", "sequence", "set", "weighted_set")
_ELEMENTS = 8
"""Elements of a list that are shown."""


def row_lines(row: ShownRow) -> list[str]:
    """Return what ``headrace show`` prints for a row."""
    place = f"{row.split} row {row.row}"
    title = "   ".join([place, *([f"id {row.id}"] if row.id is not None else []), *filter(None, [row.time])])
    cells = [("feature", "kind", "raw", "encoded")]
    cells += [(name, cell.kind, raw_text(cell), encoded_text(cell)) for name, cell in row.features.items()]
    cells += [(name, "label", label_text(label), value_text(label)) for name, label in row.labels.items()]
    if row.weight is not None:
        cells.append(("weight", "weight", number_text(row.weight), number_text(row.weight)))
    return [title, *indented(aligned(cells))]


def raw_text(cell: Cell) -> str:
    """Return the raw value: texts in quotes, numbers plain, names of ids in capitals."""
    if not isinstance(cell.encoded, list):
        return _one(cell.kind, cell.raw, cell.names)
    if not cell.present:
        return "MISSING"
    names = cell.names or [None] * len(cell.raw)
    texts = [_one(cell.kind, raw, name) for raw, name in zip(cell.raw, names, strict=True)]
    if cell.weights is not None:
        texts = [f"{text}:{number_text(one)}" for text, one in zip(texts, cell.weights, strict=True)]
    return _listed(texts)


def _one(kind: str, raw: Any, name: str | None) -> str:
    if name is not None:
        return name
    if kind in _OF_TEXTS:
        return quoted(raw)
    return number_text(raw) if isinstance(raw, float) else str(raw)


def encoded_text(cell: Cell) -> str:
    """Return what is stored."""
    if isinstance(cell.encoded, list):
        return _listed([number_text(one) if isinstance(one, float) else str(one) for one in cell.encoded])
    return number_text(cell.encoded) if isinstance(cell.encoded, float) else str(cell.encoded)


def _listed(texts: list[str]) -> str:
    if not texts:
        return "[]"
    more = f", … {len(texts)} in all" if len(texts) > _ELEMENTS else ""
    return f"[{', '.join(texts[:_ELEMENTS])}{more}]"


def label_text(label: ShownLabel) -> str:
    """Return what a label says: its value or class, or that it is not known."""
    if label.value is None:
        return "not known (masked)"
    return quoted(label.name) if label.name is not None else number_text(label.value)


def value_text(label: ShownLabel) -> str:
    """Return the number that a batch holds, and the label's weight."""
    value = number_text(label.value or 0)
    return value if label.weight is None else f"{value}   weight {number_text(label.weight)}"
