"""Tokenizers of the library ``tiktoken``: by name, or from local files without a network."""

from __future__ import annotations

import base64
import binascii
import json
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from headrace.errors import TextError, did_you_mean
from headrace.text.extras import need
from headrace.text.special import Special
from headrace.text.tokenizer import Encoded, Ids, file_name

_END = "<|endoftext|>"
_BYTES = 256
_LARGEST = 1 << 32
_CONTINUATION = 0xC0
_CONTINUES = 0x80


@dataclass(frozen=True, eq=False)
class TiktokenTokenizer:
    """A ``tiktoken.Encoding``; text that looks like a special token is encoded as text."""

    encoding: Any
    definition: bytes
    """The content of a ``.tiktoken`` file: what the ids depend on, with the encoding's name."""
    kind: str = "tiktoken"
    randomness: None = None

    @property
    def name(self) -> str:
        """The encoding's name."""
        name: str = self.encoding.name
        return name

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of ranks, pattern and special tokens."""
        how = repr((self.encoding._pat_str, sorted(self.special_tokens.items()))).encode()
        return xxhash.xxh3_128_hexdigest(how + self.definition)

    @property
    def file(self) -> tuple[str, bytes]:
        """The ranks, in the library's format."""
        return file_name(self.name, ".tiktoken"), self.definition

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """Special tokens by their text."""
        return dict(self.encoding._special_tokens)

    @property
    def special(self) -> Special:
        """The largest id + 1, and the end of text."""
        return Special(vocab_size=self.encoding.max_token_value + 1, eos=self.special_tokens.get(_END))

    def encode(self, texts: Iterable[str], with_ends: bool) -> Encoded:
        """Encode documents; the library lets go of the interpreter."""
        documents = list(texts)
        ids: list[Ids] = [self.encoding.encode_to_numpy(text, disallowed_special=()) for text in documents]
        if not with_ends:
            return Encoded(ids)
        return Encoded(ids, [self._ends(text, row) for text, row in zip(documents, ids, strict=True)])

    def _ends(self, text: str, ids: Ids) -> NDArray[np.int64]:
        """Return the character after each token; of a token that ends inside one, that one counts."""
        raw = np.frombuffer(text.encode(), np.uint8)
        begins_character = (raw & _CONTINUATION) != _CONTINUES
        characters = np.concatenate([[0], np.cumsum(begins_character)])
        ends: NDArray[np.int64] = characters[np.cumsum(self._byte_lengths[ids])]
        return ends

    @cached_property
    def _byte_lengths(self) -> NDArray[np.int64]:
        """int64 [V], the bytes of each token."""
        lengths = np.zeros(self.encoding.max_token_value + 1, np.int64)
        for token, rank in self.encoding._mergeable_ranks.items():
            lengths[rank] = len(token)
        return lengths

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids."""
        text: str = self.encoding.decode(list(ids), errors="replace")
        return text


def from_name(name: str) -> TiktokenTokenizer:
    """Return one of the library's own encodings; it looks in its cache, then in the network.

    Raises:
        TextError: There is no such encoding, or its ranks cannot be had.
    """
    tiktoken = need("tiktoken")
    names = tiktoken.list_encoding_names()
    if name not in names:
        raise TextError(
            f"tokenizer: {name!r} is no file and no tiktoken encoding; there are {', '.join(names)}."
            + did_you_mean(name, names)
        )
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as error:  # noqa: BLE001 - whatever the library's download raises
        raise TextError(
            f"tokenizer: tiktoken cannot get the ranks of {name!r} ({error}). "
            f"Without a network give a local file: {name}.tiktoken."
        ) from None
    return _wrap(encoding)


def from_file(path: Path) -> TiktokenTokenizer:
    """Read a local ``.tiktoken`` file; its name says which encoding's pattern and special tokens go with it.

    Raises:
        TextError: The name is unknown, or the content is no list of ranks.
    """
    known = _known()
    if path.stem not in known:
        raise TextError(
            f"{path}: the file's name must be that of a tiktoken encoding, which decides the pattern: "
            f"{', '.join(sorted(known))}.{did_you_mean(path.stem, known)} "
            "For another one give a tiktoken.Encoding."
        )
    pattern, special = known[path.stem]
    return _make(path.stem, pattern, _checked(_ranks(path), special, path), special)


def from_gpt2_folder(folder: Path) -> TiktokenTokenizer:
    """Read GPT-2's ``vocab.json`` and ``merges.txt``.

    Raises:
        TextError: The two files do not fit together.
    """
    ranks = _checked(_gpt2_ranks(folder).items(), {}, folder)
    pattern, _ = _known()["gpt2"]
    return _make("gpt2", pattern, ranks, {_END: len(ranks)})


def from_object(tokenizer: Any) -> TiktokenTokenizer | None:
    """Wrap a ``tiktoken.Encoding``; None for anything else."""
    return _wrap(tokenizer) if hasattr(tokenizer, "encode_ordinary_batch") else None


def _make(
    name: str, pattern: str, ranks: Mapping[bytes, int], special: Mapping[str, int]
) -> TiktokenTokenizer:
    encoding = need("tiktoken").Encoding(
        name, pat_str=pattern, mergeable_ranks=dict(ranks), special_tokens=dict(special)
    )
    return _wrap(encoding)


def _wrap(encoding: Any) -> TiktokenTokenizer:
    ranks = sorted(encoding._mergeable_ranks.items(), key=lambda item: item[1])
    lines = [base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks]
    return TiktokenTokenizer(encoding, b"".join(lines))


def _known() -> dict[str, tuple[str, dict[str, int]]]:
    """Return pattern and special tokens of the library's encodings that a local file can be of."""
    from headrace.text.tiktoken_patterns import CL100K, CL100K_SPECIAL, GPT2, O200K, O200K_SPECIAL

    end = {_END: 50256}
    return {
        "gpt2": (GPT2, end),
        "r50k_base": (GPT2, end),
        "p50k_base": (GPT2, end),
        "cl100k_base": (CL100K, CL100K_SPECIAL),
        "o200k_base": (O200K, O200K_SPECIAL),
    }


def decoder_of(path: Path, special_tokens: Mapping[str, int]) -> Callable[[Sequence[int]], str]:
    """Return what turns ids into text, from a file of ranks of any name: no pattern is needed for that.

    Args:
        path: What a store keeps as the tokenizer's file.
        special_tokens: Special tokens by their text.

    Raises:
        TextError: The content is no list of ranks.
        OSError: The file cannot be read.
    """
    parts = {rank: token for token, rank in _ranks(path)}
    parts.update((id_, text.encode()) for text, id_ in special_tokens.items())

    def decode(ids: Sequence[int]) -> str:
        return b"".join(parts[id_] for id_ in ids).decode(errors="replace")

    return decode


def _ranks(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield the tokens and ranks of a file of ``base64 rank`` lines."""
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            token, rank = line.split()
            yield base64.b64decode(token, validate=True), int(rank)
        except (ValueError, binascii.Error):
            raise TextError(
                f"{path}:{number}: found {line[:40]!r}, expected a base64 token and a rank."
            ) from None


def _checked(
    found: Iterable[tuple[bytes, int]], special_tokens: Mapping[str, int], where: Path
) -> dict[bytes, int]:
    """Return ranks that the library can work with: it fails deep inside on others.

    Raises:
        TextError: A byte has none, a token or a rank stands twice, or one is no id.
    """
    pairs = list(found)
    ranks = dict(pairs)
    missing = [byte for byte in range(_BYTES) if bytes([byte]) not in ranks]
    if missing:
        raise TextError(f"{where}: byte 0x{missing[0]:02x} has no rank; every byte is a token of its own.")
    wrong = next((rank for _, rank in pairs if not 0 <= rank < _LARGEST), None)
    if wrong is not None:
        raise TextError(f"{where}: rank {wrong} is no id; expected integers in [0, {_LARGEST}).")
    counts = Counter([*(rank for _, rank in pairs), *special_tokens.values()])
    twice: list[Any] = [token for token, count in Counter(token for token, _ in pairs).items() if count > 1]
    twice += [rank for rank, count in counts.items() if count > 1]
    if twice:
        raise TextError(f"{where}: {twice[0]!r} stands twice; each token has a rank of its own.")
    return ranks


def _gpt2_ranks(folder: Path) -> dict[bytes, int]:
    """Return GPT-2's ranks: its printable stand-ins for bytes undone, its order of merges kept."""
    try:
        vocabulary = json.loads((folder / "vocab.json").read_bytes())
        merges = (folder / "merges.txt").read_text(encoding="utf-8").splitlines()[1:]
        ranks = {_undone(token): operator.index(rank) for token, rank in vocabulary.items() if token != _END}
        merged = [_undone(merge.replace(" ", "")) for merge in merges if merge]
    except OSError as error:
        raise TextError(f"{error.filename}: {error.strerror}; GPT-2 is vocab.json and merges.txt.") from None
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
        raise TextError(
            f"{folder}: vocab.json and merges.txt are not those of a GPT-2 tokenizer "
            f"({type(error).__name__}: {error})."
        ) from None
    if [ranks.get(token) for token in merged] != list(range(_BYTES, _BYTES + len(merged))):
        raise TextError(f"{folder}: merges.txt and vocab.json do not belong together.")
    return ranks


def _undone(token: str) -> bytes:
    """Return the bytes for which GPT-2's printable characters stand."""
    byte_of = _printable_bytes()
    return bytes(byte_of[character] for character in token)


@cache
def _printable_bytes() -> dict[str, int]:
    """Return GPT-2's character for each byte, inverted: printable ones stand for themselves."""
    printable = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    ]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}
