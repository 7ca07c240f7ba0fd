"""Tokenizers of the library ``tokenizers``, and of ``transformers`` where they stand on it."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from headrace.errors import TextError
from headrace.text.extras import need
from headrace.text.special import Special
from headrace.text.tokenizer import Encoded, Ids

_EOS_NAMES = ("<|endoftext|>", "</s>", "<eos>", "<|end_of_text|>", "<EOT>", "[EOS]")
_PAD_NAMES = ("<pad>", "[PAD]", "<|pad|>", "<PAD>")
_MASK_NAMES = ("[MASK]", "<mask>", "<MASK>")
_WORDS_REMEMBERED = 1 << 16
"""Some 200 bytes each."""


@dataclass(frozen=True, eq=False)
class HuggingFaceTokenizer:
    """A ``tokenizers.Tokenizer``, with its truncation and padding off."""

    backend: Any
    name: str
    named: Mapping[str, str]
    """Texts of the ``eos``, ``pad`` and ``mask`` tokens where a configuration names them."""
    kind: str = "tokenizers"

    @cached_property
    def definition(self) -> bytes:
        """The tokenizer's own file, as the library writes it.

        Raises:
            TextError: A part of it is written in Python, which the library cannot write.
        """
        return _written(self.backend).encode()

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of the definition, and of what decides ids beside it."""
        how = b"encode_special_tokens" if _splits_special_tokens(self.backend) else b""
        return xxhash.xxh3_128_hexdigest(self.definition + how)

    @property
    def file(self) -> tuple[str, bytes]:
        """``tokenizer.json``."""
        return "tokenizer.json", self.definition

    @property
    def randomness(self) -> str | None:
        """BPE-dropout (Provilkov et al., 2020)."""
        dropout = getattr(self.backend.model, "dropout", None)
        return f"dropout={dropout:g}" if dropout else None

    @cached_property
    def special_tokens(self) -> Mapping[str, int]:
        """The added tokens that are marked special."""
        added = self.backend.get_added_tokens_decoder().items()
        return {token.content: int(id_) for id_, token in sorted(added) if token.special}

    @cached_property
    def special(self) -> Special:
        """The largest id + 1; special tokens by configuration, else by the names they usually have."""
        return Special(
            vocab_size=self._largest_id() + 1,
            eos=self._id_of("eos", _EOS_NAMES),
            pad=self._id_of("pad", _PAD_NAMES),
            mask=self._id_of("mask", _MASK_NAMES),
        )

    def _largest_id(self) -> int:
        """Return the largest id; -1 where there is none.

        A model of n tokens that has one for each id below n has no other: no copy of it is needed.
        """
        backend: Any = self.backend
        size: int = backend.get_vocab_size(with_added_tokens=False)
        if None in map(backend.model.id_to_token, range(size)):
            return max(map(int, backend.get_vocab(with_added_tokens=True).values()))
        return max([size - 1, *map(int, backend.get_added_tokens_decoder())])

    def _id_of(self, which: str, usual: Sequence[str]) -> int | None:
        if which in self.named:
            found: int | None = self.backend.token_to_id(self.named[which])
            return found
        return next((self.special_tokens[name] for name in usual if name in self.special_tokens), None)

    def encode(self, texts: Iterable[str], with_ends: bool) -> Encoded:
        """Encode documents; the library shares them out over threads of its own."""
        if not with_ends:
            return Encoded(_ids_of(self.backend.encode_batch_fast(list(texts), add_special_tokens=False)))
        found = self.backend.encode_batch(list(texts), add_special_tokens=False)
        ends = [np.array([end for _, end in encoding.offsets], np.int64) for encoding in found]
        return Encoded(_ids_of(found), ends)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids, special tokens included.

        Raises:
            TextError: An id is no token; the library would leave it out.
        """
        unknown = next((id_ for id_ in ids if self.backend.id_to_token(id_) is None), None)
        if unknown is not None:
            raise TextError(f"tokenizer {self.name}: id {unknown} is no token of it.")
        text: str = self.backend.decode(list(ids), skip_special_tokens=False)
        return text


def _ids_of(encodings: Sequence[Any]) -> list[Ids]:
    """Return the ids of each document as a view of one array, which takes a list in half of NumPy's time."""
    flat = array("I")
    ends = [0]
    for encoding in encodings:
        flat.fromlist(encoding.ids)
        ends.append(len(flat))
    ids = np.frombuffer(flat, np.uint32)
    return [ids[begin:end] for begin, end in pairwise(ends)]


def from_file(path: Path) -> HuggingFaceTokenizer:
    """Read a ``tokenizer.json``; a ``tokenizer_config.json`` beside it names special tokens.

    Raises:
        TextError: It is no file of this library.
    """
    tokenizers = need("tokenizers")
    try:
        backend = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 - the library raises bare Exception
        raise TextError(f"{path}: not a tokenizer.json of Hugging Face tokenizers ({error}).") from None
    backend.no_truncation()
    backend.no_padding()
    return _wrap(backend, path.parent.name or path.name, _named(path.parent / "tokenizer_config.json"))


def from_object(tokenizer: Any) -> HuggingFaceTokenizer | None:
    """Wrap a ``tokenizers.Tokenizer`` or a fast tokenizer of ``transformers``; None for anything else."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "encode_batch_fast"):
        return None
    named = {
        which: str(token)
        for which in ("eos", "pad", "mask")
        if (token := getattr(tokenizer, f"{which}_token", None)) is not None
    }
    name = getattr(tokenizer, "name_or_path", "") or "tokenizer"
    if backend.truncation is not None or backend.padding is not None:
        backend = _copy(backend)  # the user's own stays as it is
    return _wrap(backend, Path(name).name, named)


def _copy(backend: Any) -> Any:
    """Return a tokenizer of the same ids that neither cuts documents short nor fills them up."""
    copy = need("tokenizers").Tokenizer.from_str(_written(backend))
    copy.no_truncation()
    copy.no_padding()
    if _splits_special_tokens(backend):
        copy.encode_special_tokens = True  # no file has it
    return copy


def _splits_special_tokens(backend: Any) -> bool:
    """Whether the texts of special tokens are encoded as any other text."""
    return bool(getattr(backend, "encode_special_tokens", False))


def _written(backend: Any) -> str:
    try:
        content: str = backend.to_str()
    except Exception as error:  # noqa: BLE001 - the library raises bare Exception
        raise TextError(
            f"tokenizer: tokenizers cannot write it to a file ({error}), and a store keeps one. Give a "
            "function that calls it, lambda text: tokenizer.encode(text, add_special_tokens=False).ids."
        ) from None
    return content


def _wrap(backend: Any, name: str, named: Mapping[str, str]) -> HuggingFaceTokenizer:
    """Wrap a tokenizer without truncation and padding, and let the library remember more words.

    It keeps the ids of words that it has met, 10,000 of them; books have more. Where it does (BPE and
    unigram models), its own ``_resize_cache`` is the only way to say so. No id depends on it. Where nothing
    cuts a text into words, what is remembered is whole texts, which do not come again.

    Nothing else is set here: the object may be at work in another thread, which a setter waits for.
    """
    if backend.pre_tokenizer is not None and hasattr(backend.model, "_resize_cache"):
        backend.model._resize_cache(_WORDS_REMEMBERED)
    return HuggingFaceTokenizer(backend, name, named)


def _named(path: Path) -> dict[str, str]:
    """Return the special tokens that a ``tokenizer_config.json`` names; none where there is no such file."""
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(config, dict):
        return {}
    tokens = {which: config.get(f"{which}_token") for which in ("eos", "pad", "mask")}
    texts = {which: t.get("content") if isinstance(t, dict) else t for which, t in tokens.items()}
    return {which: text for which, text in texts.items() if isinstance(text, str)}
