"""Cleaning: HTML out, Unicode repaired, whitespace normalised."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.text import clean

pytest.importorskip("ftfy")
pytest.importorskip("selectolax")


@pytest.mark.parametrize(
    ("raw", "right"),
    [
        ("<p>Tom &amp; Jerry<br>run</p><script>x()</script>", "Tom & Jerry\nrun"),
        ("<style>p{}</style><!-- note -->shown<noscript>no</noscript>", "shown"),
        ("<b>one</b> <i>wo</i>rd", "one word"),
        ("<ul><li>a<li>b</ul>c", "a\nb\n\nc"),
        ("<table><tr><td>1<td>2<tr><td>3</table>", "1 2\n3"),
        ("<h1>T</h1><p>a</p>  <p>b", "T\n\na\n\nb"),
        ("<pre>if x:\n  y</pre>", "if x:\ny"),
        ("x<br><br>y", "x\n\ny"),
        ("<p>&lt;b&gt; &amp;amp;</p>", "<b> &amp;"),
        ("a < b and c > d, x<y", "a < b and c > d, x<y"),
        ("schÃ¶n", "schön"),
        ("e\u0301", "é"),
        ("“quoted” ．ＡＢ", "“quoted” ．ＡＢ"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\u00a0 b\t c \n\n\n\n d\u0000", "a b c\n\nd"),
        ("\ufefftext", "text"),
        ("", ""),
        ("<div>" * 5000 + "deep", "deep"),
    ],
)
def test_by_hand(raw: str, right: str) -> None:
    assert clean(raw) == right


@given(st.text())
@settings(max_examples=150, deadline=None)
def test_whitespace_is_normal_afterwards(raw: str) -> None:
    text = clean(raw)
    assert text == text.strip()
    for wrong in ("  ", "\t", "\r", "\n\n\n", " \n", "\n "):
        assert wrong not in text


@given(st.text(alphabet="abc é。\n.,'", max_size=40))
@settings(max_examples=100, deadline=None)
def test_plain_text_keeps_its_words(raw: str) -> None:
    assert clean(raw).split() == raw.split()


def test_real_pages_lose_their_markup_and_keep_their_text(shared_data: Path) -> None:
    found = {
        page.name: clean(page.read_text(encoding="utf-8", errors="replace"))
        for page in (shared_data / "html" / "pages").glob("*.html")
    }
    assert len(found) == 5
    for text in found.values():
        assert "<div" not in text
        assert "function(" not in text
        assert len(text) > 1000
    page = found["en.wikipedia.org.tsne.html"]
    assert "T-distributed Stochastic Neighbor Embedding (t-SNE) is a" in page
