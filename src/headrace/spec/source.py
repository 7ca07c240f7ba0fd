"""Where the rows come from: raw files, their format, and the tables joined to them."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from headrace.errors import did_you_mean
from headrace.spec.base import AnyTexts, Declared, OneOrMoreTexts, Text, Texts
from headrace.spec.problems import Problem, quoted
from headrace.spec.times import DIRECTIVES, Unit, unknown_directives
from headrace.spec.timezones import Timezone

Format: TypeAlias = Literal["csv", "tsv", "jsonl", "parquet", "arrow", "text"]
Fraction: TypeAlias = Annotated[float, Field(ge=0, le=1)]

_FORMAT_BY_ENDING: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".txt": "text",
}
_COMPRESSED = (".gz", ".gzip", ".zst", ".zstd")
_DELIMITED_KEYS = ("delimiter", "quote", "header", "columns", "missing_values")


def format_of(name: str) -> Format | None:
    """Return the format that a file name's ending tells, or None: ``raw/*.jsonl.gz`` is jsonl."""
    name = name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return next((form for ending, form in _FORMAT_BY_ENDING.items() if name.endswith(ending)), None)


class SourceOptions(Declared):
    """Raw files and how to read them; ``[source]`` and every ``[tables.*]`` take these keys."""

    files: OneOrMoreTexts
    """Globs and fsspec URLs; plain, gzip or zstd. Relative ones start at the spec's folder."""

    format: Format
    """Where it is not written, the ending of the file names tells it."""

    delimiter: Text | None = None
    """csv only: what stands between two fields; None is a comma. tsv always has tabs."""

    quote: str = '"'
    """csv and tsv: one character, or "" where nothing is ever quoted."""

    header: bool = True
    """csv and tsv: whether the first line of each file names the columns."""

    columns: Texts = ()
    """csv and tsv: the columns' names; with ``header = true`` they stand for those of the header."""

    encoding: Text = "utf-8"
    """csv, tsv, jsonl and text: how characters are written as bytes."""

    missing_values: AnyTexts = ("",)
    """csv and tsv: unquoted fields that mean missing, such as ``\\N``."""

    on_bad_row: Literal["quarantine", "fail"] = "quarantine"
    """What becomes of a row that cannot be read as declared."""

    max_bad_fraction: Fraction = 0.001
    """More bad rows than this share of all rows, and the build stops."""

    @property
    def field_delimiter(self) -> str:
        """What stands between two fields of a csv or tsv file."""
        return "\t" if self.format == "tsv" else self.delimiter or ","

    @classmethod
    def completed(cls, data: dict[Any, Any]) -> dict[Any, Any]:
        """Take paths as their texts, and fill in the format that the files' endings tell."""
        if "files" in data:
            data = {**data, "files": _as_texts(data["files"])}
        if "format" in data:
            return data
        files = data.get("files")
        names = [files] if isinstance(files, str) else files if isinstance(files, (list, tuple)) else []
        formats = {format_of(name) for name in names if isinstance(name, str)}
        return {**data, "format": formats.pop()} if len(formats) == 1 and None not in formats else data

    def mistakes(self) -> Iterable[Problem]:
        """Find keys of another format, and texts that cannot be what they should be."""
        yield from self._keys_of_other_formats()
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '\r\n"'):
            yield Problem(("delimiter",), f"expected one character, found {quoted(self.delimiter)}.")
        if len(self.quote) > 1 or (self.quote and self.quote == self.field_delimiter):
            yield Problem(("quote",), f'expected one other character, or "", found {quoted(self.quote)}.')
        if self.format in ("csv", "tsv") and not self.header and not self.columns:
            yield Problem((), "with header = false the key 'columns' must name the columns.", at=("header",))
        yield from _repeated(self.columns)
        yield from _unknown_encoding(self.encoding)

    def _keys_of_other_formats(self) -> Iterable[Problem]:
        wrong = (
            _DELIMITED_KEYS if self.format not in ("csv", "tsv") else ("delimiter",) * (self.format == "tsv")
        )
        allowed = "csv" if self.format == "tsv" else "csv and tsv"
        wrong_encoding = ("encoding",) * (self.format in ("parquet", "arrow"))
        for key in (*wrong, *wrong_encoding):
            if getattr(self, key) != SourceOptions.model_fields[key].default:
                formats = "text formats" if key == "encoding" else allowed
                yield Problem(
                    (key,), f'is for {formats}, and the format here is "{self.format}". Leave it out.'
                )


class Source(SourceOptions):
    """The log whose rows become samples."""


class Table(SourceOptions):
    """An item or user table: joined by key while encoding, or gathered when loading."""

    key: Text
    """The column that joins: it is in the table, once for each value, and in the rows."""

    gather: Literal["encode", "load"] = "encode"
    """``encode``: its columns become columns of the rows. ``load``: kept once, and gathered by id."""

    description: str = ""
    """What it is, for people."""

    def mistakes(self) -> Iterable[Problem]:
        """Find also a key that is not among the columns."""
        yield from super().mistakes()
        if self.columns and self.key not in self.columns:
            hint = did_you_mean(self.key, self.columns)
            yield Problem(("key",), f"the table has no column {quoted(self.key)}.{hint}")


class Time(Declared):
    """The row's own time."""

    column: Text
    """The raw column: numbers, or text, or timestamps in Parquet and Arrow."""

    unit: Unit = "s"
    """What numbers count since 1970-01-01T00:00:00Z."""

    format: Text | None = None
    """How text is written, as ``strptime`` has it (``%Y-%m-%d %H:%M:%S``); None: ISO 8601 or numbers."""

    timezone: Timezone | None = None
    """The zone of text without an offset: an IANA name or an offset; None is UTC."""

    def mistakes(self) -> Iterable[Problem]:
        """Find keys that cannot stand together."""
        return time_format_mistakes(self)


class Weight(Declared):
    """A weight for each row: the array ``weight``."""

    column: Text
    """A raw column of numbers that are not negative; a missing one is a bad row."""


class Id(Declared):
    """What names a row for people: ``ds.ids(sample_id)``."""

    column: Text
    """A raw column. Without ``[id]``: file number and row number."""


def time_format_mistakes(declared: Any) -> Iterable[Problem]:
    """Find what is wrong between ``unit`` and ``format`` of a declaration, and inside ``format``."""
    if declared.format is None:
        return
    if declared.written("unit") and declared.unit is not None:
        yield Problem(("unit",), "is for numbers and 'format' for text. Leave one of them out.")
    unknown = unknown_directives(declared.format)
    if unknown or "%" not in declared.format:
        found = unknown[0] if unknown else quoted(declared.format)
        yield Problem(("format",), f"{found} is no directive of a time; there are {DIRECTIVES}.")


def _as_texts(files: object) -> object:
    """Return a path, or the paths of a list, as texts; anything else as it is."""
    return [_as_text(one) for one in files] if isinstance(files, list | tuple) else _as_text(files)


def _as_text(file: object) -> object:
    return str(file) if isinstance(file, PurePath) else file


def _repeated(columns: tuple[str, ...]) -> Iterable[Problem]:
    for place, column in enumerate(columns):
        if column in columns[:place]:
            yield Problem(("columns", place), f"{quoted(column)} is written twice.")


def _unknown_encoding(encoding: str) -> Iterable[Problem]:
    try:
        codecs.lookup(encoding)
    except (LookupError, ValueError):
        hint = did_you_mean(encoding, ("utf-8", "utf-16", "latin-1", "cp1252", "gb18030", "shift_jis"))
        yield Problem(("encoding",), f"Python knows no encoding {quoted(encoding)}.{hint}")
