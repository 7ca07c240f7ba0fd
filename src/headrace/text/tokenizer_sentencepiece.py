"""Tokenizers of the library ``sentencepiece``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from headrace.errors import TextError
from headrace.text.extras import need
from headrace.text.special import Special
from headrace.text.tokenizer import Encoded, file_name

_OPTIONS = ("reverse", "emit_unk_piece", "enable_sampling")


@dataclass(frozen=True, eq=False)
class SentencePieceTokenizer:
    """A ``SentencePieceProcessor``; no begin or end token is added."""

    processor: Any
    name: str
    kind: str = "sentencepiece"

    @cached_property
    def definition(self) -> bytes:
        """The content of the model's file."""
        content: bytes = self.processor.serialized_model_proto()
        return content

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of the model, and of the object's options that change ids."""
        options = [name for name in _OPTIONS if getattr(self.processor, f"_{name}", False)]
        return xxhash.xxh3_128_hexdigest(self.definition + " ".join(options).encode())

    @property
    def randomness(self) -> str | None:
        """Subword regularization (Kudo, 2018)."""
        return "enable_sampling=True" if getattr(self.processor, "_enable_sampling", False) else None

    @property
    def file(self) -> tuple[str, bytes]:
        """The model."""
        return file_name(self.name, ".model"), self.definition

    @property
    def special(self) -> Special:
        """Number of pieces, and the ids that the model declares."""
        eos, pad = self.processor.eos_id(), self.processor.pad_id()
        return Special(
            vocab_size=self.processor.get_piece_size(),
            eos=eos if eos >= 0 else None,
            pad=pad if pad >= 0 else None,
            mask=next((id_ for text, id_ in self.special_tokens.items() if "mask" in text.lower()), None),
        )

    @cached_property
    def special_tokens(self) -> Mapping[str, int]:
        """Control pieces by their text."""
        pieces = range(self.processor.get_piece_size())
        return {self.processor.id_to_piece(id_): id_ for id_ in pieces if self.processor.is_control(id_)}

    def encode(self, texts: Iterable[str], with_ends: bool) -> Encoded:
        """Encode documents; the library lets go of the interpreter."""
        plain = {"num_threads": 1, "add_bos": False, "add_eos": False}
        if not with_ends:
            return Encoded(self.processor.encode(list(texts), return_type="numpy", **plain))
        found = self.processor.encode(list(texts), return_type="offset_mapping", **plain)
        ids = [np.array(row["ids"], np.int32) for row in found]
        return Encoded(ids, [_ends(row["offsets"]) for row in found])

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids."""
        text: str = self.processor.decode([int(id_) for id_ in ids])
        return text


def _ends(offsets: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Return where each piece ends; a piece of no width ends with the next that has one.

    Of the byte pieces of one character the library gives the width to the last.
    """
    spans = np.array(offsets, np.int64).reshape(-1, 2)
    places = np.arange(len(spans))
    holders = np.where(spans[:, 1] > spans[:, 0], places, len(spans))
    next_holder = np.minimum.accumulate(holders[::-1])[::-1]
    ends: NDArray[np.int64] = np.append(spans[:, 1], spans[-1:, 1].max(initial=0))[next_holder]
    return ends


def from_file(path: Path) -> SentencePieceTokenizer:
    """Read a ``.model`` file.

    Raises:
        TextError: It is no file of this library.
    """
    library = need("sentencepiece")
    try:
        processor = library.SentencePieceProcessor(model_file=str(path))
    except (OSError, RuntimeError, ValueError) as error:
        raise TextError(f"{path}: not a sentencepiece model ({error}).") from None
    return SentencePieceTokenizer(processor, path.stem)


def from_object(tokenizer: Any) -> SentencePieceTokenizer | None:
    """Wrap a ``SentencePieceProcessor``; None for anything else.

    Raises:
        TextError: It has no model.
    """
    if not hasattr(tokenizer, "serialized_model_proto"):
        return None
    if not tokenizer.serialized_model_proto():
        raise TextError("tokenizer: a SentencePieceProcessor without a model. Load one, or give its file.")
    return SentencePieceTokenizer(tokenizer, "sentencepiece")
