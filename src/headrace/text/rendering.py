"""Sampled windows made visible: cuts, overlaps, document borders, padding and labels, decoded to text."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from headrace.dataset.manifest import read_manifest
from headrace.errors import TextError
from headrace.kernels.windows_fill import IGNORED
from headrace.order.permutation import Permutation
from headrace.text import tokenizer_tiktoken
from headrace.text.given_arrays import whole_numbers
from headrace.text.settings import ROW_OUTPUTS, TOKEN_OUTPUTS, Pack, check_draw, check_integer
from headrace.text.splitting import TRAIN
from headrace.text.tokenizer import as_tokenizer
from headrace.text.tokens import Tokens
from headrace.text.windows import Windows

WINDOW = 128
"""Tokens in a window that is shown, where nothing else is asked for."""
_MOST_PLACES = 1 << 22
Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True)
class Look:
    """How a token stands in its row."""

    segment: int
    """Number of the document's part in the row; 0 is padding."""
    seen: bool
    """Whether an earlier window of the document holds it too."""
    live: bool
    """Whether it has a label."""
    hidden: bool
    """Whether a masked-language-model label differs from what the model sees."""


@dataclass(frozen=True)
class Piece:
    """Neighbouring tokens that look alike, as text."""

    text: str
    look: Look
    count: int
    """How many tokens."""


@dataclass(frozen=True)
class RenderedRow:
    """One window, ready to be shown."""

    title: str
    pieces: tuple[Piece, ...]


def render_windows(
    windows: Windows,
    numbers: Sequence[int] | int = 4,
    *,
    seed: int = 0,
    epoch: int = 0,
    decode: Decode | None = None,
) -> list[RenderedRow]:
    """Return windows as text with the marks that a person wants to see before a run.

    Args:
        windows: What is looked at.
        numbers: Which windows; or how many, drawn by the seed, in the order of the text.
        seed: The loader's seed, which decides random cuts and masked tokens.
        epoch: The epoch.
        decode: From ids to text. None: the tokenizer that the store keeps, else ids are shown.

    Raises:
        TextError: A window number is not there, or is none; ``decode`` failed.
    """
    check_draw(seed, epoch)
    space = windows.at(seed, epoch)
    names = (*TOKEN_OUTPUTS, *ROW_OUTPUTS)
    whole = replace(space, settings=replace(space.settings, outputs=names, mask_dtype="int64"))
    indices = _numbers(numbers, len(space), seed, epoch)
    width = space.cut.width(indices)
    if indices.size * width > _MOST_PLACES:
        raise TextError(
            f"{indices.size} windows of {width:,} tokens are more than a person reads; show fewer or shorter "
            f"ones, {_MOST_PLACES:,} tokens at most."
        )
    batch = whole.gather(indices, np.zeros(indices.size, np.uint64))
    seen = space.cut.runs(indices).seen
    text_of = _with_unknown(decoder_of(windows.tokens)) if decode is None else _checked(decode)
    widths = [space.cut.width(indices[row : row + 1]) for row in range(indices.size)]
    rows = [{name: array[row] for name, array in batch.items()} for row in range(indices.size)]
    is_masked = space.masking is not None
    return [
        _row(row, width, int(number), int(overlap), text_of, is_masked)
        for row, width, number, overlap in zip(rows, widths, indices, seen, strict=True)
    ]


def render_store(
    folder: str | Path,
    split: str | None = None,
    *,
    window: int = WINDOW,
    stride: int | None = None,
    pack: Pack = False,
    numbers: Sequence[int] | int = 3,
    seed: int = 0,
) -> list[RenderedRow]:
    """Return windows of a token store, decoded: what ``headrace show`` prints of one.

    Args:
        folder: What ``tokenize`` wrote.
        split: Which split; None: ``train``, else the only one.
        window: Tokens in a window.
        stride: Tokens from one start to the next; None: the window's length.
        pack: How documents are packed, with the store's end token where it has one.
        numbers: Which windows, or how many.
        seed: Draws which, when ``numbers`` says how many.

    Raises:
        StoreError: The folder is no store.
        TextError: It holds no tokens, or no such split or window.
    """
    splits = read_manifest(Path(folder)).splits
    name = TRAIN if split is None and TRAIN in splits else split
    tokens = Tokens.open(folder, name)
    eos: Literal[False] | None = False if tokens.special.eos is None else None
    return render_windows(Windows(tokens, window, stride, pack, eos=eos), numbers, seed=seed)


def decoder_of(tokens: Tokens) -> Decode:
    """Return what turns ids into text: the tokenizer that a store keeps, else the ids themselves."""
    kept = tokens.details.get("tokenizer", {})
    if kept.get("file") is None or tokens.folder is None:
        return _as_numbers
    path = tokens.folder / kept["file"]
    try:
        if kept["kind"] == "tiktoken":
            return tokenizer_tiktoken.decoder_of(path, kept["special_tokens"])
        return as_tokenizer(path).decode
    except (TextError, OSError):
        return _as_numbers


def _with_unknown(decode: Decode) -> Decode:
    """Return a decoder that shows ids beyond the tokenizer, an end token of one's own, as ``<id>``."""

    def shown(ids: Sequence[int]) -> str:
        whole = _decoded(decode, ids)
        if whole is not None:
            return whole
        runs = groupby(ids, key=lambda id_: _decoded(decode, [id_]) is not None)
        return "".join(
            decode(list(run)) if known else "".join(map("<{}>".format, run)) for known, run in runs
        )

    return shown


def _decoded(decode: Decode, ids: Sequence[int]) -> str | None:
    """Return the text of some ids; None where one of them is unknown."""
    try:
        return decode(ids)
    except Exception:  # noqa: BLE001 - each library has errors of its own
        return None


def _checked(decode: Decode) -> Decode:
    """Return a decoder of the user's own whose mistakes are named."""

    def shown(ids: Sequence[int]) -> str:
        try:
            text = decode(ids)
        except Exception as error:
            raise TextError(f"decode failed on {ids}: {type(error).__name__}: {error}") from error
        if not isinstance(text, str):
            raise TextError(f"decode gave {type(text).__name__} for {ids}, expected a text.")
        return text

    return shown


def _as_numbers(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids)) + " "


def _numbers(numbers: Sequence[int] | int, count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    if isinstance(numbers, Sequence | np.ndarray):
        return whole_numbers(numbers, "numbers", "windows, numbered from 0").reshape(-1)
    check_integer("numbers", numbers, 0)
    chosen = Permutation(count, seed, epoch, "shown windows")[: min(int(numbers), count)]
    return np.sort(chosen)


def _row(
    row: dict[str, Any], width: int, number: int, seen: int, text_of: Decode, is_masked: bool
) -> RenderedRow:
    """Return one row of a batch, which is wider than ``width`` where windows have several lengths."""
    ids, labels, segments = (row[name][:width] for name in ("input_ids", "labels", "segment_ids"))
    looks = [
        Look(
            segment=int(segments[column]),
            seen=column < seen,
            live=bool(labels[column] != IGNORED),
            hidden=is_masked and bool(labels[column] not in (IGNORED, ids[column])),
        )
        for column in range(ids.size)
    ]
    title = (
        f"window {number}: document {row['document']} from token {row['start']}, "
        f"{row['length']} of {width} tokens" + (f", {seen} of them in an earlier window too" if seen else "")
    )
    return RenderedRow(title, tuple(_pieces(ids, looks, text_of)))


def _pieces(ids: NDArray[np.int64], looks: Sequence[Look], text_of: Decode) -> list[Piece]:
    """Join neighbouring tokens that look alike, so that characters of several tokens are whole."""
    pieces = []
    for look, columns in groupby(range(ids.size), key=looks.__getitem__):
        own = list(columns)
        text = text_of(ids[own].tolist()) if look.segment else ""
        pieces.append(Piece(text, look, len(own)))
    return pieces


_VISIBLE = {code: chr(0x2400 + code) for code in range(32)} | {10: "⏎", 127: "␡"}
"""Control characters as pictures: text must not command the terminal."""
_VISIBLE_IN_PAGES = {code: picture for code, picture in _VISIBLE.items() if chr(code) not in "\n\t"}
"""As in the terminal; a page shows line ends and tabs as they are."""
_NONE = "no windows"
_COLORS = ("cyan", "green", "yellow", "magenta", "blue")
LEGEND = (
    "colour: document · dim: in an earlier window too · underlined: without a label · reverse: hidden · "
    "┃: another document begins"
)


def to_terminal(rows: Sequence[RenderedRow]) -> Text:
    """Return rows for ``rich``: one paragraph a window, line ends shown as ⏎."""
    if not rows:
        return Text(_NONE + "\n")
    text = Text().append(LEGEND + "\n", style="dim")
    for row in rows:
        text.append(f"\n{row.title}\n", style="bold")
        for before, piece in zip((None, *row.pieces), row.pieces, strict=False):
            text.append(_border(before, piece))
            text.append(_shown(piece), style=_style(piece.look))
        text.append("\n")
    return text


def _border(before: Piece | None, piece: Piece) -> str:
    """Return a mark where another document begins; padding is none."""
    begins = before is not None and piece.look.segment not in (0, before.look.segment)
    return " ┃ " if begins else ""


def _shown(piece: Piece) -> str:
    return piece.text.translate(_VISIBLE) if piece.look.segment else f"[{piece.count} padding]"


def _style(look: Look) -> str:
    if look.segment == 0:
        return "dim"
    marks = [_COLORS[(look.segment - 1) % len(_COLORS)]]
    marks += ["dim"] * look.seen + ["underline"] * (not look.live) + ["reverse"] * look.hidden
    return " ".join(marks)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.6 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
h2 {{ font-size: 1rem; margin: 1.5rem 0 .3rem }}
p.row {{ margin: 0; white-space: pre-wrap; overflow-wrap: anywhere }}
.s0 {{ background: #e7ebf0 }} .s1 {{ background: #dcefff }} .s2 {{ background: #e3f6dc }}
.s3 {{ background: #fff3cf }} .s4 {{ background: #f7e0f5 }} .s5 {{ background: #e4e1fb }}
.seen {{ opacity: .5 }} .dead {{ text-decoration: underline dotted #b00 }}
.hidden {{ outline: 1px solid #b00 }}
.border {{ border-left: 3px solid #333; margin-left: 2px; padding-left: 2px }}
</style></head><body>
<p><span class="s1">colour</span>: document; <span class="seen">pale</span>: in an earlier window too;
<span class="dead">dotted</span>: without a label; <span class="hidden">framed</span>: hidden from the model;
<span class="s0">grey</span>: padding; a bar: another document begins.</p>
{rows}
</body></html>
"""


def to_html(rows: Sequence[RenderedRow], title: str = "Windows") -> str:
    """Return rows as one self-contained page; all text is escaped."""
    shown = "\n".join(map(_html_row, rows)) or f"<p>{_NONE}</p>"
    return _PAGE.format(title=html.escape(title), rows=shown)


def _html_row(row: RenderedRow) -> str:
    pieces = [
        _html_piece(before, piece) for before, piece in zip((None, *row.pieces), row.pieces, strict=False)
    ]
    return f'<h2>{html.escape(row.title)}</h2>\n<p class="row">{"".join(pieces)}</p>'


def _html_piece(before: Piece | None, piece: Piece) -> str:
    look = piece.look
    names = [f"s{(look.segment - 1) % len(_COLORS) + 1 if look.segment else 0}"]
    names += ["seen"] * look.seen + ["dead"] * (not look.live and look.segment > 0)
    names += ["hidden"] * look.hidden + ["border"] * bool(_border(before, piece))
    text = piece.text.translate(_VISIBLE_IN_PAGES) if look.segment else _shown(piece)
    return f'<span class="{" ".join(names)}">{html.escape(text)}</span>'
