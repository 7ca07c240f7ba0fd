"""Documents laid end to end, with the end tokens that packing adds: what windows are cut from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headrace.errors import TextError
from headrace.kernels.windows_ends import copy_positions, ends_with
from headrace.kernels.windows_fill import locate_documents
from headrace.kernels.windows_segments import FIELDS, list_segments
from headrace.text.runs import Runs
from headrace.text.settings import Pack
from headrace.text.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Streams:
    """The tokens as windows see them: positions count every token and every end token that is added.

    documents    a b c | d E        eos=E: the second ends with it already
    positions    0 1 2 3 | 4 5      a b c E | d E
    pack=False   two streams        pack="concat": one
    """

    tokens: Tokens
    eos: int | None
    """The end token that closes every document; None: none is added."""
    joined: bool
    """Whether all documents are one stream."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: another process adds up lengths itself."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @cached_property
    def document_offsets(self) -> NDArray[np.int64]:
        """int64 [D+1], the position at which each document begins."""
        offsets = self.tokens.offsets
        if self.eos is None:
            return offsets
        missing = ~self._ends_with_eos()
        added: NDArray[np.int64] = np.cumsum(np.concatenate([[0], missing]), dtype=np.int64)
        return offsets + added

    def _ends_with_eos(self) -> NDArray[np.bool_]:
        """Whether each document's last token is the end token already: bool [D]."""
        tokens = self.tokens
        counted = tokens.details.get("tokenizer", {}).get("eos")
        known = tokens.details.get("ends_with_eos") if self.eos == counted else None
        if known in (0, len(tokens)):
            return np.full(len(tokens), known > 0)
        found = np.zeros(len(tokens), np.bool_)
        ends_with(tokens.offsets, tokens.shard_tokens, tokens.addresses, tokens.like, self.eos, found)
        return found

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """int64 [K+1], the position at which each stream begins."""
        return self.document_offsets[[0, -1]] if self.joined else self.document_offsets

    @property
    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Where documents begin in the store and among positions, and the tokens before each shard."""
        return self.tokens.offsets, self.document_offsets, self.tokens.shard_tokens

    @property
    def num_positions(self) -> int:
        """Tokens, added end tokens included."""
        return int(self.document_offsets[-1])

    @property
    def eos_added(self) -> int:
        """End tokens that were added."""
        return self.num_positions - self.tokens.num_tokens

    def ids(self, begin: int, end: int) -> NDArray[np.int64]:
        """Return the ids at the positions ``begin`` to ``end - 1``, added end tokens included."""
        found = np.empty(end - begin, np.int64)
        eos = 0 if self.eos is None else self.eos
        copy_positions(begin, *self.places, self.tokens.addresses, self.tokens.like, eos, found)
        return found

    def segments(self, runs: Runs) -> NDArray[np.int64]:
        """Return int64 [5, N]: the parts of documents that rows hold; see ``list_segments``."""
        where = (*runs[:4], self.document_offsets)
        found = np.empty((FIELDS, list_segments(*where, np.empty((FIELDS, 0), np.int64))), np.int64)
        list_segments(*where, found)
        return found

    def documents_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64 [R]: the document that holds each position."""
        documents = np.empty(positions.size, np.int64)
        locate_documents(positions, self.document_offsets, documents)
        return documents


def eos_to_add(tokens: Tokens, eos: int | Literal[False] | None, pack: Pack) -> int | None:
    """Return the end token that documents get, or None.

    Args:
        tokens: The tokens; what they declare is taken where ``eos`` is None.
        eos: An id, False for none, None for the tokens' own.
        pack: ``False`` adds none unless ``eos`` is an id.

    Raises:
        TextError: Documents are to be packed, and no end token is known; or it is no id.
    """
    if eos is False or (eos is None and pack is False):
        return None
    if eos is None and tokens.special.eos is None:
        raise TextError(
            f"pack={pack!r} ends every document with an end token, and the tokens declare none. "
            "Give its id, eos=50256 for instance, or eos=False to join documents without one."
        )
    return check_id("eos", tokens.special.eos if eos is None else eos, tokens)


def pad_to_use(tokens: Tokens, pad_id: int | None, eos: int | Literal[False] | None) -> int:
    """Return the padding's id: ``pad_id``, else the tokens' pad token, else the end token, else 0."""
    candidates = (pad_id, tokens.special.pad, eos if eos is not False else None, tokens.special.eos, 0)
    return check_id("pad_id", next(id_ for id_ in candidates if id_ is not None), tokens)


def check_id(name: str, value: object, tokens: Tokens) -> int:
    """Check that a special token is an id of the vocabulary.

    Raises:
        TextError: It is no integer, negative, or not below the vocabulary's size.
    """
    size = tokens.special.vocab_size
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 2**63:
        raise TextError(f"{name}={value!r}: expected a token id, an integer of at least 0.")
    if size is not None and value >= size:
        raise TextError(
            f"{name}={value} is outside the vocabulary of {size} ids; give an id below {size}, or say how "
            f"many there are: Tokens.open(folder).with_special(vocab_size={value + 1})."
        )
    return int(value)
