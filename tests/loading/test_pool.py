"""The pool gives memory again only when nothing else refers to it."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from headrace.loading.pool import Pool

INT64 = np.dtype(np.int64)


def allocate(pool: Pool, shape: tuple[int, ...]) -> np.ndarray:
    (array,), (found,) = pool.allocate([shape], INT64)
    assert found == address(array)
    return array


def address(array) -> int:
    return array.__array_interface__["data"][0]


def views(array):
    return {
        "itself": lambda: array,
        "slice": lambda: array[3:],
        "element view": lambda: array.reshape(-1)[5:6],
        "other dtype": lambda: array.view(np.uint8),
        "memoryview": lambda: memoryview(array),
        "transposed": lambda: array.T,
    }


@pytest.mark.parametrize(
    "kind", ["itself", "slice", "element view", "other dtype", "memoryview", "transposed"]
)
def test_any_view_keeps_it(kind: str) -> None:
    pool = Pool()
    array = allocate(pool, (1000, 3))
    first = address(array)
    kept = views(array)[kind]()
    del array
    assert address(allocate(pool, (1000, 3))) != first
    del kept
    gc.collect()
    again = [allocate(pool, (1000, 3)) for _ in range(2)]
    assert first in {address(each) for each in again}


def test_torch_tensors_keep_it() -> None:
    torch = pytest.importorskip("torch")
    pool = Pool()
    array = allocate(pool, (1000,))
    first = address(array)
    tensor = torch.from_numpy(array)[10:20]
    del array
    assert address(allocate(pool, (1000,))) != first
    del tensor
    assert first in {address(each) for each in [allocate(pool, (1000,)) for _ in range(2)]}


def test_dlpack_consumers_keep_it() -> None:
    pool = Pool()
    array = allocate(pool, (1000,))
    first = address(array)
    other = np.from_dlpack(array)
    del array
    assert address(allocate(pool, (1000,))) != first
    assert address(other) == first


def test_arrays_start_at_a_cache_line_and_are_writable() -> None:
    pool = Pool()
    for size in (1, 511, 512, 5000):
        array = allocate(pool, (size,))
        array[:] = 7
        assert array.shape == (size,)
        assert array.flags.c_contiguous
    assert address(allocate(pool, (5000,))) % 64 == 0


def test_a_consumer_that_keeps_everything_owns_it() -> None:
    pool = Pool(keep=4)
    kept = [allocate(pool, (1000,)) for _ in range(20)]
    assert len({address(array) for array in kept}) == 20
    assert sum(len(blocks._given) for blocks in pool._blocks.values()) == 4


def test_arrays_of_many_sizes_share_little_memory() -> None:
    """Jagged batches are each of another size: what one needed is given to others that need a like amount."""
    pool = Pool()
    sizes = 131_072 + np.arange(400) * 7919 % 65_536
    addresses = {address(allocate(pool, (int(size),))) for size in sizes}
    assert len(addresses) <= 2 * 5  # from 1 MiB to 1.5 in eighths: five sizes, and one more of each
    for size in (1, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1, 1_234_567):
        array = allocate(pool, (size,))
        array[:] = 1
        assert array.size == size


def test_empty_arrays() -> None:
    assert allocate(Pool(), (0, 5)).shape == (0, 5)
