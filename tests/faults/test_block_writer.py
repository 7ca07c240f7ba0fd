"""Files are written in whole blocks, whatever the pieces are."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace import disk

PIECES = st.lists(st.binary(max_size=40), max_size=12)


class Recorder(io.FileIO):
    """A file that remembers the size of each write."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w")
        self.sizes: list[int] = []

    def write(self, content: Any) -> int:
        self.sizes.append(memoryview(content).nbytes)
        return super().write(content)


@pytest.mark.parametrize("wrap", [bytes, bytearray, lambda piece: memoryview(piece * 1).cast("B")])
@given(pieces=PIECES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_pieces_become_blocks(
    wrap: Callable[[bytes], Any], pieces: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "BLOCK_BYTES", 16)
    raw = Recorder(tmp_path / "file")
    with disk.BlockWriter(raw) as file:
        assert [file.write(wrap(piece)) for piece in pieces] == [len(piece) for piece in pieces]
    assert (tmp_path / "file").read_bytes() == b"".join(pieces)
    assert all(place % 16 == 0 for place in list(accumulate(raw.sizes))[:-1])


def test_a_large_piece_is_one_write(tmp_path: Path) -> None:
    raw = Recorder(tmp_path / "file")
    with disk.BlockWriter(raw) as file:
        file.write(b"header")
        file.write(bytes(5 * disk.BLOCK_BYTES))
    assert raw.sizes == [disk.BLOCK_BYTES, 4 * disk.BLOCK_BYTES, 6]


def test_a_piece_of_very_many_blocks_is_several_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "BLOCK_BYTES", 16)
    content = bytes(range(250)) * 5
    raw = Recorder(tmp_path / "file")
    with disk.BlockWriter(raw) as file:
        assert file.write(content) == 1250
    assert (tmp_path / "file").read_bytes() == content
    assert raw.sizes == [1024, 224, 2]


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 0), (2, 3), (1, 2, 3)])
def test_arrays_of_any_shape_are_written(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=np.int64), dtype=np.int32).reshape(shape)
    with disk.writing(tmp_path / "file") as file:
        assert file.write(array.data) == array.nbytes
    assert (tmp_path / "file").read_bytes() == array.tobytes()
