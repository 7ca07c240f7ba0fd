"""Hiding tokens for a masked language model: which, and behind what, drawn by token number."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import inline, kernel
from headrace.kernels.rng import random_words, scale32
from headrace.kernels.windows_fill import IGNORED, values_at
from headrace.kernels.windows_segments import COLUMN, DOCUMENT, PLACE, ROW, SIZE

_HUNDRED = 100
_MASKED = 80
_RANDOM = 90


@inline
def word_of(place, first, starts_word, whole_word):  # type: ignore[no-untyped-def]
    """Return the token number of the first token of a word; without ``whole_word`` the token's own."""
    if whole_word:
        while place > 0 and starts_word[place] == 0:
            place -= 1
    return first + place


@inline
def hidden_id(id_, action, replacement, mask_id, vocab_size):  # type: ignore[no-untyped-def]
    """Return what stands in place of a chosen token: 80 % mask, 10 % any id, 10 % itself."""
    percent = scale32(action, _HUNDRED)
    if percent < _MASKED:
        return mask_id
    return scale32(replacement, vocab_size) if percent < _RANDOM else id_


@kernel
def mask_tokens(  # type: ignore[no-untyped-def]
    segments,
    stored_offsets,
    document_offsets,
    shard_tokens,
    word_addresses,
    word_like,
    whole_word,
    key,
    threshold,
    mask_id,
    vocab_size,
    input_ids,
    labels,
):
    """Hide tokens of a filled batch, and make them its labels.

    A token's draw is keyed by its number in the store, so that it is the same in
    every window that holds it. Added end tokens and padding are never chosen.

    Args:
        segments: int64 [5, N], from ``list_segments``.
        stored_offsets: int64 [D+1], where each document begins in the store.
        document_offsets: int64 [D+1], where each document begins when added end tokens count.
        shard_tokens: int64 [K+1], tokens of the store before each shard.
        word_addresses: uint64 [K], where each shard's word starts lie: 1 on the first token of a word.
        word_like: Array of the word starts' dtype.
        whole_word: Whether a word is chosen as a whole.
        key: uint64, from ``stream_key``.
        threshold: Chosen are draws below it, of 2**32.
        mask_id: Id that hides a token.
        vocab_size: Random ids are below it.
        input_ids: int64 [B, W], filled already; changed.
        labels: int64 [B, W], filled: the hidden ids, -100 elsewhere.
    """
    labels[:, :] = IGNORED
    for s in range(segments.shape[1]):
        row, column, place = segments[ROW, s], segments[COLUMN, s], segments[PLACE, s]
        first = stored_offsets[segments[DOCUMENT, s]]
        stored = stored_offsets[segments[DOCUMENT, s] + 1] - first
        count = stored if whole_word else 0
        starts_word = values_at(first, count, shard_tokens, word_addresses, word_like)
        for i in range(max(0, min(segments[SIZE, s], stored - place))):
            own = first + place + i
            word = word_of(place + i, first, starts_word, whole_word)
            chosen, action, replacement, _ = random_words(key, own, 0)
            if word != own:
                chosen = random_words(key, word, 0)[0]
            if np.uint64(chosen) < threshold:
                id_ = input_ids[row, column + i]
                labels[row, column + i] = id_
                input_ids[row, column + i] = hidden_id(id_, action, replacement, mask_id, vocab_size)
