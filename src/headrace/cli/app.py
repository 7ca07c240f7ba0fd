"""The commands. What they need is imported when they run, so that ``headrace --help`` is fast."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headrace import disk
from headrace.cli.failures import AT_FAULT, existing, failures
from headrace.cli.options import AsJson, Memory, Out, Store, Threads
from headrace.cli.progress import bars
from headrace.cli.warned import warn, warned
from headrace.errors import TextError, did_you_mean

if TYPE_CHECKING:
    from headrace.dataset.splits import DatasetDict
    from headrace.text.rendering import RenderedRow

_GOES_ON = "What was parsed and encoded is kept in {}; the same command goes on from there."
_UNCHANGED = "Nothing was changed."
Pack = Literal["concat", "best_fit"]

app = typer.Typer(
    name="headrace",
    help="Raw files in, model-ready minibatches out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # what a terminal's encoding lacks is escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="headrace")


def _version(asked: bool) -> None:
    if asked:
        from headrace import __version__

        print(f"headrace {__version__}")
        raise typer.Exit


@app.callback()
def _headrace(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def build(
    spec: Annotated[Path, typer.Argument(help="The declaration, a TOML file.", show_default=False)],
    out: Out,
    memory: Memory = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Build a store from raw files, or find that it is up to date."""
    existing(spec, "spec file")
    with failures(_GOES_ON.format(out / ".build")):
        from headrace.building.build import build_store
        from headrace.report.build import build_lines, summarize
        from headrace.spec import Spec

        declared = Spec.load(spec)
        if not as_json:
            for line in declared.warnings:
                warn(line)
        started = time.perf_counter()
        with warned(quiet=as_json) as heard, bars(quiet=as_json) as progress:
            done = build_store(declared, out, memory=memory, threads=threads, progress=progress)
        summary = summarize(
            out,
            built=done.built,
            reasons=done.reasons,
            warnings=(*declared.warnings, *heard),
            seconds=time.perf_counter() - started,
        )
        _print(summary.to_dict() if as_json else build_lines(summary))


@app.command()
def encode(
    store: Store,
    files: Annotated[
        list[str], typer.Argument(help="Raw files of the store's format, globs, URLs.", show_default=False)
    ],
    out: Out,
    labels: Annotated[bool, typer.Option(help="Encode labels and weights whose columns are there.")] = True,
    memory: Memory = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Encode new raw files with the tables of a store.

    Vocabularies, statistics and joined tables are the store's: nothing is learned from the new files.
    """
    existing(store, "store")
    with failures(_GOES_ON.format(out / ".build")):
        from headrace import building
        from headrace.report.build import build_lines, summarize

        started = time.perf_counter()
        with warned(quiet=as_json) as heard, bars(quiet=as_json) as progress:
            building.encode(
                store, files, out, labels=labels, memory=memory, threads=threads, progress=progress
            )
        reason = f"new data was encoded with {store}"
        seconds = time.perf_counter() - started
        summary = summarize(out, built=True, reasons=(reason,), warnings=tuple(heard), seconds=seconds)
        _print(summary.to_dict() if as_json else build_lines(summary))


@app.command()
def verify(store: Store, as_json: AsJson = False) -> None:
    """Read every file of a store again, and name those that differ.

    Each file's size and checksum must be as the manifest says.
    """
    existing(store, "store")
    with failures(_UNCHANGED):
        from headrace.dataset.manifest import differing_files, read_manifest

        manifest = read_manifest(store)
        differing = differing_files(store, manifest)
        count = len(list(manifest.entries()))
        if as_json:
            _print({"store": str(store), "files": count, "ok": not differing, "differing": differing})
        elif not differing:
            _print([f"{store}: all {count} files are as the manifest says"])
        else:
            _print(differing)
            _print([f"{store}: {len(differing)} of {count} files differ. Restore them, or build again."])
    if differing:
        raise typer.Exit(AT_FAULT)


@app.command()
def show(
    store: Store,
    split: Annotated[
        str | None, typer.Option(help="Which split.", show_default="train, or the first")
    ] = None,
    rows: Annotated[
        int, typer.Option(min=1, help="How many rows, from the first on; of windows any, spread over all.")
    ] = 3,
    row: Annotated[
        int | None, typer.Option(min=0, help="Only this row or window, from 0.", show_default=False)
    ] = None,
    window: Annotated[
        int | None, typer.Option(min=1, help="Tokens: length of a window.", show_default="128")
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens: from one window to the next.", show_default="the window"),
    ] = None,
    pack: Annotated[
        Pack | None, typer.Option(help="Tokens: how documents are packed.", show_default="not")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Tokens: write a page to this file instead.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show rows of a store: raw values beside ids.

    Ids and numbers are decoded with what the store learned. Long texts and lists are cut, but for --json.
    Of a store of tokens, sampled windows are shown, decoded.
    """
    existing(store, "store")
    with failures(_UNCHANGED):
        from headrace.dataset.splits import load_from_disk
        from headrace.report.row_text import row_lines
        from headrace.report.rows import shown_rows
        from headrace.text.rendering import WINDOW, render_store

        splits = load_from_disk(store)
        name = _split(splits, split)
        if splits.manifest.kind == "tokens":
            numbers: int | list[int] = rows if row is None else [row]
            how: dict[str, Any] = {"window": window or WINDOW, "stride": stride, "pack": pack or False}
            try:
                rendered = render_store(store, name, **how, numbers=numbers)
            except TextError as error:
                raise typer.BadParameter(str(error)) from None
            _show_windows(store, name, rendered, html=html, as_json=as_json)
            return
        _only_of_tokens(window=window, stride=stride, pack=pack, html=html)
        data = splits[name]
        if row is not None and row >= len(data):
            raise typer.BadParameter(f"--row {row}: {name} has rows 0 to {len(data) - 1}.")
        shown = list(shown_rows(data, [row] if row is not None else range(min(rows, len(data)))))
        if as_json:
            _print({"store": str(store), "split": name, "rows": [one.to_dict() for one in shown]})
        else:
            _print(line for one in shown for line in (*row_lines(one), ""))


def _only_of_tokens(**options: object) -> None:
    """Refuse options that say how windows are cut, where there are none."""
    given = next((name for name, value in options.items() if value is not None), None)
    if given is not None:
        raise typer.BadParameter(f"--{given} is for stores of tokens; this one holds rows.")


def _show_windows(
    store: Path, split: str, rendered: list[RenderedRow], *, html: Path | None, as_json: bool
) -> None:
    """Show windows of a token store, with their cuts, borders, masks and padding."""
    from rich.console import Console

    from headrace.text.rendering import to_html, to_terminal

    if html is not None:
        disk.write_bytes(html, to_html(rendered, title=f"{store}, {split}").encode())
    if as_json:
        _print({"store": str(store), "split": split, "windows": [asdict(one) for one in rendered]})
    elif html is not None:
        _print([f"{html}: {len(rendered)} windows"])
    else:
        Console().print(to_terminal(rendered))


def _split(splits: DatasetDict, name: str | None) -> str:
    """Return the split that was asked for, else train, else the first."""
    if name is None:
        return "train" if "train" in splits else next(iter(splits))
    if name not in splits:
        there = ", ".join(splits)
        raise typer.BadParameter(f"--split {name}: there are {there}.{did_you_mean(name, splits)}")
    return name


def _print(output: dict[str, Any] | Iterable[str]) -> None:
    """Print one JSON object, or lines."""
    if isinstance(output, dict):
        print(_json(output))
        return
    for line in output:
        print(line)


def _json(output: dict[str, Any]) -> str:
    """Return an object as JSON, in ASCII where standard output cannot hold its characters."""
    text = json.dumps(output, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(output, indent=2)
    return text
