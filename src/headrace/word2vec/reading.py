"""Text with one sentence a line, words between white space: Arrow lists, or a corpus and its vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.arrays import large_strings, list_borders
from headrace.errors import SourceError
from headrace.fit.rules import Rules
from headrace.fit.vocabulary import Vocabulary
from headrace.kernels.skipgram import count_tokens
from headrace.parse.interner import Interner
from headrace.sources.encodings import Transcoder, is_utf8, utf8_mark_length
from headrace.sources.files import SourceFile, find_files
from headrace.sources.streams import CutOff, decompressed
from headrace.word2vec.corpus import Corpus, id_dtype
from headrace.word2vec.spool import Spool

Files = str | Path | Iterable[str | Path]

OWN_UNKNOWN = "<unk>"
"""How text files write UNKNOWN themselves."""

_NEWLINE = ord("\n")
_LARGEST_SPACE = ord(" ")
_BLOCK_BYTES = 1 << 17
_MAPPED_IDS = 1 << 18


def read_sentences(files: Files, encoding: str = "utf-8") -> pa.LargeListArray:
    """Read texts of one sentence a line; words stand between blanks, tabs or other ASCII white space.

    Args:
        files: Paths, globs or URLs; plain, gzip, zstd, bzip2 or xz.
        encoding: Of the texts, such as ``"latin-1"``.

    Returns:
        One list of words (large_string) for each line; an empty line is an empty list.

    Raises:
        SourceError: A file is missing, damaged, or not in that encoding.
    """
    empty = pa.array([], pa.large_list(pa.large_string()))
    return pa.concat_arrays([empty, *sentence_blocks(files, encoding)])


def read_corpus(
    files: Files,
    min_count: int = 5,
    max_size: int | None = None,
    *,
    encoding: str = "utf-8",
    scratch: Path | str | None = None,
) -> tuple[Corpus, Vocabulary]:
    """Read texts of one sentence a line into word ids, and fit the vocabulary, in one pass.

    A literal ``<unk>`` counts as UNKNOWN, and is no word.

    Args:
        files: Paths, globs or URLs; plain, gzip, zstd, bzip2 or xz.
        min_count: Words counted fewer times become UNKNOWN.
        max_size: At most so many words, the most frequent ones; ``None``: no limit.
        encoding: Of the texts, such as ``"latin-1"``.
        scratch: Folder for unnamed files that hold the ids, 4 bytes a token, and the borders of sentences,
            8 bytes each; ``None``: memory.

    Returns:
        The corpus, and a vocabulary with PAD 0 and UNKNOWN 1.

    Raises:
        CorpusError: The scratch folder has no room, or cannot be written.
        SourceError: A file is missing, damaged, or not in that encoding.
    """
    rules = Rules(min_count=min_count, max_size=max_size)
    rules.check()
    interner = Interner()
    codes, borders = _coded(sentence_blocks(files, encoding), interner, scratch)
    counts = _counts(codes, len(interner))
    vocabulary = _ranked(interner.values(), counts, rules)
    _replace(codes, vocabulary.encode(interner.values()).astype(np.uint32))
    ids = codes if scratch is not None else codes.astype(id_dtype(len(vocabulary)), copy=False)
    return Corpus.from_arrays(ids, borders), vocabulary


def sentence_blocks(
    files: Files, encoding: str = "utf-8", block_bytes: int = _BLOCK_BYTES
) -> Iterator[pa.LargeListArray]:
    """Yield the sentences of texts, about ``block_bytes`` of text at a time; see ``read_sentences``."""
    for file in find_files(files):
        for number, block in enumerate(_whole_lines(_pieces(file, encoding), block_bytes)):
            sentences = split_sentences(block)
            try:
                sentences.validate(full=True)
            except pa.ArrowInvalid:
                raise SourceError(
                    f"{file.name}: block {number} of {block_bytes} bytes is not valid {encoding}. "
                    "Give the text's encoding, encoding='latin-1' for instance."
                ) from None
            yield sentences


def split_sentences(content: bytes) -> pa.LargeListArray:
    """Split UTF-8 bytes at newlines into sentences, and at ASCII white space into words."""
    letters = np.frombuffer(content, np.uint8)
    inside = letters > _LARGEST_SPACE
    edges = np.flatnonzero(np.diff(inside, prepend=False, append=False))
    begins, ends = edges[::2], edges[1::2]
    words = large_strings(letters[inside], np.concatenate([[0], np.cumsum(ends - begins)]))
    return pa.LargeListArray.from_arrays(pa.array(_sentence_offsets(letters, begins)), words)


def _sentence_offsets(letters: NDArray[np.uint8], begins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64 [N + 1], the words before each line; what follows the last newline is a line too."""
    newlines = np.flatnonzero(letters == _NEWLINE)
    unfinished = len(letters) > 0 and letters[-1] != _NEWLINE
    ends = np.append(newlines, len(letters)) if unfinished else newlines
    return np.concatenate([[0], np.searchsorted(begins, ends)])


def _pieces(file: SourceFile, encoding: str) -> Iterator[bytes]:
    """Yield a file's text as UTF-8, without a byte-order mark."""
    transcoder = None
    first = True
    try:
        for piece in decompressed(file):
            if first and is_utf8(encoding):
                piece = piece[utf8_mark_length(piece) :]
            elif first:
                transcoder = Transcoder(encoding, piece)
                piece = piece[transcoder.mark_length :]
            first = False
            yield piece if transcoder is None else transcoder.decode(piece, final=False)
    except CutOff as error:
        raise SourceError(f"{file.name}: {error}. Fetch the file again.") from None
    if transcoder is not None:
        yield transcoder.decode(b"", final=True)


def _whole_lines(pieces: Iterable[bytes], block_bytes: int) -> Iterator[bytes]:
    """Join pieces into blocks of whole lines, each of about ``block_bytes``."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end and size + len(piece) >= block_bytes:
            yield b"".join([*held, piece[:end]])
            held, size, piece = [], 0, piece[end:]
        held.append(piece)
        size += len(piece)
    if size:
        yield b"".join(held)


def _coded(
    blocks: Iterable[pa.LargeListArray], interner: Interner, scratch: Path | str | None
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return a code for each word, uint32 [T], and where sentences begin and end, int64 [N + 1].

    A literal ``<unk>`` has code 0, whether the texts write it or not.
    """
    interner.intern(pa.array([OWN_UNKNOWN], pa.large_string()))
    with Spool(np.uint32, scratch) as codes, Spool(np.int64, scratch) as borders:
        borders.append(np.zeros(1, np.int64))
        words_before = 0
        for block in blocks:
            offsets, words = list_borders(block)
            borders.append(offsets[1:] - offsets[0] + words_before)
            codes.append(interner.intern(words))
            words_before += len(words)
        return codes.array(), borders.array()


def _counts(codes: NDArray[np.uint32], size: int) -> NDArray[np.int64]:
    counts = np.zeros(size, np.int64)
    count_tokens(codes, counts)
    return counts


def _replace(codes: NDArray[np.uint32], ids: NDArray[np.uint32]) -> None:
    """Turn codes into ids in place."""
    for begin in range(0, len(codes), _MAPPED_IDS):
        codes[begin : begin + _MAPPED_IDS] = ids[codes[begin : begin + _MAPPED_IDS]]


def _ranked(words: pa.Array, counts: NDArray[np.int64], rules: Rules) -> Vocabulary:
    """Rank counted words; the first, a literal ``<unk>``, is counted as UNKNOWN."""
    return Vocabulary.from_counts(words[1:], counts[1:], rules, {rules.unknown_id: int(counts[0])})
