"""Raw text to text worth training on: HTML out, Unicode repaired, whitespace normalised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from headrace.errors import TextError
from headrace.text.extras import need

_DROPPED_TAGS = "head script style template noscript iframe object embed applet svg math canvas audio video"
_BLOCK_TAGS = """
address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption
figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol optgroup
option p pre search section select summary table tbody tfoot thead tr ul
"""
_INLINE_TAGS = """
a abbr acronym b base bdi bdo big br button cite code col colgroup data datalist del dfn em font i img input
ins kbd label link map area mark meta meter nobr output param picture progress q rp rt ruby s samp small
source span strike strong sub sup td textarea th time title track tt u var wbr
"""
_DROPPED = frozenset(_DROPPED_TAGS.split())
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_PARAGRAPH_TAGS = "blockquote dl h1 h2 h3 h4 h5 h6 ol p pre table ul"
_PARAGRAPHS = frozenset(_PARAGRAPH_TAGS.split())
_CELLS = frozenset(("td", "th"))
_AS_WRITTEN = frozenset(("pre", "textarea"))
_ALL_TAGS = "|".join(sorted({*_DROPPED, *_BLOCKS, *_INLINE_TAGS.split()}))
_MARKUP = re.compile(rf"<(?:!doctype\b|!--|/?(?:{_ALL_TAGS})(?=[\s/>])[^<>]*>)", re.IGNORECASE)
_SPACES = re.compile(r"[^\S\n]+")
_AROUND_NEWLINE = re.compile(r" ?\n ?")
_BLANK_LINES = re.compile(r"\n{3,}")
_ANY_SPACE = re.compile(r"\s+")


def clean(text: str) -> str:
    r"""Return ``text`` without HTML, with repaired Unicode and normalised whitespace.

    HTML is parsed by a browser's rules when the text has a tag, a comment or a
    doctype of HTML in it; ``x<y`` alone is no tag. Scripts, styles and what a reader
    never sees go, blocks begin a new line, paragraphs stand apart. Unicode: text that was
    decoded wrongly is repaired (``schÃ¶n`` to ``schön``), control characters go, NFC. Quotation
    marks and full-width letters stay as they are. Whitespace: one space between
    words, ``\n`` alone ends a line, at most one blank line.

    >>> clean("<p>Tom &amp; Jerry<br>run</p><script>x()</script>")
    'Tom & Jerry\nrun'

    Args:
        text: Any text.

    Raises:
        TextError: It is no text, or the extra ``text`` is not installed.
    """
    if not isinstance(text, str):
        raise TextError(f"clean: found {type(text).__name__}, expected a text.")
    is_html = _MARKUP.search(text) is not None
    visible = _visible_text(text) if is_html else text
    return _normalize_space(_repair(visible, has_entities=not is_html))


def _repair(text: str, has_entities: bool) -> str:
    """Return text with wrong decodings undone; entities are decoded once, never twice."""
    ftfy: Any = need("ftfy")
    fixed: str = ftfy.fix_text(
        text,
        unescape_html="auto" if has_entities else False,
        uncurl_quotes=False,
        fix_latin_ligatures=False,
        fix_character_width=False,
        normalization="NFC",
    )
    return fixed


def _normalize_space(text: str) -> str:
    one_space = _AROUND_NEWLINE.sub("\n", _SPACES.sub(" ", text))
    return _BLANK_LINES.sub("\n\n", one_space).strip()


def _visible_text(html: str) -> str:
    """Return what a reader sees of a page, blocks on lines of their own."""
    parser: Any = need("selectolax.lexbor")
    root = parser.LexborHTMLParser(html).root
    return "" if root is None else _joined(_pieces(root))


class _Break(str):
    """What stands between two pieces of text; of neighbouring ones the strongest counts."""

    __slots__ = ()


_NOTHING, _SPACE, _LINE, _PARAGRAPH = _Break(""), _Break(" "), _Break("\n"), _Break("\n\n")
_RANK = {_NOTHING: 0, _SPACE: 1, _LINE: 2, _PARAGRAPH: 3}


def _joined(pieces: Iterator[str]) -> str:
    """Join pieces of text, each run of breaks as its strongest."""
    parts: list[str] = []
    pending = _NOTHING
    for piece in pieces:
        if isinstance(piece, _Break):
            pending = max(pending, piece, key=_RANK.__getitem__)
            continue
        parts += [pending, piece]
        pending = _NOTHING
    return "".join(parts)


def _pieces(root: Any) -> Iterator[str]:
    """Yield text and breaks in the order of the page, without recursion: pages nest without limit."""
    stack: list[tuple[Any, bool]] = [(root, False)]
    verbatim = 0
    while stack:
        node, leaving = stack.pop()
        tag = node.tag
        if tag == "-text":
            yield from _text_pieces(node.text_content or "", verbatim > 0)
        elif leaving:
            verbatim -= tag in _AS_WRITTEN
            yield _break(tag)
        elif tag not in _DROPPED and not tag.startswith(("-", "!", "_")):
            verbatim += tag in _AS_WRITTEN
            yield "\n" if tag == "br" else _break(tag)
            stack.append((node, True))
            stack += [(child, False) for child in reversed(_children(node))]


def _children(node: Any) -> list[Any]:
    children = []
    child = node.child
    while child is not None:
        children.append(child)
        child = child.next
    return children


def _break(tag: str) -> _Break:
    """Return what separates an element from what stands beside it."""
    if tag in _PARAGRAPHS:
        return _PARAGRAPH
    if tag in _BLOCKS:
        return _LINE
    return _SPACE if tag in _CELLS else _NOTHING


def _text_pieces(text: str, verbatim: bool) -> Iterator[str]:
    """Yield a text node; outside ``pre`` its whitespace is one space, which gives way to a line break."""
    if verbatim:
        yield text
        return
    body = _ANY_SPACE.sub(" ", text)
    if body.startswith(" "):
        yield _SPACE
    if body.strip(" "):
        yield body.strip(" ")
    if body.endswith(" "):
        yield _SPACE
