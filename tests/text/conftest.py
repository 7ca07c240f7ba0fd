"""What the tests of windows share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headrace.text.windows import Windows


@pytest.fixture(scope="session")
def everything() -> Callable[..., dict[str, Any]]:
    """Gather all windows of an epoch as one batch."""

    def gather(windows: Windows, seed: int = 0, epoch: int = 0) -> dict[str, Any]:
        space = windows.at(seed, epoch)
        return space.gather(np.arange(len(space)), np.arange(len(space), dtype=np.uint64))

    return gather
