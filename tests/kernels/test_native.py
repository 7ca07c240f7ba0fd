"""Machine code that is kept on disk: the same results, and never a crash, whatever lies there."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.kernels.compile import Kernel, brief_kernel, inline, kernel
from headrace.kernels.native import files, link
from headrace.kernels.native.fingerprint import fingerprint
from headrace.kernels.native.signature import NUMBERS

FACTOR = 3


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of the test's own."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    files._folders.cache_clear()
    yield tmp_path
    files._folders.cache_clear()


@inline
def scaled(x):  # type: ignore[no-untyped-def]
    return x * FACTOR


def total(values, scale):  # type: ignore[no-untyped-def]
    out = values[0] * 0
    for value in values:
        out += value
    return scaled(out) * scale


def new(function: Any) -> Any:
    """A kernel that has nothing in memory, as in a new process."""
    return kernel(function)


def kept(folder: Path, name: str) -> Path:
    (path,) = folder.glob(f"*.{name}-*.native")
    return path


@kernel
def identity(x):  # type: ignore[no-untyped-def]
    return x


@kernel
def negated(x):  # type: ignore[no-untyped-def]
    return not x


@kernel
def copied(values):  # type: ignore[no-untyped-def]
    out = np.empty(values.shape, values.dtype)
    for place in np.ndindex(values.shape):
        out[place] = values[place]
    return out


@kernel
def several(n):  # type: ignore[no-untyped-def]
    whole = np.arange(n)
    return whole, whole[1:], (n, n / 2, n > 2), whole


@kernel
def nothing(values):  # type: ignore[no-untyped-def]
    values[:] = 1


@kernel
def enormous(n):  # type: ignore[no-untyped-def]
    return np.empty(n, np.int64).size + np.empty(n, np.int64).size


# Numbers and arrays, in and out


@settings(deadline=None)
@given(st.integers(-(2**63), 2**64 - 1))
def test_integers_come_back_as_they_are(value: int) -> None:
    assert identity(value) == value
    assert type(identity(value)) is int


@settings(deadline=None)
@given(st.floats(allow_nan=False) | st.booleans())
def test_floats_and_truths_come_back_as_they_are(value: float | bool) -> None:
    assert identity(value) == value
    assert type(identity(value)) is type(value)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_numpy(name: str) -> None:
    value = np.dtype(name).type(1)
    assert identity(value) == 1
    assert negated(value) is False


@settings(max_examples=25, deadline=None)
@given(data=st.data(), name=st.sampled_from(["bool", "float32"]), ndim=st.integers(1, 2))
def test_arrays_of_any_layout(data: st.DataObject, name: str, ndim: int) -> None:
    shape = data.draw(st.tuples(*[st.integers(0, 4)] * ndim))
    values = np.arange(np.prod(shape) * 2, dtype=np.int64).astype(name).reshape(*shape[:-1], shape[-1] * 2)
    views = (values, values[..., ::2], values.T, values[..., ::-1], np.asfortranarray(values))
    view = views[data.draw(st.integers(0, len(views) - 1))]
    if data.draw(st.booleans()):
        view = view.view()
        view.flags.writeable = False
    found = copied(view)
    np.testing.assert_array_equal(found, view)
    assert found.dtype == view.dtype
    assert found.flags.c_contiguous
    assert found.flags.writeable


def test_an_array_that_is_not_aligned() -> None:
    data = np.zeros(17, np.uint8)
    values = data[1:].view(np.int64)
    values[:] = [5, -7]
    np.testing.assert_array_equal(copied(values), [5, -7])


def test_dtypes_that_are_equal_and_arrays_that_are_more(tmp_path: Path) -> None:
    other = np.arange(3).astype(np.dtype("longlong"))
    np.testing.assert_array_equal(copied(other), other)
    np.testing.assert_array_equal(copied(np.arange(3).astype(np.dtype("i8", metadata={"a": 1}))), [0, 1, 2])
    for name in ("longlong", "ulonglong", "long", "byte", "short"):
        assert identity(np.dtype(name).type(3)) == 3
    mapped = np.memmap(tmp_path / "mapped", np.int64, "w+", shape=3)
    mapped[:] = [3, 1, 2]
    np.testing.assert_array_equal(copied(mapped), [3, 1, 2])


def test_tuples_and_arrays_that_share_memory() -> None:
    whole, tail, (n, half, large), again = several(5)
    np.testing.assert_array_equal(tail, [1, 2, 3, 4])
    assert (n, half, large) == (5, 2.5, True)
    assert (type(n), type(half), type(large)) == (int, float, bool)
    del whole
    again[4] = 9
    assert tail[3] == 9
    del again
    np.testing.assert_array_equal(tail, [1, 2, 3, 9])


@brief_kernel
def doubled(values, matrix, scale):  # type: ignore[no-untyped-def]
    out = np.empty(values.size + matrix.size, np.int64)
    for i in range(values.size):
        out[i] = values[i] * scale
    for i in range(matrix.size):
        out[values.size + i] = matrix.flat[i] * scale
    return out


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 100_000])
def test_brief_calls_with_and_without_the_lock(size: int) -> None:
    values, matrix = np.arange(size // 2), np.arange(size - size // 2).reshape(-1, 1)
    found: list[Any] = []

    def call() -> None:
        found.extend(doubled(values, matrix, 2) for _ in range(20))

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = np.concatenate([values, matrix[:, 0]]) * 2
    assert len(found) == 60
    assert all((each == expected).all() for each in found)


@brief_kernel
def filled(values, size):  # type: ignore[no-untyped-def]
    out = np.empty(size, np.int64)
    for i in range(min(size, values.size)):
        out[i] = values[i]
    return out


@pytest.mark.parametrize("size", [10, 5000])
def test_a_brief_call_without_memory_leaves_the_lock_as_it_was(size: int) -> None:
    values = np.arange(size)
    found: list[Any] = []

    def call() -> None:
        for _ in range(20):
            with pytest.raises(MemoryError, match="filled"):
                filled(values, 1 << 58)
            found.append(filled(values, size))

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 60
    assert all((each == values).all() for each in found)


def test_nothing_is_none() -> None:
    values = np.zeros(3)
    assert nothing(values) is None
    assert values.tolist() == [1, 1, 1]


def test_memory_of_results_goes_with_them() -> None:
    """64 MiB a call: without that, this would need 64 GiB."""
    values = np.ones(8 << 20)
    for _ in range(1000):
        assert copied(values[: 8 << 10]).size == 8 << 10
    for _ in range(20):
        assert copied(values).size == 8 << 20


# What a kernel refuses


@pytest.mark.parametrize("argument", ["text", None, [1], 1j, np.array(["a"]), np.zeros(2, ">i8")])
def test_what_is_neither_number_nor_array(argument: object) -> None:
    with pytest.raises(TypeError, match="kernels take numbers, and arrays"):
        identity(argument)


def test_a_wrong_number_of_arguments() -> None:
    with pytest.raises(TypeError, match="argument"):
        identity(1, 2)
    with pytest.raises(TypeError, match="argument"):
        identity()


def test_an_array_that_is_read_only_is_not_written() -> None:
    values = np.zeros(3)
    nothing(values)
    values.flags.writeable = False
    with pytest.raises(Exception, match="readonly"):
        nothing(values)


def test_no_memory_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match="enormous"):
        enormous(1 << 58)


# Code on disk


def test_kept_code_is_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert new(total)(np.arange(4), 2) == 36
    assert kept(folder, "total").exists()
    monkeypatch.setitem(sys.modules, "headrace.kernels.native.translate", None)  # an import of it fails
    assert new(total)(np.arange(4), 2) == 36
    with pytest.raises(ImportError):
        new(total)(np.arange(4.0), 2)


@pytest.mark.parametrize("damage", ["empty", "torn", "flipped", "zeros"])
def test_damaged_code_is_compiled_again(folder: Path, damage: str) -> None:
    assert new(total)(np.arange(4), 2) == 36
    path = kept(folder, "total")
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 4
    damaged = {"empty": b"", "torn": whole[:-100], "flipped": bytes(flipped), "zeros": bytes(len(whole))}
    path.write_bytes(damaged[damage])
    assert new(total)(np.arange(4), 2) == 36
    assert path.read_bytes()[:32] == whole[:32] or files.read_code(path.name, b"") is None
    assert len(path.read_bytes()) > len(whole) // 2


def test_another_constant_of_a_helper_is_other_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert new(total)(np.arange(4), 2) == 36
    before = fingerprint(new(total))
    monkeypatch.setitem(globals(), "FACTOR", 10)
    assert fingerprint(new(total)) != before
    monkeypatch.setitem(globals(), "scaled", inline(scaled.function))
    assert new(total)(np.arange(4), 2) == 120


def test_another_body_of_a_helper_is_other_code() -> None:
    names: dict[str, Any] = {"inline": inline, "__name__": "headrace.made_up"}
    source = "@inline\ndef helper(x):\n    return x + 1\ndef outer(x):\n    return helper(x)\n"
    exec(source, names)
    first = fingerprint(kernel(names["outer"]))
    exec(f"# moved\n{source}", names)
    assert fingerprint(kernel(names["outer"])) == first
    exec(source.replace("+ 1", "- 1"), names)
    assert fingerprint(kernel(names["outer"])) != first


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "below"))
    files._folders.cache_clear()
    try:
        assert new(total)(np.arange(4), 2) == 36
    finally:
        files._folders.cache_clear()


@pytest.mark.usefixtures("left_to_numba")
def test_code_that_cannot_be_linked_is_left_to_numba(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(code: bytes, name: str) -> Any:
        raise RuntimeError("a symbol is missing")

    monkeypatch.setattr(link, "callable_of", refuse)
    assert new(total)(np.arange(4), 2) == 36


@pytest.mark.usefixtures("left_to_numba")
def test_an_interpreter_with_other_objects_is_left_to_numba(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "HEAD_BYTES", 32)
    with pytest.raises(RuntimeError, match="cpython with objects of 16 bytes"):
        link.callable_of(b"", "total")
    assert new(total)(np.arange(4), 2) == 36


def test_threads_that_call_a_kernel_for_the_first_time(folder: Path) -> None:
    called: Kernel = new(total)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(called(np.arange(4), 2))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [36] * 4


PROCESS = """
import numpy as np
from headrace.kernels.permute import permute, round_keys
keys = round_keys(np.uint64(5))
print(sorted(permute(np.arange(9), 9, 4, keys).tolist()) == list(range(9)))
"""


def test_processes_that_compile_the_same_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", PROCESS]
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    assert [process.communicate()[0] for process in running] == ["True\n"] * 2
    assert not list(tmp_path.glob("*.tmp"))


def test_kept_code_needs_no_numba(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    program = f"{PROCESS}\nimport sys; print('numba' in sys.modules)"
    command = [sys.executable, "-c", program]
    runs = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert runs == [["True", "True"], ["True", "False"]]
