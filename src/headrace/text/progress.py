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

        A run that was stopped when its manifest was in place left an account too, of another store than
        the one that stands there now: it is done with.

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
        theirs, written = _read(path) if path.exists() else ({}, {})
        if base is not None and theirs.get("added_to", base.fingerprint) != base.fingerprint:
            path.unlink()
        if not path.exists():
            return cls(path, whole, {name: _before(name, base) for name in splits})
        if (told := difference(whole, theirs)) is not None:
            raise TextError(
                f"{folder} holds an unfinished run with other arguments: {told}. "
                "Give those again, or remove it."
            )
        if set(written) != set(splits):
            raise _damaged(path)
        _check_shards(folder, written)
        return cls(path, whole, written)

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


def _read(path: Path) -> tuple[Mapping[str, Any], dict[str, Written]]:
    """Return settings and finished shards of an interrupted run.

    Raises:
        TextError: The file is none of ours, or damaged.
    """
    try:
        content = json.loads(path.read_bytes())
        written = {name: _as_written(entry) for name, entry in content["written"].items()}
        return dict(content["settings"]), written
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _damaged(path) from None


def _damaged(path: Path) -> TextError:
    return TextError(
        f"{path}: damaged, and it says how far the interrupted run came. Remove the folder, and run again."
    )


def _as_written(entry: Mapping[str, Any]) -> Written:
    return Written(**{**entry, "shards": [FileEntry(**shard) for shard in entry["shards"]]})


def _check_shards(folder: Path, written: Mapping[str, Written]) -> None:
    """Check that the finished shards are there, and as long as they were.

    Raises:
        TextError: One is not.
    """
    for entry in (entry for part in written.values() for entry in part.shards):
        path = folder / entry.name
        if not path.is_file() or path.stat().st_size != entry.bytes:
            raise TextError(
                f"{path}: the interrupted run finished this shard, and it is missing or was changed. "
                "Restore it, or remove the folder and run again."
            )


def difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    """Return in words what two runs' settings differ in; None where they are the same.

    Args:
        ours: Settings of this run.
        theirs: Settings that were read from a file.
    """
    plain: Mapping[str, Any] = json.loads(json.dumps(ours))
    name = next((name for name in plain if theirs.get(name) != plain[name]), None)
    if name is None:
        return None
    there, here = theirs.get(name), plain[name]
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        told = difference(here, there)
        if told is not None:
            return f"{name}: {told}" + (
                _OF_FUNCTIONS if "digest" in told and here.get("kind") == "callable" else ""
            )
    return f"{name} is {there!r} there, and {here!r} here"


_OF_FUNCTIONS = (
    " (a function counts by its code and by what it reads; one that is the same all the same says so by a "
    "method __fingerprint__())"
)
