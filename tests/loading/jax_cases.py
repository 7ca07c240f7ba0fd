"""JAX output: run by test_jax.py in a process of its own."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import LoaderError
from headrace.loading import Loader, Rows, Scalar
from headrace.testing import Counting

jax = pytest.importorskip("jax")


def test_arrays_are_jax_arrays_with_the_same_values() -> None:
    batches = list(Loader(Counting(10), batch_size=4, output="jax", shuffle="global", last="pad"))
    expected = list(Loader(Counting(10), batch_size=4, shuffle="global", last="pad"))
    for batch, plain in zip(batches, expected, strict=True):
        assert isinstance(batch["index"], jax.Array)
        assert batch["index"].dtype == np.int32
        assert batch["valid"].dtype == bool
        np.testing.assert_array_equal(np.asarray(batch["index"]), plain["index"])


def large() -> Rows:
    return Rows([Scalar("user", [np.array([5, 2**31], np.uint32)])], [2], "x")


def test_ids_beyond_int32_never_wrap() -> None:
    with pytest.raises(LoaderError, match="user holds a value beyond int32"):
        list(Loader(large(), batch_size=2, output="jax"))


def test_64_bit_mode_keeps_int64() -> None:
    with jax.enable_x64(True):
        (batch,) = Loader(large(), batch_size=2, output="jax", threads=0)
    assert batch["user"].tolist() == [5, 2**31]


def test_batches_that_are_kept_stay_as_they_are() -> None:
    loader = Loader(Counting(50_000), batch_size=5000, output="jax")
    kept = [batch["index"] for batch in loader]
    for step, array in enumerate(kept):
        np.testing.assert_array_equal(np.asarray(array), np.arange(step * 5000, step * 5000 + 5000))


def test_recycled_memory_never_reaches_a_kept_batch() -> None:
    rows = Rows([Scalar("user", [np.arange(60_000, dtype=np.uint32)])], [60_000], "x", id_dtype="int32")
    for keep in (True, False):
        kept = []
        for step, batch in enumerate(Loader(rows, batch_size=4000, output="jax", threads=3)):
            kept.append((step, batch["user"]))
            np.testing.assert_array_equal(
                np.asarray(batch["user"]), np.arange(step * 4000, step * 4000 + 4000)
            )
            if not keep:
                kept.clear()
        for step, array in kept:
            np.testing.assert_array_equal(np.asarray(array), np.arange(step * 4000, step * 4000 + 4000))


def test_grouped_batches_and_devices() -> None:
    device = jax.devices()[0]
    (batch,) = Loader(Counting(4), batch_size=4, output="jax", group=True, device=device)
    assert batch["inputs"]["index"].devices() == {device}
    with pytest.raises(LoaderError, match="pin_memory="):
        Loader(Counting(4), batch_size=4, output="jax", pin_memory=True)


class Odd(Counting):
    def __init__(self, change) -> None:
        super().__init__(4)
        self.change = change

    def gather(self, indices, keys):
        return {"x": self.change(indices)}


@pytest.mark.parametrize("dtype", [str, object, "M8[s]", ">i8"])
def test_what_jax_has_no_arrays_of_is_named(dtype) -> None:
    with pytest.raises(LoaderError, match=r"step 0, .*x is .*, which JAX has no arrays of"):
        next(iter(Loader(Odd(lambda indices: indices.astype(dtype)), batch_size=2, output="jax")))


def test_unsigned_integers_never_wrap() -> None:
    (batch,) = Loader(Odd(lambda indices: indices.astype(np.uint64) + 2**31), batch_size=4, output="jax")
    assert batch["x"].dtype == np.uint32
    assert batch["x"].tolist() == [2**31 + place for place in range(4)]
    with pytest.raises(LoaderError, match="x holds a value beyond uint32"):
        next(iter(Loader(Odd(lambda i: i.astype(np.uint64) + 2**32), batch_size=4, output="jax")))
