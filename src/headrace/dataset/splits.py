"""``DatasetDict``: the splits of a store, and what was declared and fitted for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace import disk
from headrace.dataset.conforming import open_encoded
from headrace.dataset.dataset import Dataset
from headrace.dataset.declared import stored_columns
from headrace.dataset.encoded import EncodedStore
from headrace.dataset.manifest import Manifest, differing_files, read_manifest
from headrace.dataset.shard import open_shard
from headrace.dataset.view import open_split_records
from headrace.errors import StoreError, did_you_mean

if TYPE_CHECKING:
    from headrace.encoding.info import FeatureInfo
    from headrace.fit.fitted import Fitted
    from headrace.fit.vocabulary import Vocabulary
    from headrace.spec import Spec


class DatasetDict(Mapping[str, Dataset]):
    """The splits of a store by name, opened when they are asked for.

    Args:
        folder: The store.
        manifest: What ``read_manifest`` gave.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._opened: dict[str, Dataset] = {}

    def __getitem__(self, split: str) -> Dataset:
        if split not in self.manifest.splits:
            raise KeyError(
                f"{self.folder} has no split '{split}'.{did_you_mean(split, self.manifest.splits)}"
            )
        if split not in self._opened:
            self._opened[split] = self._open(split)
        return self._opened[split]

    def __iter__(self) -> Iterator[str]:
        return iter(self.manifest.splits)

    def __len__(self) -> int:
        return len(self.manifest.splits)

    def __repr__(self) -> str:
        rows = ", ".join(f"{split}: {self.manifest.rows(split):,}" for split in self)
        return f"DatasetDict({self.folder}, {rows})"

    def _open(self, split: str) -> Dataset:
        entries = self.manifest.splits[split]
        fingerprint = f"{self.manifest.fingerprint}-{split}"
        if self.manifest.kind != "rows":
            shards = [open_shard(self.folder / entry.name) for entry in entries]
            return Dataset(shards, fingerprint, place=(self.folder, split))
        columns = stored_columns(self.manifest, self.folder)
        shards = open_encoded(self.folder, entries, columns)
        records = open_split_records(self.folder, self.manifest, split, columns, shards)
        store = EncodedStore(self.folder, split, columns, self._source_names(), self, records)
        return Dataset(shards, fingerprint, store)

    def _source_names(self) -> tuple[str, ...]:
        try:
            return tuple(str(entry["name"]) for entry in self.manifest.details["sources"]["rows"])
        except (KeyError, TypeError) as error:
            raise StoreError(
                f"{self.folder}: the manifest names no source files ({error!r}). Build the store again."
            ) from None

    @property
    def num_rows(self) -> dict[str, int]:
        """Rows of each split."""
        return {split: self.manifest.rows(split) for split in self}

    @cached_property
    def spec(self) -> Spec:
        """The declaration that the store was built from."""
        if self.manifest.kind != "rows":
            raise StoreError(f"{self.folder} was not built from a spec.")
        from headrace.spec import Spec

        return Spec.from_dict(self.manifest.details["spec"])

    @cached_property
    def fitted(self) -> Fitted:
        """What was learned from the train split."""
        from headrace.dataset.fitted import load_fitted

        return load_fitted(self.folder, self.spec, self.manifest)

    @property
    def vocabularies(self) -> Mapping[str, Vocabulary]:
        """The vocabularies by name."""
        return self.fitted.vocabularies

    @cached_property
    def features(self) -> dict[str, FeatureInfo]:
        """What a model needs to know of each feature."""
        from headrace.encoding.info import feature_info

        return {name: feature_info(self.spec, name, self.fitted) for name in self.spec.features}

    def embedding_sizes(self) -> dict[str, int]:
        """Return the rows of each embedding table, by vocabulary, or by feature where it has none."""
        from headrace.encoding.info import embedding_sizes

        return embedding_sizes(self.features)

    @property
    def accounting(self) -> dict[str, Any]:
        """Where every row that was read went: read, written by split, quarantined, outside, dropped."""
        accounting: dict[str, Any] = self.manifest.details["rows"]
        return accounting


def load_from_disk(folder: str | Path) -> DatasetDict:
    """Open a store; nothing is read but its manifest.

    Raises:
        StoreError: The folder is no store, a half-built one, or of another format version.
    """
    path = disk.as_path("folder", folder, StoreError)
    return DatasetDict(path, read_manifest(path))


def verify(folder: str | Path) -> list[str]:
    """Re-read every file of a store; return one line for each that is not as the manifest says.

    Raises:
        StoreError: The folder is no store.
    """
    path = disk.as_path("folder", folder, StoreError)
    return differing_files(path, read_manifest(path))
