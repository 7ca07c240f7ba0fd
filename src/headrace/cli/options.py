"""Arguments and options that several commands take, and what they may be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

_SIZE = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?B?|B)?", re.IGNORECASE)


def _size(text: str | None) -> str | None:
    """Refuse a text that is no size before any work begins."""
    if text is not None and _SIZE.fullmatch(text.strip()) is None:
        raise typer.BadParameter(
            f"found {text!r}, expected a size such as '4GiB', '500MiB' or a number of bytes."
        )
    return text


Store = Annotated[Path, typer.Argument(help="The folder of a built store.", show_default=False)]
Out = Annotated[
    Path, typer.Option("--out", "-o", help="The folder of the store; new, empty, or a store already.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        callback=_size,
        help="Memory to stay under, as '4GiB'.",
        show_default="a quarter of the machine",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Threads that parse and encode.", show_default="the processors"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
