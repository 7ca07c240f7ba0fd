"""Arguments and options that several commands take, and what they may be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.errors import BuildError


def _size(text: str | None) -> str | None:
    """Refuse a text that is no size before any work begins."""
    if text is not None:
        from headrace.building.settings import parse_size

        try:
            parse_size(text)
        except BuildError as error:
            raise typer.BadParameter(str(error)) from None
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
