"""Where sentences and words start, in Chinese, English and mixed text."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

_CJK = "\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
_CLOSERS = "\"'”’」』）》】〉〕］｝)\\]}»"
_OPENERS = "\"'“‘「『（《【〈〔［｛(\\[{«"
_WIDE_END = f"[。！？｡]+[。！？!?｡…]*[{_CLOSERS}]*"
_WIDE_STOP = f"．(?![0-9０-９])[．…]*[{_CLOSERS}]*"
_NARROW_END = f"(?:[.!?]+|…+)[{_CLOSERS}]*"
_NEW_PARAGRAPH = r"\n[^\S\n]*(?:\n\s*)+"
_WIDE_LINE = f"(?<=[{_CJK}”’])\\n"
_END = re.compile("|".join((_WIDE_END, _WIDE_STOP, _NARROW_END, _NEW_PARAGRAPH, _WIDE_LINE)))
_NEXT = re.compile(r"\s*")
_SPACE_OR_CJK = re.compile(f"[\\s{_CJK}]")
_IS_CJK = re.compile(f"[{_CJK}]")
_FIRST_LETTER = re.compile(f"[{_OPENERS}\\s_*]*(.?)", re.DOTALL)
_WORD_BEFORE = re.compile(r"([^\W\d_][\w.]*)\.$")
_ABBREVIATED = """
mr mrs ms dr prof st mt sr sra srta rev hon gen col capt lieut lt sgt cmdr maj gov sen rep pres messrs mme
mlle vs viz ibid cf eg ie e.g i.e nos vol vols p pp ch chap fig figs ed eds dept approx jan feb apr aug sept
oct nov dec
"""
_ABBREVIATIONS = frozenset(_ABBREVIATED.split())
"""Abbreviations that a sentence hardly ever ends with; ``etc.`` and ``a.m.`` often end one."""
_WORD = re.compile(f"[{_CJK}]|[^\\W{_CJK}]+(?:['’][^\\W{_CJK}]+)*|[^\\w\\s]+|_+")


def sentence_starts(text: str) -> NDArray[np.int64]:
    """Return where sentences begin.

    A sentence ends after ``。！？`` and a full-width full stop, after ``.!?`` before
    white space or a CJK character unless a lower-case letter follows or the full stop belongs to
    an abbreviation or an initial, after a blank line, and at the end of a line of CJK
    text. Closing quotation marks and brackets belong to the sentence that they close.

    >>> sentence_starts("Mr. Li said: 你好！她走了。 So did I.").tolist()
    [0, 16, 21]

    Args:
        text: A document.

    Returns:
        int64 [M], ascending character numbers, each of a character that is no white space; the
        first is that of the text.
    """
    first = _after_space(text, 0)
    starts = [first] if first < len(text) else []
    for match in _END.finditer(text):
        start = _after_space(text, match.end())
        if start < len(text) and start > starts[-1] and _is_end(text, match, start):
            starts.append(start)
    return np.array(starts, np.int64)


def word_starts(text: str) -> NDArray[np.int64]:
    """Return where words begin: runs of letters and digits, runs of other signs, single CJK characters.

    >>> word_starts("don't stop, 你好").tolist()
    [0, 6, 10, 12, 13]

    Args:
        text: A document.

    Returns:
        int64 [M], ascending character numbers.
    """
    return np.array([match.start() for match in _WORD.finditer(text)], np.int64)


def first_tokens(ends: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the token that holds each start: the first one that ends after it.

    Of the tokens that one character is cut into it is the first. Starts that no token
    reaches are left out, and two starts in one token are one.

    Args:
        ends: int64 [L], where each token ends in the text; never falling.
        starts: int64 [M], ascending places in the text.
    """
    tokens = np.unique(np.searchsorted(ends, starts, side="right"))
    return tokens[tokens < ends.size].astype(np.int64)


def _after_space(text: str, place: int) -> int:
    match = _NEXT.match(text, place)
    return match.end() if match else place


def _is_end(text: str, match: re.Match[str], start: int) -> bool:
    """Whether a sentence ends at a match, given where the next would start."""
    sign = match.group()[0]
    if sign in ".!?…" and not _stands_apart(text, match.end()):
        return False
    if sign not in ".!?":
        return True
    letter = _FIRST_LETTER.match(text, start)
    if letter is not None and letter.group(1).islower():
        return False
    stop = match.start() + 1
    return not (sign == "." and _is_abbreviation(text[max(0, stop - 24) : stop]))


def _stands_apart(text: str, end: int) -> bool:
    """Whether white space, CJK or the text's end follows a sign, or a closing mark of CJK ends it.

    Asked after the match and not in the pattern, which would try each place of a long run of signs.
    """
    return end == len(text) or bool(_SPACE_OR_CJK.match(text, end) or _IS_CJK.match(text, end - 1))


def _is_abbreviation(before: str) -> bool:
    """Whether the full stop that ends ``before`` belongs to an abbreviation or to an initial."""
    word = _WORD_BEFORE.search(before)
    if word is None:
        return False
    name = word.group(1)
    is_initial = len(name) == 1 and name.isupper() and name != "I"
    return is_initial or name.lower() in _ABBREVIATIONS
