"""What a tokenizer is here, and how the user names one."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headrace.errors import HeadraceError, TextError
from headrace.text.special import Special

Ids = NDArray[Any]


@dataclass(frozen=True)
class Encoded:
    """Some documents as ids."""

    ids: list[Ids]
    """Integers [L], one array a document."""
    ends: list[NDArray[np.int64]] | None = None
    """int64 [L], the character after each token, one array a document; where it was asked for."""
    columns: Sequence[Mapping[str, NDArray[Any]]] = ()
    """Values [L] parallel to the ids by name, one mapping a document; none where no document has any."""


class Tokenizer(Protocol):
    """A tokenizer that encodes documents in batches, without special tokens, and never cuts one off."""

    @property
    def name(self) -> str:
        """What a person calls it."""
        ...

    @property
    def kind(self) -> str:
        """Which library: ``"tokenizers"``, ``"tiktoken"``, ``"sentencepiece"`` or ``"callable"``."""
        ...

    @property
    def digest(self) -> str:
        """Hexadecimal digest of all that decides the ids."""
        ...

    @property
    def special(self) -> Special:
        """Vocabulary size and special tokens."""
        ...

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """All special tokens by their text."""
        ...

    @property
    def file(self) -> tuple[str, bytes] | None:
        """Name and content of the file that makes this tokenizer again; None where there is none."""
        ...

    @property
    def randomness(self) -> str | None:
        """The library's option by which ids are drawn; None where a text always has the same."""
        ...

    def encode(self, texts: Iterable[str], with_ends: bool) -> Encoded:
        """Encode documents; may be called in several threads at once."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids; what is no whole character is shown as a replacement mark."""
        ...


TokenizerLike: TypeAlias = "str | Path | Callable[..., Any] | Any"


def as_tokenizer(tokenizer: TokenizerLike) -> Tokenizer:
    """Return what the user gave as a ``Tokenizer``.

    Args:
        tokenizer: A ``tokenizer.json`` of Hugging Face ``tokenizers``, or a folder that holds one; a
            ``tiktoken`` encoding's name or a ``.tiktoken`` file of that name; a folder with GPT-2's
            ``vocab.json`` and ``merges.txt``; a ``sentencepiece`` ``.model`` file; an object of one of
            these libraries or of ``transformers``; or a function from a text to ids.

    Raises:
        TextError: It is none of these, or its library is not installed.
    """
    from headrace.text import (
        tokenizer_callable,
        tokenizer_hugging_face,
        tokenizer_sentencepiece,
        tokenizer_tiktoken,
    )

    if isinstance(tokenizer, (str, Path)):
        return _from_name(tokenizer)
    for room in (tokenizer_hugging_face, tokenizer_tiktoken, tokenizer_sentencepiece, tokenizer_callable):
        found: Tokenizer | None = room.from_object(tokenizer)
        if found is not None:
            return found
    raise TextError(f"tokenizer: {type(tokenizer).__name__} is no tokenizer. {_ALLOWED}")


_ALLOWED = (
    "Give a tokenizer.json, a .tiktoken or .model file, the name of a tiktoken encoding, "
    "or a function from a text to ids."
)


def _from_name(name: str | Path) -> Tokenizer:
    from headrace.text import tokenizer_hugging_face, tokenizer_sentencepiece, tokenizer_tiktoken

    path = Path(name)
    if path.is_dir() and (path / "tokenizer.json").is_file():
        path = path / "tokenizer.json"
    if path.is_dir() and (path / "merges.txt").is_file():
        return tokenizer_tiktoken.from_gpt2_folder(path)
    if path.suffix == ".json" and path.is_file():
        return tokenizer_hugging_face.from_file(path)
    if path.suffix == ".model" and path.is_file():
        return tokenizer_sentencepiece.from_file(path)
    if path.suffix == ".tiktoken" and path.is_file():
        return tokenizer_tiktoken.from_file(path)
    if path.suffix or path.is_dir():
        raise TextError(f"tokenizer: {name} is no file of a tokenizer, or does not exist. {_ALLOWED}")
    return tokenizer_tiktoken.from_name(str(name))


class Stopped(Exception):  # noqa: N818 - what it carries is the point
    """A tokenizer that takes one document after the other failed on one.

    Args:
        done: The documents before it.
        error: What it raised.
    """

    def __init__(self, done: Encoded, error: BaseException) -> None:
        super().__init__(error)
        self.done, self.error = done, error


def encode_documents(
    tokenizer: Tokenizer,
    texts: Sequence[Any],
    with_ends: bool,
    where: Sequence[str],
    ended: threading.Event,
) -> tuple[Encoded, TextError | None]:
    """Encode documents up to the first that the tokenizer cannot encode.

    Args:
        tokenizer: The tokenizer.
        texts: The documents.
        with_ends: Whether it is asked where tokens end.
        where: Where each document came from, for the message.
        ended: Set when nobody wants the rest any more.

    Returns:
        What became of the documents, and the error that names the first that failed; None where none did.
    """
    wanted = takewhile(lambda _: not ended.is_set(), texts)
    try:
        return tokenizer.encode(wanted, with_ends), None
    except Stopped as stopped:
        return stopped.done, _told(stopped.error, tokenizer, where[len(stopped.done.ids)])
    except BaseException as error:
        if not _is_of_library(error):
            raise
    return _one_by_one(tokenizer, texts, with_ends, where)


def _one_by_one(
    tokenizer: Tokenizer, texts: Sequence[str], with_ends: bool, where: Sequence[str]
) -> tuple[Encoded, TextError | None]:
    done: list[Encoded] = []
    failed = None
    for text, place in zip(texts, where, strict=True):
        try:
            done.append(tokenizer.encode([text], with_ends))
        except BaseException as error:  # noqa: BLE001 - a panic is one; others are raised again
            failed = _told(error, tokenizer, place)
            break
    ends = [one.ends[0] for one in done if one.ends is not None]
    return Encoded([one.ids[0] for one in done], ends if with_ends else None), failed


def _told(error: BaseException, tokenizer: Tokenizer, where: str) -> TextError:
    """Return what a tokenizer raised as an error that names the document; raise what is none of its own."""
    if isinstance(error, HeadraceError):
        told = TextError(f"{where}: {error}")
        told.__cause__ = error.__cause__
        return told
    if not _is_of_library(error):
        raise error from None
    return TextError(
        f"{where}: the tokenizer {tokenizer.name} cannot encode it ({type(error).__name__}: {error}). "
        "Mend the tokenizer, or leave the document out."
    )


def _is_of_library(error: BaseException) -> bool:
    """Whether a library failed; a panic of one that is written in Rust is no ``Exception``."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def file_name(name: str, suffix: str) -> str:
    """Return a name for a tokenizer's file in a store, whatever signs the tokenizer's own name has."""
    return (re.sub(r"[^\w.-]", "_", name).lstrip(".") or "tokenizer") + suffix


def plain_text(text: Any) -> Any:
    """Return text that can be encoded as UTF-8: a lone surrogate becomes the replacement mark.

    What is no text is left as it is: a function of the user's own may take it.
    """
    if not isinstance(text, str) or text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
