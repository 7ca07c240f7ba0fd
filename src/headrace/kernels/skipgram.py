"""word2vec in compiled loops: which tokens are kept, and the rows of a batch.

The tokens that one epoch keeps stand in one row, ``kept``: a word id in 15 bits of
a uint16 or 31 bits of a uint32, and in the top bit whether a sentence begins here
(``#`` below). A sample is one place in that row, the centre; its window walks left and
right until it is full or a sentence ends.

    kept       #the  cat  sat  #a  dog        centre 1 (cat), window 1
    contexts    the       sat                 left 1, right 1

    centers             cat
    contexts_negatives  the  sat  n n n n n  n n n n n  0 0 0
    masks                1    1   1 1 1 1 1  1 1 1 1 1  0 0 0
    labels               1    1   0 0 0 0 0  0 0 0 0 0  0 0 0

T. Mikolov, I. Sutskever, K. Chen, G. Corrado, J. Dean, "Distributed
representations of words and phrases and their compositionality", NeurIPS 2013:
the keep rule is its equation 5, the noise its section 2.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.kernels.alias import draw_alias, draw_allowed
from headrace.kernels.compile import inline, kernel
from headrace.kernels.rng import random_words, scale32

TRIES = 16
"""Draws for one negative before the exact choice among what is allowed."""

_BLOCK = 1024
_U63 = np.uint64(63)
_U1 = np.uint64(1)
_U6 = np.uint64(6)
_U15 = np.uint64(15)


@kernel
def count_tokens(ids: NDArray[np.unsignedinteger[Any]], counts: NDArray[np.int64]) -> int:
    """Add the occurrences of every id to ``counts``.

    Args:
        ids: uint8 to uint64 [T].
        counts: int64 [V], added to.

    Returns:
        The first place whose id is not below V, where counting stopped; -1 where all are.
    """
    size = len(counts)
    for place in range(len(ids)):
        if ids[place] >= size:
            return place
        counts[ids[place]] += 1
    return -1


@inline
def _fill_words(words, key, place, blocks):  # type: ignore[no-untyped-def]
    """Write the random words of the first draws at one place, four a draw; up to seven draws more.

    Draws are computed eight at a time, in one vector register: fewer than eight one by one cost more.
    """
    for block in range((blocks + 7) // 8 * 8):
        w0, w1, w2, w3 = random_words(key, place, np.uint64(block))
        words[4 * block] = w0
        words[4 * block + 1] = w1
        words[4 * block + 2] = w2
        words[4 * block + 3] = w3


@inline
def _fill_token_words(words, key, block):  # type: ignore[no-untyped-def]
    """Write the random words of the tokens ``[block * 1024, (block + 1) * 1024)``.

    Token n owns word ``n % 4`` of draw 0 at place ``n // 4``.
    """
    first = np.uint64(block * (_BLOCK // 4))
    for k in range(_BLOCK // 4):
        w0, w1, w2, w3 = random_words(key, first + np.uint64(k), np.uint64(0))
        words[4 * k] = w0
        words[4 * k + 1] = w1
        words[4 * k + 2] = w2
        words[4 * k + 3] = w3


@kernel
def keep_tokens(
    ids: NDArray[np.unsignedinteger[Any]],
    offsets: NDArray[np.int64],
    first_token: int,
    thresholds: NDArray[np.uint64],
    key: np.uint64,
    kept: NDArray[np.unsignedinteger[Any]],
    length: int,
) -> int:
    """Append the tokens that subsampling keeps of some whole sentences to ``kept``.

    A sentence of which fewer than two tokens are kept leaves nothing.

    Args:
        ids: uint8 to uint64 [T], ids in [0, V).
        offsets: int64 [N + 1], ascending places in ``ids``: where sentences begin and end.
        first_token: Token number in the corpus of ``ids[offsets[0]]``.
        thresholds: uint64 [V], keep probability times ``2**32``; 0 removes a word.
        key: Key of the epoch's subsampling stream.
        kept: uint16 or uint32, written from ``length``; one place more than is kept is needed.
        length: How many places of ``kept`` are taken.

    Returns:
        How many places of ``kept`` are taken now; -1 where it has too few.
    """
    border = kept.dtype.type(1 << (8 * kept.itemsize - 1))
    words = np.empty(_BLOCK, np.uint32)
    block = -1
    for sentence in range(len(offsets) - 1):
        start = length
        for place in range(offsets[sentence], offsets[sentence + 1]):
            token = first_token + (place - offsets[0])
            if token // _BLOCK != block:
                block = token // _BLOCK
                _fill_token_words(words, key, block)
            if length == len(kept):
                return -1
            kept[length] = ids[place]
            length += np.uint64(words[token % _BLOCK]) < thresholds[ids[place]]
        if length - start < 2:
            length = start
        else:
            kept[start] |= border
    return length


@kernel
def kept_lengths(
    ids: NDArray[np.unsignedinteger[Any]],
    offsets: NDArray[np.int64],
    first_token: int,
    thresholds: NDArray[np.uint64],
    key: np.uint64,
) -> NDArray[np.int64]:
    """Return how many tokens subsampling keeps of each sentence, the shortest included.

    Args:
        ids: uint8 to uint64 [T], as in ``keep_tokens``.
        offsets: int64 [N + 1], as in ``keep_tokens``.
        first_token: Token number in the corpus of ``ids[offsets[0]]``.
        thresholds: uint64 [V], as in ``keep_tokens``.
        key: Key of the epoch's subsampling stream.

    Returns:
        int64 [N].
    """
    lengths = np.zeros(len(offsets) - 1, np.int64)
    words = np.empty(_BLOCK, np.uint32)
    block = -1
    for sentence in range(len(offsets) - 1):
        for place in range(offsets[sentence], offsets[sentence + 1]):
            token = first_token + (place - offsets[0])
            if token // _BLOCK != block:
                block = token // _BLOCK
                _fill_token_words(words, key, block)
            lengths[sentence] += np.uint64(words[token % _BLOCK]) < thresholds[ids[place]]
    return lengths


@kernel
def draw_windows(
    kept: NDArray[np.unsignedinteger[Any]],
    indices: NDArray[np.int64],
    places: NDArray[np.uint64],
    key: np.uint64,
    window: int,
) -> tuple[NDArray[np.int32], int]:
    """Draw each centre's window, and cut it at the borders of its sentence.

    Args:
        kept: uint16 or uint32 [T'], from ``keep_tokens``.
        indices: int64 [B], centres: places in ``kept``.
        places: uint64 [B], the epoch position of each centre.
        key: Key of the epoch's sample stream.
        window: Largest window; each centre draws uniformly from ``1..window``.

    Returns:
        int32 [B, 2], how many contexts stand left and right of the centre; and the largest sum of the two.
    """
    border = kept.dtype.type(1 << (8 * kept.itemsize - 1))
    words = np.empty(len(indices), np.uint32)
    for row in range(len(indices)):
        words[row], _, _, _ = random_words(key, places[row], np.uint64(0))
    reach = np.empty((len(indices), 2), np.int32)
    last = len(kept) - 1
    most = 0
    for row in range(len(indices)):
        centre = indices[row]
        left = right = np.int64(0)
        is_open_left = is_open_right = np.int64(1)
        for k in range(1 + scale32(words[row], window)):  # to its end: where a sentence ends is a coin toss
            is_open_left &= kept[max(centre - k, 0)] < border
            left += is_open_left
            is_open_right &= kept[min(centre + k + 1, last)] < border
            right += is_open_right
        reach[row, 0] = left
        reach[row, 1] = min(right, last - centre)
        most = max(most, left + reach[row, 1])
    return reach, most


@inline
def _write_contexts(kept, centre, left, right, mask, row, excluded, seen):  # type: ignore[no-untyped-def]
    """Write the context words in reading order, and into the set of excluded words."""
    first = centre - left
    for column in range(left + right):
        word = np.int64(kept[first + column + (column >= left)] & mask)
        row[column] = word
        excluded[column] = word
        _see(seen, word)


@inline
def _see(seen, word):  # type: ignore[no-untyped-def]
    """Set a word's bit in the filter that spares nearly all searches of the excluded words."""
    word = np.uint64(word)
    seen[word >> _U6 & _U15] |= _U1 << (word & _U63)


@inline
def _is_excluded(excluded, count, seen, word):  # type: ignore[no-untyped-def]
    word = np.uint64(word)
    if not seen[word >> _U6 & _U15] >> (word & _U63) & _U1:
        return False
    for k in range(count):
        if np.uint64(excluded[k]) == word:
            return True
    return False


@inline
def _write_draws(row, begin, end, words, key, place, table):  # type: ignore[no-untyped-def]
    """Write a first draw for each of ``row[begin:end]``; return how many random draws were used.

    Word 0 drew the window and word 1 is spare; the negative at ``begin + j`` has words 2j + 2 and 2j + 3.
    """
    blocks = (end - begin) // 2 + 1
    _fill_words(words, key, place, blocks)
    negatives = row[begin:end]
    for k in range(len(negatives)):
        word = np.uint64(2 * k + 2)
        negatives[k] = draw_alias(table, words[word], words[word + _U1])
    return blocks


@inline
def _write_negatives(  # type: ignore[no-untyped-def]
    row, begin, end, words, key, place, table, cumulative, excluded, count, seen
):
    """Write the negatives into ``row[begin:end]``; return whether any word was allowed."""
    draw = _write_draws(row, begin, end, words, key, place, table)
    negatives = row[begin:end]
    for k in range(len(negatives)):
        tries = 1
        while _is_excluded(excluded, count, seen, negatives[k]):
            a, b, _, _ = random_words(key, place, np.uint64(draw))
            draw += 1
            if tries == TRIES:
                negatives[k] = draw_allowed(cumulative, excluded, count, a, b)
                if negatives[k] < 0:
                    return False
                break
            negatives[k] = draw_alias(table, a, b)
            tries += 1
    return True


@kernel
def fill_batch(
    kept: NDArray[np.unsignedinteger[Any]],
    indices: NDArray[np.int64],
    places: NDArray[np.uint64],
    reach: NDArray[np.int32],
    key: np.uint64,
    per_context: int,
    per_center: int,
    exclude_center: bool,
    table: NDArray[np.uint64],
    cumulative: NDArray[np.uint64],
    centers: NDArray[np.int64],
    contexts_negatives: NDArray[np.int64],
    masks: NDArray[np.int64],
    labels: NDArray[np.int64],
) -> int:
    """Write a whole batch: centres, contexts, negatives, masks and labels.

    Negatives are drawn from ``table`` until one is none of the excluded words; after
    ``TRIES`` draws the choice is made exactly, among the words that are allowed, by
    inversion. Both follow the noise distribution without the excluded words.

    Args:
        kept: uint16 or uint32 [T'], from ``keep_tokens``.
        indices: int64 [B], centres.
        places: uint64 [B], the epoch position of each centre.
        reach: int32 [B, 2] from ``draw_windows``.
        key: Key of the epoch's sample stream.
        per_context: Negatives for each context.
        per_center: Negatives for each centre, beside those.
        exclude_center: Whether the centre itself is never drawn either (CBOW predicts it).
        table: uint64 [V], alias table of the noise.
        cumulative: uint64 [V], running masses of the noise.
        centers: int64 [B, 1], written.
        contexts_negatives: int64 [B, M], written: contexts, negatives, then 0.
        masks: int64 [B, M], written: 1 for contexts and negatives.
        labels: int64 [B, M], written: 1 for contexts.

    Returns:
        The first row for which no word is left as a negative, -1 where there is none. Such
        rows hold their contexts only.
    """
    border = kept.dtype.type(1 << (8 * kept.itemsize - 1))
    mask = kept.dtype.type(border - 1)
    width = contexts_negatives.shape[1]
    excluded = np.empty(width + 1, np.int64)
    words = np.empty(2 * width + 32, np.uint32)
    seen = np.empty(16, np.uint64)
    exhausted = -1
    for row in range(len(indices)):
        left, right = reach[row, 0], reach[row, 1]
        contexts = np.int64(left) + np.int64(right)
        end = contexts * (1 + per_context) + per_center
        target = contexts_negatives[row]
        center = np.int64(kept[indices[row]] & mask)
        centers[row, 0] = center
        for k in range(len(seen)):
            seen[k] = 0
        for column in range(width):  # all of them: a loop from a row's own end is mispredicted
            target[column] = 0
        _write_contexts(kept, indices[row], left, right, mask, target, excluded, seen)
        if exclude_center:
            excluded[contexts] = center
            _see(seen, center)
        count = contexts + exclude_center
        if not _write_negatives(
            target, contexts, end, words, key, places[row], table, cumulative, excluded, count, seen
        ):
            target[contexts:end] = 0
            end = contexts
            exhausted = row if exhausted < 0 else exhausted
        for column in range(width):
            masks[row, column] = column < end
        for column in range(width):
            labels[row, column] = column < contexts
    return exhausted
