"""headrace: one call, with quarantine, row accounting, checksums and bounded memory."""

from __future__ import annotations

from pathlib import Path

import headrace as hr


def build(source: Path, out: Path) -> dict[str, int]:
    """Build the store of the spec beside the log."""
    splits = hr.build(source.with_name(f"{source.suffix[1:]}.toml"), out=out)
    return splits.embedding_sizes()
