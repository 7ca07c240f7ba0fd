"""The examples run, at tiny settings, and print what they promise."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

torch = pytest.importorskip("torch")

Run = Callable[..., str]


def write_text(folder: Path, sentences: int, words: int) -> Path:
    """Write sentences of 12 words, all of one of three topics, under the name of PTB's train split."""
    lines = [
        " ".join(f"{'abc'[row % 3]}{(row * 5 + place * (1 + row % 4)) % words}" for place in range(12))
        for row in range(sentences)
    ]
    path = folder / "ptb.train.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Run an example with some arguments, and return what it printed."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def printed(name: str, *arguments: str | Path) -> str:
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    yield printed
    torch.set_num_threads(threads)


@pytest.mark.parametrize("model", ["skip-gram", "cbow"])
def test_train_finds_the_words_of_a_topic(run: Run, tmp_path: Path, model: str) -> None:
    text = write_text(tmp_path, 180, words=12)
    settings = ["--model", model, "--subsample", "0.5", "--epochs", "8", "--dim", "12", "--batch-size", "16"]
    printed = run("word2vec_train.py", "--files", text, *settings, "--words", "a3", "b7")
    for word in ("a3", "b7"):
        (neighbours,) = re.findall(rf"^ +{word}: (.*)$", printed, re.MULTILINE)
        assert {neighbour[0] for neighbour in neighbours.split(", ")} == {word[0]}


def test_the_book_s_loop(run: Run, tmp_path: Path) -> None:
    write_text(tmp_path, 1500, words=100)
    printed = run("word2vec_book.py", "--root", tmp_path, "--epochs", "2", "--words", "a3")
    losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+)", printed)]
    assert losses[-1] < losses[0] < 0.7
    assert printed.count("cosine sim=") == 3


def test_against_gensim(run: Run, tmp_path: Path) -> None:
    text = write_text(tmp_path, 180, words=12)
    settings = ["--subsample", "0.5", "--epochs", "1", "--seeds", "2"]
    printed = run("word2vec_against_gensim.py", "--train", text, "--held-out", text, *settings)
    for name in ("headrace", "headrace, gensim's noise", "gensim"):
        line = rf"^{name}: mean 0\.\d+, above gensim by \S+ to \S+ \(95 %\)$"
        assert re.search(line, printed, re.MULTILINE)
