"""Batches out of anything that can gather: no store, no spec, no Arrow."""

from headrace.loading.columns import Bitmap, Fixed, Label, Ragged, Scalar
from headrace.loading.loader import Loader
from headrace.loading.mixture import Mixture
from headrace.loading.rows import Rows
from headrace.loading.space import Batch, EpochSpace, SampleSpace

__all__ = [
    "Batch",
    "Bitmap",
    "EpochSpace",
    "Fixed",
    "Label",
    "Loader",
    "Mixture",
    "Ragged",
    "Rows",
    "SampleSpace",
    "Scalar",
]
