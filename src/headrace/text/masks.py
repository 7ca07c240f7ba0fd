"""From segment ids to what attention functions take."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headrace.errors import TextError


class SequenceLengths(NamedTuple):
    """Where sequences lie in a batch without its padding, as variable-length attention takes it."""

    cu_seqlens: Any
    """int32 [number of segments + 1], tokens before each segment."""
    max_seqlen: int
    """Tokens of the longest segment; 0 where there is none."""
    indices: Any
    """int64 [tokens], the place of each token in the flattened [B * W] batch."""


def document_mask(segment_ids: Any, causal: bool = True) -> Any:
    """Return which query may attend to which key, so that no document sees another.

    Args:
        segment_ids: Integers [B, W], a NumPy array or a torch tensor; 0 is padding.
        causal: Whether a query sees only keys that are not after it.

    Returns:
        bool [B, 1, W, W], of the same kind and on the same device: True where query (third
        axis) may attend to key (last axis). A padded query sees only itself, so that no row of
        a softmax is empty. The form that ``torch``'s ``scaled_dot_product_attention`` takes.

    Raises:
        TextError: Not of two dimensions, or no integers.
    """
    _check(segment_ids)
    segment_ids = segment_ids.long() if hasattr(segment_ids, "long") else segment_ids
    places = _places(segment_ids)
    query, key = segment_ids[:, :, None], segment_ids[:, None, :]
    allowed = (query == key) & (query > 0)
    if causal:
        allowed = allowed & (places[:, None] >= places[None, :])
    return (allowed | ((query == 0) & (places[:, None] == places[None, :])))[:, None]


def cu_seqlens(segment_ids: Any) -> SequenceLengths:
    """Return cumulative lengths of the segments of a batch, as ``flash_attn_varlen_func`` takes them.

    A row's border always ends a segment; padding is left out.

        segment_ids    1 1 2 0      cu_seqlens    0 2 3 6 7
                       1 1 1 2      indices       0 1 2 4 5 6 7     max_seqlen 3

    Args:
        segment_ids: Integers [B, W], a NumPy array or a torch tensor; 0 is padding.

    Returns:
        Arrays of the same kind and on the same device.

    Raises:
        TextError: Not of two dimensions, or no integers.
    """
    _check(segment_ids)
    segments = np.asarray(segment_ids.detach().cpu() if hasattr(segment_ids, "cpu") else segment_ids)
    begins = np.ones(segments.shape, np.bool_)
    begins[:, 1:] = segments[:, 1:] != segments[:, :-1]
    indices = np.flatnonzero(segments)
    first = np.flatnonzero(begins.reshape(-1)[indices])
    cumulative = np.append(first, indices.size).astype(np.int32)
    longest = int(np.diff(cumulative).max(initial=0))
    if not hasattr(segment_ids, "new_tensor"):
        return SequenceLengths(cumulative, longest, indices)
    like = segment_ids.long()
    return SequenceLengths(like.new_tensor(cumulative).int(), longest, like.new_tensor(indices))


def _places(segment_ids: Any) -> Any:
    """Return 0, 1, ... for each column, on the segments' device."""
    places = np.arange(segment_ids.shape[1])
    return segment_ids.new_tensor(places) if hasattr(segment_ids, "new_tensor") else places


def _check(segment_ids: Any) -> None:
    """Check that segments are integers [B, W].

    Raises:
        TextError: They are not.
    """
    shape = tuple(getattr(segment_ids, "shape", ()))
    if len(shape) != 2:
        raise TextError(f"segment_ids: shape {shape}, expected [B, W], as a batch of Windows has them.")
    dtype = str(segment_ids.dtype).removeprefix("torch.")
    if not dtype.startswith(("int", "uint")):
        raise TextError(f"segment_ids: {dtype}, expected integers: 1, 2, ... by document, 0 on padding.")
