"""What somebody gave to ``Windows``, as tokens and spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headrace.errors import TextError
from headrace.text.given_arrays import whole_numbers
from headrace.text.settings import Pack
from headrace.text.store import tokens_of_dataset
from headrace.text.tokens import Tokens


def as_tokens(tokens: Any) -> Tokens:
    """Return what the user gave as ``Tokens``.

    Raises:
        TextError: It is nothing that holds token documents.
    """
    if isinstance(tokens, Tokens):
        return tokens
    if isinstance(tokens, (str, Path)):
        return Tokens.open(tokens)
    if isinstance(tokens, Mapping):
        raise TextError(
            f"tokens: {type(tokens).__name__} has the splits {', '.join(map(str, tokens))}; take one of them."
        )
    if hasattr(tokens, "column_names"):
        return tokens_of_dataset(tokens)
    if isinstance(tokens, Sequence):
        return Tokens.from_documents(tokens)
    raise TextError(
        f"tokens: {type(tokens).__name__} holds no token documents. Give Tokens, the folder of a store, "
        "a Dataset with a column input_ids, or a list of lists of ids."
    )


def check_spans(spans: ArrayLike, tokens: Tokens, pack: Pack) -> NDArray[np.int64]:
    """Return answer spans as int64 [D, 2].

    Raises:
        TextError: Of another shape, outside their documents, or with packing.
    """
    array = whole_numbers(spans, "spans", "first and last token of the answer in each document")
    array = array.reshape(-1, 2) if array.size == 0 else array
    if array.shape != (len(tokens), 2):
        raise TextError(
            f"spans: shape {array.shape}, expected ({len(tokens)}, 2): first and last token of the answer "
            "in each document, -1 and -1 where there is none."
        )
    if pack is not False:
        raise TextError(f"spans with pack={pack!r}: a packed row holds several documents. Use pack=False.")
    lengths = np.diff(tokens.offsets)
    present = (array != -1).any(axis=1)
    inside = (array[:, 0] >= 0) & (array[:, 1] >= array[:, 0]) & (array[:, 1] < lengths)
    wrong = np.flatnonzero(present & ~inside)
    if wrong.size:
        number = int(wrong[0])
        raise TextError(
            f"spans: document {number} has {lengths[number]} tokens, its span is "
            f"{array[number].tolist()}; both ends are token numbers in it, the last one included, or both -1."
        )
    return array
