from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "word2vec.md"


def test_the_page_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADRACE_DATA", raising=False)
    folder = tmp_path / "data" / "ptb"
    folder.mkdir(parents=True)
    words = [f"word{rank}" for rank in range(40)]
    lines = [" ".join(words[(row * 3 + k) % 40] for k in range(9)) for row in range(100)]
    (folder / "ptb.train.txt").write_text("\n".join(lines))
    blocks = re.findall(r"```py(?:thon)?\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 7
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
