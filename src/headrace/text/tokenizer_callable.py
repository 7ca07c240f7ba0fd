"""A user's own function as a tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from headrace.errors import TextError
from headrace.text.function_digest import digest_of
from headrace.text.given_arrays import as_array, described
from headrace.text.settings import fingerprint_of
from headrace.text.special import Special
from headrace.text.token_checks import check_column_name
from headrace.text.tokenizer import Encoded, Stopped

_IDS = "input_ids"
_OFFSETS = "offsets"
_SHOWN = 60


@dataclass(frozen=True, eq=False)
class CallableTokenizer:
    """A function from a text to ids, or to a mapping with ``input_ids`` and columns parallel to it.

    Attributes ``vocab_size`` (or ``n_vocab``), ``eos_token_id``, ``pad_token_id``, ``mask_token_id``,
    ``decode`` and ``fingerprint`` (or a method ``__fingerprint__()``) of the function are taken where it has
    them.
    """

    function: Callable[[Any], Any]
    kind: str = "callable"
    randomness: None = None
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    file: None = None

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.function, "__qualname__", type(self.function).__qualname__))

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of its ``fingerprint`` or ``__fingerprint__()``, else of what it does."""
        told = fingerprint_of(self.function)
        told = getattr(self.function, "fingerprint", None) if told is None else told
        return digest_of(self.function) if told is None else xxhash.xxh3_128_hexdigest(str(told).encode())

    @property
    def special(self) -> Special:
        """What the function's attributes say."""
        return Special(
            vocab_size=self._number("vocab_size", "n_vocab"),
            eos=self._number("eos_token_id"),
            pad=self._number("pad_token_id"),
            mask=self._number("mask_token_id"),
        )

    def _number(self, *names: str) -> int | None:
        """Return the first of the function's attributes that is there."""
        for name in names:
            value = getattr(self.function, name, None)
            if isinstance(value, np.integer) or (isinstance(value, int) and not isinstance(value, bool)):
                return int(value)
            if value is not None and not callable(value):
                raise TextError(f"{self.name}.{name} is {value!r}, expected an integer.")
        return None

    def encode(self, texts: Iterable[Any], with_ends: bool) -> Encoded:
        """Call the function for each text, once.

        Raises:
            Stopped: It failed on one, or gave what is no row of ids; the texts behind it were not tried.
        """
        found: list[dict[str, NDArray[Any]]] = []
        try:
            for text in texts:
                given = self._call(text)
                if with_ends:
                    self._check_has_ends(given)
                found.append(given)
        except BaseException as error:  # noqa: BLE001 - told where the document is known
            raise Stopped(_encoded(found, with_ends), error) from None
        return _encoded(found, with_ends)

    def _call(self, text: Any) -> dict[str, NDArray[Any]]:
        """Return what the function gives for a text as arrays, by name."""
        try:
            given = self.function(text)
        except Exception as error:
            raise TextError(
                f"{self.name} failed on {_shown(text)}: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(given, Mapping):
            return {_IDS: self._ids(given, text)}
        if _IDS not in given:
            raise self._wrong(f"a mapping without {_IDS!r}, with {sorted(map(str, given))}", text)
        ids = self._ids(given[_IDS], text)
        others = {str(name): value for name, value in _without(given, (_IDS,)).items()}
        return {
            _IDS: ids,
            **{name: self._column(name, value, ids.size, text) for name, value in others.items()},
        }

    def _ids(self, given: Any, text: Any) -> NDArray[Any]:
        array = as_array(given)
        if array is None or array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise self._wrong(described(given, array), text)
        return _own(given, array) if array.size else array.astype(np.int64)

    def _column(self, name: str, given: Any, size: int, text: Any) -> NDArray[Any]:
        array = as_array(given)
        if name == _OFFSETS:
            return self._offsets(given, array, size, text)
        check_column_name(name, self.name)
        if array is None or array.shape != (size,) or (size and array.dtype.kind not in "iufb"):
            raise TextError(
                f"{self.name}: column {name!r} is {described(given, array)} for the {size} tokens of "
                f"{_shown(text)}; expected one number a token."
            )
        return _own(given, array)

    def _offsets(self, given: Any, array: NDArray[Any] | None, size: int, text: Any) -> NDArray[Any]:
        if array is not None and array.size == 0 == size:
            return np.empty((0, 2), np.int64)
        is_pairs = array is not None and array.shape == (size, 2) and array.dtype.kind in "iu"
        if array is None or not is_pairs or np.any(array[1:, 1] < array[:-1, 1]):
            raise TextError(
                f"{self.name}: {_OFFSETS} is {described(given, array)} for the {size} tokens of "
                f"{_shown(text)}; expected a pair (begin, end) of characters for each, ends never falling."
            )
        return _own(given, array)

    def _check_has_ends(self, given: Mapping[str, NDArray[Any]]) -> None:
        if _OFFSETS not in given and given[_IDS].size:
            raise TextError(
                f"{self.name}: sentences and words need to know where tokens end. Return a mapping with "
                "input_ids and offsets, a pair (begin, end) of characters a token."
            )

    def _wrong(self, what: str, text: Any) -> TextError:
        return TextError(
            f"{self.name} gave {what} for {_shown(text)}, expected a flat list of ids: integers, or a "
            f"mapping that has them as {_IDS!r}."
        )

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids by the function's own ``decode``, else the ids."""
        own = getattr(self.function, "decode", None)
        return str(own(list(ids))) if callable(own) else " ".join(map(str, ids))


def _encoded(found: Sequence[Mapping[str, NDArray[Any]]], with_ends: bool) -> Encoded:
    return Encoded(
        ids=[given[_IDS] for given in found],
        ends=[_ends(given) for given in found] if with_ends else None,
        columns=[_without(given, (_IDS, _OFFSETS)) for given in found],
    )


def _ends(given: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    return given[_OFFSETS][:, 1].astype(np.int64) if given[_IDS].size else np.empty(0, np.int64)


def _own(given: Any, array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that the function's next call cannot change: it may fill one buffer again and again."""
    return array if isinstance(given, list | tuple) else array.copy()


def _without(given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in names}


def _shown(text: Any) -> str:
    shown = repr(text)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."


def from_object(tokenizer: Any) -> CallableTokenizer | None:
    """Wrap a function; None for what cannot be called."""
    return CallableTokenizer(tokenizer) if callable(tokenizer) else None
