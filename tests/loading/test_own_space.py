"""A space of the user's own: what it gives is looked at before anything is made of it."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import LoaderError
from headrace.loading import Loader, Mixture, Rows, Scalar
from headrace.text import Tokens, Windows

VALUES = np.arange(10) * 10


class Mine:
    """Ten lines, as a newcomer writes them."""

    fingerprint, fill, roles = "mine", {}, {}

    def __init__(self, batch) -> None:
        self.batch = batch

    def __len__(self) -> int:
        return len(VALUES)

    def at(self, seed: int, epoch: int):
        return self

    def gather(self, indices, keys):
        return self.batch(indices, keys)


def good(indices, keys):
    return {"x": VALUES[indices]}


WRONG = [
    (lambda indices, keys: {"x": VALUES[indices][1:]}, r"'x' of shape \[3\] for 4 samples"),
    (lambda indices, keys: {"x": VALUES}, r"'x' of shape \[10\] for 4 samples"),
    (lambda indices, keys: {"x": VALUES[indices], "y": VALUES[:1]}, r"'y' of shape \[1\] for 4 samples"),
    (lambda indices, keys: {"x": np.array(3)}, r"'x' of shape \[\] for 4 samples"),
    (lambda indices, keys: {"x": np.int64(3)}, r"'x' as a numpy.int64; it must be a NumPy array"),
    (lambda indices, keys: {"x": VALUES[indices].tolist()}, "'x' as a builtins.list"),
    (lambda indices, keys: {"x": {"y": VALUES[indices]}}, "'x' as a builtins.dict"),
    (lambda indices, keys: {"x": np.ma.array(VALUES[indices])}, "'x' as a numpy.ma.*MaskedArray"),
    (lambda indices, keys: {1: VALUES[indices]}, "an array named 1; names are texts"),
    (lambda indices, keys: [VALUES[indices]], "a list; it must return a dict of arrays"),
]


@pytest.mark.parametrize(("batch", "message"), WRONG)
@pytest.mark.parametrize("last", ["keep", "pad"])
def test_a_batch_that_is_none_is_an_error_at_the_first_step(batch, message: str, last: str) -> None:
    with pytest.raises(LoaderError, match=rf"step 0, positions \[0, 4\).*gather\(\) returned {message}"):
        next(iter(Loader(Mine(batch), batch_size=4, last=last)))


@pytest.mark.parametrize(("batch", "message"), WRONG)
def test_so_it_is_in_a_mixture(batch, message: str) -> None:
    mixture = Mixture({"a": Mine(good), "b": Mine(batch)}, {"a": 1, "b": 1})
    with pytest.raises(LoaderError, match=r"gather\(\) of part 'b' of the mixture returned"):
        next(iter(Loader(mixture, batch_size=8)))


def test_tensors_are_no_arrays() -> None:
    torch = pytest.importorskip("torch")
    space = Mine(lambda indices, keys: {"x": torch.from_numpy(VALUES[indices])})
    with pytest.raises(LoaderError, match=r"'x' as a torch\.Tensor; it must be a NumPy array"):
        next(iter(Loader(space, batch_size=4, output="torch")))


def test_arrays_that_the_space_calls_jagged_may_be_of_any_length() -> None:
    class Jagged(Mine):
        jagged = {"x": "n"}  # noqa: RUF012

    space = Jagged(lambda indices, keys: {"x": np.repeat(indices, indices), "n": indices})
    (batch,) = Loader(space, batch_size=12, last="pad")
    assert batch["x"].size == 45
    assert batch["n"].tolist() == [*range(10), 0, 0]


def test_a_gather_that_gives_its_arguments_back_shares_nothing() -> None:
    space = Mine(lambda indices, keys: {"index": indices, "key": keys})
    batches = list(Loader(space, batch_size=3))
    arrays = [array for batch in batches for array in batch.values()]
    for number, array in enumerate(arrays):
        array[:] = number
    assert [array.tolist() for array in arrays] == [[n] * array.size for n, array in enumerate(arrays)]


@pytest.mark.parametrize("name", ["fingerprint", "fill", "roles", "at"])
def test_what_a_space_lacks_is_named_at_once(name: str) -> None:
    missing = type("Missing", (), {key: value for key, value in vars(Mine).items() if key != name})
    with pytest.raises(LoaderError, match=f"is a Missing without {name}, which is no sample space"):
        Loader(missing(good), batch_size=4)
    with pytest.raises(LoaderError, match=f"part 'a' of the mixture is a Missing without {name}"):
        Mixture({"a": missing(good)}, {"a": 1})


def test_a_class_is_no_space() -> None:
    with pytest.raises(LoaderError, match=r"is the class Mine; give an instance, Mine\(…\)"):
        Loader(Mine, batch_size=4)


def test_an_epoch_without_length_or_gather_is_an_error() -> None:
    class Lost(Mine):
        def at(self, seed: int, epoch: int):
            return None

    message = r"Lost.at\(\) returned a NoneType; it must return something with"
    with pytest.raises(LoaderError, match=message):
        Loader(Lost(good), batch_size=4)
    with pytest.raises(LoaderError, match=message):
        Mixture({"a": Lost(good)}, {"a": 1}).at(0, 0)


def test_a_fill_that_does_not_fit_its_array_is_named() -> None:
    class Filled(Mine):
        fill = {"x": -1}  # noqa: RUF012

    space = Filled(lambda indices, keys: {"x": VALUES[indices].astype(np.uint8)})
    with pytest.raises(LoaderError, match="x is uint8, which cannot hold -1, its filling"):
        list(Loader(space, batch_size=4, last="pad"))


def test_names_of_the_loaders_own_are_not_written_over() -> None:
    valid = Rows([Scalar("valid", [np.zeros(3, np.uint8)])], [3], "valid")
    assert next(iter(Loader(valid, batch_size=2)))["valid"].tolist() == [0, 0]
    with pytest.raises(
        LoaderError, match="last='pad' gives 'valid', and the batch has an array of that name"
    ):
        next(iter(Loader(valid, batch_size=2, last="pad")))
    part = Rows([Scalar("part", [np.zeros(3, np.uint8)])], [3], "part")
    with pytest.raises(LoaderError, match="an array 'part', which is what a mixture says the part by"):
        next(iter(Loader(Mixture({"a": part}, {"a": 1}), batch_size=2)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda batch: {"x": batch["x"][1:]}, r"has 'x' of shape \[3\] for 4 samples"),
        (lambda batch: {"x": batch["x"].tolist()}, "has 'x' as a builtins.list"),
        (lambda batch: {"x": batch["x"], "valid": batch["x"]}, "gives 'valid'"),
    ],
)
def test_a_transform_that_cannot_be_filled_up_fails_at_the_first_batch(change, message: str) -> None:
    options = {"batch_size": 4, "transform": lambda batch, keys: change(batch)}
    assert len(list(Loader(Mine(good), **options))) == 3
    with pytest.raises(LoaderError, match=rf"step 0, .*{message}"):
        next(iter(Loader(Mine(good), last="pad", **options)))


def test_a_transform_that_is_no_function_is_refused_at_once() -> None:
    with pytest.raises(LoaderError, match="transform= is a str; it is a function"):
        Loader(Mine(good), batch_size=4, transform="double")


WINDOWS = [{"window": [2, 4]}, {"window": 2, "separate_documents": True}]


@pytest.mark.parametrize("options", WINDOWS)
def test_samples_that_only_one_order_can_batch_are_given_no_other(options) -> None:
    tokens = Tokens.from_documents([list(range(9)), list(range(6))] * 3, vocab_size=9)
    windows = Windows(tokens, pad_id=0, **options)
    batches = [batch["input_ids"].tolist() for batch in windows.loader(batch_size=2)]
    own = Loader(windows, batch_size=2, shuffle=windows.order())
    assert [batch["input_ids"].tolist() for batch in own] == batches
    with pytest.raises(
        LoaderError, match=r"need an order of their own, .*: use the loader\(…\) of the space"
    ):
        Loader(windows, batch_size=2, shuffle="global")
    with pytest.raises(LoaderError, match="part 'a' of the mixture needs an order of its own"):
        Mixture({"a": windows}, {"a": 1})
