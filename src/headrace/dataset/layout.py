"""Where the files of a store lie, below its folder."""

from __future__ import annotations

import urllib.parse

import xxhash

STATISTICS = "statistics.arrow"
QUARANTINE = "quarantine"
VOCABULARIES = "vocabularies"
WORK = ".build"
"""What a build needs while it runs, and parsed data that the next one can use; no part of the store."""

_LONGEST = 120


def safe_name(name: str) -> str:
    """Return a file name for any text a user declared: percent-encoded, with a hash where it is long.

    Names with capital letters have the hash too: some file systems take ``Item`` and ``item`` for one.
    """
    quoted = urllib.parse.quote(name, safe=" ").replace(".", "%2E")
    if len(quoted) <= _LONGEST and name == name.lower():
        return quoted
    return f"{quoted[:_LONGEST]}-{xxhash.xxh3_64_hexdigest(name.encode())}"


def vocabulary_file(name: str) -> str:
    """Return where a vocabulary lies."""
    return f"{VOCABULARIES}/{safe_name(name)}.arrow"
