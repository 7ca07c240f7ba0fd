"""A user's own function as a tokenizer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from headrace.errors import TextError
from headrace.text.tokenizer import Encoded
from headrace.text.tokens import Special

_IDS = "input_ids"
_SHOWN = 60


@dataclass(frozen=True, eq=False)
class CallableTokenizer:
    """A function from a text to ids, or to a mapping with ``input_ids`` and columns parallel to it.

    Attributes ``vocab_size`` (or ``n_vocab``), ``eos_token_id``, ``pad_token_id``, ``mask_token_id``,
    ``decode`` and ``fingerprint`` of the function are taken where it has them.
    """

    function: Callable[[Any], Any]
    threads: int
    kind: str = "callable"
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    file: None = None

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.function, "__qualname__", type(self.function).__qualname__))

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of its ``fingerprint``, else of its code; not of what it refers to."""
        own = getattr(self.function, "fingerprint", None)
        if own is not None:
            return xxhash.xxh3_128_hexdigest(str(own).encode())
        code = getattr(self.function, "__code__", None)
        what = self.name.encode() if code is None else code.co_code + repr(code.co_names).encode()
        return xxhash.xxh3_128_hexdigest(what)

    @property
    def special(self) -> Special:
        """What the function's attributes say."""
        size = getattr(self.function, "vocab_size", getattr(self.function, "n_vocab", None))
        return Special(
            vocab_size=size if isinstance(size, int) else None,
            eos=getattr(self.function, "eos_token_id", None),
            pad=getattr(self.function, "pad_token_id", None),
            mask=getattr(self.function, "mask_token_id", None),
        )

    def encode(self, texts: Sequence[Any], with_ends: bool) -> Encoded:
        """Call the function for each text, in ``threads`` threads."""
        with ThreadPoolExecutor(self.threads) as pool:
            found = list(pool.map(self._call, texts))
        if found and isinstance(found[0], Mapping):
            return self._from_mappings(found, with_ends)
        if with_ends:
            raise TextError(
                f"{self.name}: sentences and words need to know where tokens end. Return a mapping with "
                "input_ids and offsets, a pair (begin, end) of characters a token."
            )
        return Encoded([self._integers(row) for row in found])

    def _call(self, text: Any) -> Any:
        try:
            return self.function(text)
        except Exception as error:
            shown = repr(text)
            start = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."
            raise TextError(f"{self.name} failed on {start}: {type(error).__name__}: {error}") from error

    def _from_mappings(self, found: Sequence[Mapping[str, Any]], with_ends: bool) -> Encoded:
        names = [name for name in found[0] if name not in (_IDS, "offsets")]
        ids = [self._integers(row[_IDS]) for row in found]
        ends = (
            [np.array([end for _, end in row["offsets"]], np.int64) for row in found] if with_ends else None
        )
        columns = {
            name: [self._column(name, row, part.size) for row, part in zip(found, ids, strict=True)]
            for name in names
        }
        return Encoded(ids, ends, columns)

    def _integers(self, row: Any) -> NDArray[Any]:
        array = np.asarray(row)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise TextError(
                f"{self.name} gave {array.dtype} of shape {array.shape}, expected a flat list of ids."
            )
        return array.astype(np.int64) if array.size == 0 else array

    def _column(self, name: str, row: Mapping[str, Any], size: int) -> NDArray[Any]:
        values = np.asarray(row.get(name))
        if values.shape != (size,) or (size and values.dtype.kind not in "iufb"):
            raise TextError(
                f"{self.name}: column {name!r} has shape {values.shape} for {size} tokens, one a token."
            )
        return values

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids by the function's own ``decode``, else the ids."""
        own = getattr(self.function, "decode", None)
        return str(own(list(ids))) if callable(own) else " ".join(map(str, ids))


def from_object(tokenizer: Any, threads: int | None) -> CallableTokenizer | None:
    """Wrap a function; None for what cannot be called."""
    return CallableTokenizer(tokenizer, threads or os.cpu_count() or 1) if callable(tokenizer) else None
