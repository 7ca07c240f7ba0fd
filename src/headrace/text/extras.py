"""Libraries that only some of the text functions need."""

from __future__ import annotations

import importlib
from typing import Any

from headrace.errors import TextError


def need(module: str) -> Any:
    """Import a library of the extra ``text``.

    Raises:
        TextError: It is not installed; the message has the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise TextError(
            f"{module.partition('.')[0]} is not installed. Install it with: pip install 'headrace[text]'"
        ) from None
