"""headrace: raw files in, model-ready minibatches out.

    import headrace as hr

    splits = hr.build("ads.toml", out="stores/ads")
    for batch in splits["train"].loader(batch_size=4096, shuffle="global", seed=7):
        ...

Names are imported when they are first used, so that ``import headrace`` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.building.build import build, why_stale
    from headrace.building.encode import Encoder, encode
    from headrace.dataset.dataset import Dataset
    from headrace.dataset.load import load_dataset
    from headrace.dataset.splits import DatasetDict, load_from_disk, verify
    from headrace.fit.vocabulary import Vocabulary
    from headrace.loading.loader import Loader
    from headrace.spec import Spec

__version__ = "0.1.0"

_HOME = {
    "Dataset": "headrace.dataset.dataset",
    "DatasetDict": "headrace.dataset.splits",
    "Encoder": "headrace.building",
    "Loader": "headrace.loading.loader",
    "Spec": "headrace.spec",
    "Vocabulary": "headrace.fit.vocabulary",
    "build": "headrace.building",
    "encode": "headrace.building",
    "load_dataset": "headrace.dataset.load",
    "load_from_disk": "headrace.dataset.splits",
    "verify": "headrace.dataset.splits",
    "why_stale": "headrace.building",
}

__all__ = [
    "Dataset",
    "DatasetDict",
    "Encoder",
    "Loader",
    "Spec",
    "Vocabulary",
    "__version__",
    "build",
    "encode",
    "load_dataset",
    "load_from_disk",
    "verify",
    "why_stale",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
