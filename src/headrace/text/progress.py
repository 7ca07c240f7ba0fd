"""How far an interrupted ``tokenize`` came: what its finished shards hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headrace import disk
from headrace.dataset.manifest import Manifest
from headrace.dataset.shard import FileEntry
from headrace.errors import TextError
from headrace.text.encoding import Assigned
from headrace.text.writer import Written, chained

_NAME = "tokenize.json"


@dataclass(frozen=True)
class Progress:
    """A file beside the shards that names the finished ones and the documents in them."""

    path: Path
    settings: Mapping[str, Any]
    """What decides the shards' bytes beside the documents."""
    written: dict[str, Written]
    """By split; grows while shards are written."""

    @classmethod
    def of(
        cls, folder: Path, settings: Mapping[str, Any], splits: Sequence[str], base: Manifest | None
    ) -> Progress:
        """Return what an interrupted run left, or a new beginning.

        Args:
            folder: The store.
            settings: Of the run that is to go on.
            splits: Names of all splits.
            base: The store that documents are added to.

        Raises:
            TextError: The interrupted run had other settings.
        """
        path = folder / _NAME
        whole = {**settings, "added_to": None if base is None else base.fingerprint}
        if not path.exists():
            return cls(path, whole, {name: _before(name, base) for name in splits})
        content = json.loads(path.read_bytes())
        if content["settings"] != json.loads(json.dumps(whole)):
            raise TextError(
                f"{folder} holds an unfinished run with other arguments. Give those again, or remove it."
            )
        return cls(path, whole, {name: _as_written(entry) for name, entry in content["written"].items()})

    def save(self) -> None:
        """Write what finished shards hold."""
        written = {name: asdict(part) for name, part in self.written.items()}
        disk.write_json(self.path, {"settings": dict(self.settings), "written": written})

    def left(self, documents: Iterable[Assigned]) -> Iterator[Assigned]:
        """Yield the documents that no finished shard holds.

        Raises:
            TextError: Those before them are not the ones that the interrupted run read.
        """
        skip = {name: (part.consumed, part.chain) for name, part in self.written.items()}
        if not any(consumed for consumed, _ in skip.values()):
            yield from documents
            return
        counts, chains = dict.fromkeys(skip, 0), dict.fromkeys(skip, 0)
        for one in documents:
            if counts[one.split] >= skip[one.split][0]:
                yield one
                continue
            counts[one.split] += 1
            chains[one.split] = chained(chains[one.split], [one.content])
            if counts[one.split] == skip[one.split][0] and chains[one.split] != skip[one.split][1]:
                raise self._differ()
        if any(counts[name] < skip[name][0] for name in skip):
            raise self._differ()

    def _differ(self) -> TextError:
        return TextError(
            f"{self.path.parent}: the documents differ from those of the run that was interrupted. "
            "Give the same ones in the same order, or remove the folder."
        )


def _before(split: str, base: Manifest | None) -> Written:
    """Return what a split holds before a run: nothing, or the shards of the store that it adds to."""
    if base is None:
        return Written()
    return Written(shards=list(base.splits[split]), **base.details["splits"][split])


def _as_written(entry: Mapping[str, Any]) -> Written:
    return Written(**{**entry, "shards": [FileEntry(**shard) for shard in entry["shards"]]})
