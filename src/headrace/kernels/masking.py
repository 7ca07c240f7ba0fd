"""Hiding tokens for a masked language model: which, and behind what, drawn by token number."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import inline, kernel
from headrace.kernels.rng import random_words, scale32
from headrace.kernels.windows_fill import values_at

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
    row_runs,
    run_position,
    run_size,
    run_document,
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
        row_runs: int64 [B+1], as in ``fill_rows``; so are the next six.
        run_position: int64 [R].
        run_size: int64 [R].
        run_document: int64 [R].
        stored_offsets: int64 [D+1].
        document_offsets: int64 [D+1].
        shard_tokens: int64 [K+1].
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
    labels[:, :] = -100
    for row in range(row_runs.size - 1):
        column = 0
        for run in range(row_runs[row], row_runs[row + 1]):
            d = run_document[run]
            place = run_position[run] - document_offsets[d]
            left = run_size[run]
            while left > 0:
                first = stored_offsets[d]
                stored = stored_offsets[d + 1] - first
                size = min(left, document_offsets[d + 1] - document_offsets[d] - place)
                count = stored if whole_word else 0
                starts_word = values_at(first, count, shard_tokens, word_addresses, word_like)
                for i in range(max(0, min(size, stored - place))):
                    word = word_of(place + i, first, starts_word, whole_word)
                    chosen, action, replacement, _ = random_words(key, first + place + i, 0)
                    if word != first + place + i:
                        chosen = random_words(key, word, 0)[0]
                    if np.uint64(chosen) < threshold:
                        id_ = input_ids[row, column + i]
                        labels[row, column + i] = id_
                        input_ids[row, column + i] = hidden_id(id_, action, replacement, mask_id, vocab_size)
                column += size
                left -= size
                d += 1
                place = 0
