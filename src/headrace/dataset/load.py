"""``load_dataset``: local files as a dataset, with the names and results of Hugging Face ``datasets``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from headrace.dataset.dataset import Dataset
from headrace.dataset.manifest import Manifest
from headrace.dataset.shard import FileEntry
from headrace.dataset.split_names import parts_of_split
from headrace.dataset.splits import DatasetDict
from headrace.errors import SourceError, did_you_mean
from headrace.sources.files import SourceFile, find_files, patterns_of
from headrace.sources.texts import SampleBy, TextFormat, read_texts

Files: TypeAlias = "str | Path | Sequence[str | Path]"
_TEXT = "text"
_BUILDERS = (_TEXT,)
_TRAIN = "train"
_ELSEWHERE = {
    "csv": "Dataset.from_arrow(pyarrow.csv.read_csv(file)), or for an ad log headrace.build(spec)",
    "json": "Dataset.from_arrow(pyarrow.json.read_json(file)), or for an ad log headrace.build(spec)",
    "parquet": "Dataset.from_arrow(pyarrow.parquet.read_table(file)), or for an ad log headrace.build(spec)",
    "arrow": "Dataset.from_arrow(pyarrow.ipc.open_file(file).read_all()), or load_from_disk(folder)",
}


def load_dataset(
    path: str,
    name: str | None = None,
    data_dir: str | None = None,
    data_files: Files | Mapping[str, Files] | None = None,
    split: str | Sequence[str] | None = None,
    *,
    sample_by: SampleBy = "line",
    encoding: str = "utf-8",
    encoding_errors: str | None = None,
    keep_linebreaks: bool = False,
    **others: Any,
) -> Dataset | DatasetDict | list[Dataset]:
    r"""Read local text files into a dataset with one column, ``text``.

        load_dataset("text", data_files="books/*.txt.gz", split="train", sample_by="document")

    The rows are in memory; ``headrace.text.tokenize`` takes files of any size as they are. As in
    ``datasets`` 5.2 a byte order mark is text, unless ``encoding="utf-8-sig"``.

    Args:
        path: ``"text"``.
        name: Not supported.
        data_dir: Not supported.
        data_files: A path, a glob or an fsspec URL, or several, which are the split ``train``; or one or
            several for each split. Plain, gzip, zstd, bzip2 or xz. A glob's files are in byte order of
            their names, several paths and globs in the order given.
        split: Which split: ``"train"``, ``"train[:1000]"``, ``"train[10%:20%]"``, ``"train+test"``,
            ``"all"``, or several of these; None: all of them, as a ``DatasetDict``.
        sample_by: A row is a ``"line"``, a ``"paragraph"`` (up to a blank line) or a ``"document"`` (a file).
        encoding: A text encoding of Python.
        encoding_errors: What becomes of bytes that are not of the encoding: ``"replace"``, ``"ignore"``;
            None: an error.
        keep_linebreaks: Whether a line keeps its ``\n``.
        **others: Not supported; what ``datasets`` takes beside these is refused by name.

    Raises:
        SourceError: There is no such builder, split or file, a file is damaged or not of the encoding, or
            an argument is not supported.
    """
    _check_builder(path)
    _check_unsupported({"name": name, "data_dir": data_dir, **others})
    how = TextFormat(sample_by, encoding, encoding_errors, keep_linebreaks)
    files = _files_of_splits(data_files)
    _check_split(split)
    if split is None:
        return _in_memory({name: _read(found, how) for name, found in files.items()})
    if isinstance(split, str):
        return _one_split(split, files, how)
    return [_one_split(one, files, how) for one in split]


def _check_builder(path: str) -> None:
    if not isinstance(path, str):
        raise SourceError(f"load_dataset({path!r}): expected the name of a builder, {_TEXT!r}.")
    if path in _BUILDERS:
        return
    there = ", ".join(repr(name) for name in _BUILDERS)
    if path in _ELSEWHERE:
        raise SourceError(f"load_dataset({path!r}): there is {there}. Use {_ELSEWHERE[path]}.")
    raise SourceError(
        f"load_dataset({path!r}): there is no such builder, only {there}, and nothing is fetched from a hub. "
        f"Download the files, and name them with data_files=.{did_you_mean(path, _BUILDERS)}"
    )


_ADVICE = {
    "data_dir": "Name the files with data_files='folder/**/*.txt'.",
    "streaming": "headrace.text.tokenize reads files of any size as they are.",
    "features": "The column is text; cast afterwards.",
}


def _check_unsupported(arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that ask for something; those that are None or False ask for nothing."""
    for argument, value in arguments.items():
        if value is not None and value is not False:
            known = ("sample_by", "encoding", "encoding_errors", "keep_linebreaks", "data_files", "split")
            advice = _ADVICE.get(argument, "Leave it out.")
            raise SourceError(
                f"load_dataset({argument}={value!r}): not supported. {advice}{did_you_mean(argument, known)}"
            )


def _check_split(split: object) -> None:
    several = split if isinstance(split, Sequence) else [split]
    if split is not None and not all(isinstance(one, str) for one in several):
        raise SourceError(
            f"split={split!r}: expected a name such as 'train', several of them in a list, or None."
        )


def _files_of_splits(data_files: Files | Mapping[str, Files] | None) -> dict[str, list[SourceFile]]:
    if data_files is None or (isinstance(data_files, Sized) and not len(data_files)):
        raise SourceError("load_dataset('text'): name the files with data_files='folder/*.txt'.")
    by_split = data_files if isinstance(data_files, Mapping) else {_TRAIN: data_files}
    return {str(name): _found(patterns) for name, patterns in by_split.items()}


def _found(patterns: Files) -> list[SourceFile]:
    """Return the files of several paths and globs in the order given, each once."""
    several = patterns_of(patterns, "data_files")
    try:
        files = [file for pattern in several for file in find_files(str(pattern))]
    except SourceError as error:
        raise SourceError(str(error).replace("source.files", "data_files")) from None
    return list({file.path: file for file in files}.values())


def _read(files: Sequence[SourceFile], how: TextFormat) -> Dataset:
    chunks = [chunk for file in files for chunk in _chunks(file, how)]
    return Dataset.from_arrow(pa.table({_TEXT: pa.chunked_array(chunks, pa.string())}))


def _chunks(file: SourceFile, how: TextFormat) -> Iterator[pa.Array]:
    try:
        for texts in read_texts(file, how):
            yield pa.array(texts, pa.string())
    except pa.ArrowCapacityError:
        raise SourceError(
            f"{file.name}: a {how.sample_by} of 2 GiB or more, and a row holds less. Take shorter rows with "
            "sample_by='line', or give the file to headrace.text.tokenize."
        ) from None
    except UnicodeEncodeError as error:
        raise SourceError(
            f"{file.name}: decoded to a lone surrogate (U+{ord(error.object[error.start]):04X}), which no "
            "text column can hold. Give its true encoding=, or encoding_errors='replace'."
        ) from None


def _one_split(split: str, files: Mapping[str, Sequence[SourceFile]], how: TextFormat) -> Dataset:
    """Read what a split's text names, and nothing else."""
    tables = []
    for part in parts_of_split(split, list(files)):
        whole = _read(files[part.name], how)
        tables.append(whole.select(part.rows(len(whole))).to_arrow() if part.is_cut else whole.to_arrow())
    return Dataset.from_arrow(pa.concat_tables(tables))


def _in_memory(datasets: Mapping[str, Dataset]) -> DatasetDict:
    """Return datasets that are in no store as a ``DatasetDict``."""
    fingerprint = "-".join(dataset.fingerprint for dataset in datasets.values())
    entries = {
        name: (FileEntry(name="", bytes=0, xxh3="", rows=len(dataset)),) for name, dataset in datasets.items()
    }
    splits = DatasetDict(Path(_TEXT), Manifest("table", fingerprint, entries))
    splits._opened.update(datasets)
    return splits
