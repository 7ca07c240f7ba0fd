"""PyTorch: tensors, map-style datasets, DataLoaders with workers, state."""

from __future__ import annotations

import copy
import functools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from headrace.errors import LoaderError
from headrace.loading import Label, Loader, Ragged, Rows, Scalar
from headrace.testing import Counting, assert_batches_equal

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from headrace.loading.torch import TorchConverter, TorchDataset  # noqa: E402


def rows(layout: str = "padded") -> Rows:
    offsets = np.array([0, 2, 3, 3, 6])
    return Rows(
        [
            Scalar("user", [np.arange(4, dtype=np.uint16)]),
            Ragged("tags", [offsets], [np.arange(1, 7, dtype=np.uint8)], 3),
            Label("click", [np.array([0, 1, 0, 1], np.float32)]),
        ],
        [4],
        "rows",
        layout=layout,
    )


def test_tensors_share_the_memory_of_the_gathered_arrays() -> None:
    arrays = {}

    def keep(batch, keys):
        arrays.update(batch)
        return batch

    (batch,) = Loader(rows(), batch_size=4, output="torch", transform=keep)
    assert {name: tensor.dtype for name, tensor in batch.items()} == {
        "user": torch.int64,
        "tags": torch.int64,
        "tags_mask": torch.bool,
        "tags_lengths": torch.int32,
        "click": torch.float32,
        "sample_id": torch.int64,
    }
    for name, tensor in batch.items():
        assert tensor.data_ptr() == arrays[name].__array_interface__["data"][0]


def test_values_equal_those_of_numpy() -> None:
    options = {"batch_size": 3, "shuffle": "global", "last": "pad"}
    for tensors, arrays in zip(
        Loader(rows(), output="torch", **options), Loader(rows(), **options), strict=True
    ):
        assert_batches_equal({name: tensor.numpy() for name, tensor in tensors.items()}, arrays)


def test_a_device_moves_tensors_of_groups_too() -> None:
    (batch,) = Loader(rows(), batch_size=4, output="torch", device="meta", group=True)
    assert batch["inputs"]["user"].device.type == "meta"
    assert batch["targets"]["click"].shape == (4,)


def test_pinning_is_asked_for_only_where_there_is_an_accelerator(monkeypatch) -> None:
    with pytest.raises(LoaderError, match="pin_memory=True needs an accelerator"):
        Loader(rows(), batch_size=4, output="torch", pin_memory=True)
    assert not TorchConverter("cpu", None).pin
    with pytest.raises(LoaderError, match="device='nope' is none that torch knows"):
        Loader(rows(), batch_size=4, output="torch", device="nope")
    with pytest.raises(LoaderError, match=r"device=3\.5 is none that torch knows"):
        Loader(rows(), batch_size=4, output="torch", device=3.5)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    with pytest.raises(LoaderError, match="device='cuda:0': torch finds no accelerator"):
        Loader(rows(), batch_size=4, output="torch", device="cuda:0")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self + 0)
    assert TorchConverter("cuda", None).pin
    assert not TorchConverter(None, None).pin
    loader = Loader(rows(), batch_size=4, output="torch", pin_memory=True, group=True)
    assert next(iter(loader))["inputs"]["user"].tolist() == [0, 1, 2, 3]


def test_map_style_dataset() -> None:
    dataset = TorchDataset(rows())
    assert len(dataset) == 4
    sample = dataset[1]
    assert sample["user"] == 1
    assert sample["tags"].tolist() == [3, 0, 0]
    assert dataset[-1]["user"] == 3
    assert [each["user"].item() for each in dataset.__getitems__([3, 0])] == [3, 0]
    for wrong in (4, -5, 10**30, -(10**30)):
        with pytest.raises(IndexError, match=r"is not in \[-4, 4\), the samples here"):
            dataset[wrong]


def test_map_style_dataset_of_a_jagged_space() -> None:
    samples = TorchDataset(rows("jagged")).__getitems__([3, 2, 0])
    assert [sample["tags"].tolist() for sample in samples] == [[4, 5, 6], [], [1, 2]]


def stack(samples):
    return {"sum": torch.stack([sample["tags"].sum() for sample in samples]), "many": len(samples)}


def test_a_collate_function_of_the_users_own() -> None:
    asked = []

    class Watched(Rows):
        def gather(self, indices, keys):
            asked.append(len(indices))
            return super().gather(indices, keys)

    space = rows()
    space.__class__ = Watched
    batches = list(DataLoader(TorchDataset(space), batch_size=3, collate_fn=stack))
    assert [batch["sum"].tolist() for batch in batches] == [[3, 3, 0], [15]]
    assert asked == [3, 1], "a batch is gathered in one pass"
    plain = next(iter(DataLoader(TorchDataset(rows()), batch_size=4)))
    assert plain["tags"].shape == (4, 3)


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_map_style_dataset_in_worker_processes(context: str) -> None:
    loader = DataLoader(TorchDataset(rows()), batch_size=1, num_workers=2, multiprocessing_context=context)
    assert [batch["user"].item() for batch in loader] == [0, 1, 2, 3]


def loader_of(size: int = 100, **options) -> Loader:
    given = {"batch_size": 7, "shuffle": "global", "output": "torch", "seed": 3, **options}
    return Loader(Counting(size), **given)


@functools.cache
def expected(epoch: int) -> list[list[int]]:
    return [batch["index"].tolist() for batch in loader_of(epoch=epoch)]


WORKERS = [
    {"num_workers": 0},
    {"num_workers": 2, "multiprocessing_context": "fork"},
    {"num_workers": 2, "multiprocessing_context": "spawn", "persistent_workers": True, "prefetch_factor": 2},
]


@pytest.mark.parametrize("workers", WORKERS, ids=["threads", "fork", "spawn, persistent"])
def test_dataloader_gives_the_loaders_batches_in_order(workers) -> None:
    dataloader = loader_of().as_torch_dataloader(**workers)
    assert isinstance(dataloader, DataLoader)
    assert len(dataloader) == 15
    for epoch in range(3):
        assert [batch["index"].tolist() for batch in dataloader] == expected(epoch)
        assert dataloader.loader.epoch == epoch + 1


@pytest.mark.parametrize("workers", WORKERS[:2], ids=["threads", "fork"])
def test_dataloader_state_is_what_was_delivered(workers) -> None:
    dataloader = loader_of().as_torch_dataloader(**workers)
    iterator = iter(dataloader)
    for _ in range(4):
        next(iterator)
    state = dataloader.state_dict()
    assert state["position"] == 28
    assert next(iterator)["index"].tolist() == expected(0)[4]
    resumed = loader_of().as_torch_dataloader(**workers)
    resumed.load_state_dict(state)
    assert [batch["index"].tolist() for batch in resumed] == expected(0)[4:]
    assert [batch["index"].tolist() for batch in resumed] == expected(1)


@pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker processes")
@pytest.mark.parametrize("workers", [1, 3])
def test_exact_resume_of_five_thousand_ids_in_worker_processes(workers: int) -> None:
    run = Loader(Counting(5000), batch_size=1)
    states = {step: run.state_dict() for step, _ in enumerate(run, start=1)}
    for stop in (1, 200, 999, 1000, 1001, 4999):
        resumed = Loader(Counting(5000), batch_size=700, output="torch").as_torch_dataloader(
            num_workers=workers, multiprocessing_context="fork"
        )
        resumed.load_state_dict(states[stop])
        found = [batch["index"].tolist() for batch in resumed]
        assert found[0] == list(range(stop, min(stop + 700, 5000)))
        assert [index for batch in found for index in batch] == list(range(stop, 5000))


def test_a_state_that_is_loaded_ends_a_pass_of_workers() -> None:
    dataloader = loader_of().as_torch_dataloader(num_workers=1, multiprocessing_context="fork")
    iterator = iter(dataloader)
    next(iterator)
    dataloader.load_state_dict(dataloader.state_dict())
    with pytest.raises(LoaderError, match="go on with a new iter"):
        next(iterator)


def test_trainers_set_the_epoch_through_the_sampler() -> None:
    dataloader = loader_of().as_torch_dataloader()
    dataloader.sampler.set_epoch(2)
    assert next(iter(dataloader))["index"].tolist() == expected(2)[0]
    dataloader.set_epoch(1)
    assert next(iter(dataloader))["index"].tolist() == expected(1)[0]


def test_leaving_early_starts_over() -> None:
    dataloader = loader_of().as_torch_dataloader()
    for _ in range(2):
        for batch in dataloader:
            assert batch["index"].tolist() == expected(0)[0]
            break


def test_the_end_is_known_at_the_last_batch() -> None:
    dataloader = loader_of().as_torch_dataloader()
    assert [dataloader.end_of_dataloader for _ in dataloader] == [False] * 14 + [True]


def test_worker_processes_leave_devices_and_pinning_to_the_main_process() -> None:
    dataloader = loader_of(device="meta").as_torch_dataloader(num_workers=1, multiprocessing_context="fork")
    dataloader.loader.converter.pin = True  # a worker that pinned would fail here, without an accelerator
    batches = list(dataloader)
    assert len(batches) == 15
    assert {batch["index"].device.type for batch in batches} == {"meta"}


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(LoaderError, match="needs a loader with output='torch'"):
        Loader(Counting(3), batch_size=1).as_torch_dataloader()
    with pytest.raises(LoaderError, match="num_workers=-1"):
        loader_of().as_torch_dataloader(num_workers=-1)
    with pytest.raises(LoaderError, match="num_workers='2'; it must be an integer"):
        loader_of().as_torch_dataloader(num_workers="2")


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_stateful_dataloader_of_torchdata_keeps_our_state() -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    outer = stateful.StatefulDataLoader(loader_of().as_torch_dataloader().dataset, batch_size=None)
    iterator = iter(outer)
    for _ in range(4):
        next(iterator)
    state = outer.state_dict()
    resumed = stateful.StatefulDataLoader(loader_of().as_torch_dataloader().dataset, batch_size=None)
    resumed.load_state_dict(state)
    assert [batch["index"].tolist() for batch in resumed] == expected(0)[4:]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_report_counts_batches_of_workers_too(workers: int, capsys) -> None:
    loader = loader_of(progress=True)
    context = "fork" if workers else None
    for _ in loader.as_torch_dataloader(num_workers=workers, multiprocessing_context=context):
        pass
    report = loader.report()
    assert (report.batches, report.samples) == (15, 100)
    assert report.waited_seconds > 0
    assert report.consumer_seconds > 0
    assert any(report.seconds.values()) == (workers == 0)
    assert "15/15" in capsys.readouterr().err
    if workers:
        slow = replace(report, waited_seconds=9.0, consumer_seconds=1.0)
        assert slow.verdict.startswith(
            "The loader is what is slow: the model waited for it in 90% of its time"
        )
        assert "came from worker processes: raise num_workers=" in slow.verdict


def test_workers_of_another_dataloader_are_refused_since_they_would_begin_anew(monkeypatch) -> None:
    dataloader = loader_of().as_torch_dataloader(num_workers=2, multiprocessing_context="fork")
    worker = SimpleNamespace(id=1, num_workers=2)
    monkeypatch.setattr("headrace.loading.torch_loader.get_worker_info", lambda: worker)
    with pytest.raises(LoaderError, match=r"use loader.as_torch_dataloader\(num_workers=…\) itself"):
        list(dataloader.dataset)
    dataloader.dataset.start[:] = torch.tensor([0, 14])  # as its own DataLoader does when a pass begins
    assert [batch["index"].tolist() for batch in dataloader.dataset] == expected(0)[3::2]


def test_a_loader_is_not_given_whole_by_each_of_several_workers(monkeypatch) -> None:
    loader = loader_of()
    for workers in (1, 2):
        worker = SimpleNamespace(id=0, num_workers=workers)
        monkeypatch.setattr("torch.utils.data.get_worker_info", lambda worker=worker: worker)
        assert next(iter(loader))["index"].tolist() == expected(0)[0]  # it was made in this worker
        travelled = copy.copy(loader)
        travelled._process += 1  # as one that came from the main process
        if workers == 1:
            assert [batch["index"].tolist() for batch in travelled] == expected(0)
        else:
            with pytest.raises(LoaderError, match="each of 2 worker processes would give all batches"):
                iter(travelled)


class Odd(Counting):
    def __init__(self, change) -> None:
        super().__init__(4)
        self.change = change

    def gather(self, indices, keys):
        return {"x": self.change(indices)}


NO_TENSORS = [
    (lambda indices: indices.astype(str), r"x is <U21 \[2\]"),
    (lambda indices: indices.astype(object), r"x is object \[2\]"),
    (lambda indices: indices.astype("M8[s]"), r"x is datetime64\[s\]"),
    (lambda indices: indices.astype(">i4"), "x is >i4"),
    (lambda indices: indices[::-1], r"x is int64 \[2\] with strides \[-8\]"),
]


@pytest.mark.parametrize(("change", "message"), NO_TENSORS)
def test_what_torch_makes_no_tensor_of_is_named(change, message: str) -> None:
    with pytest.raises(LoaderError, match=f"{message}.*of which torch makes no tensor"):
        next(iter(Loader(Odd(change), batch_size=2, output="torch")))
    with pytest.raises(LoaderError, match=f"{message}.*of which torch makes no tensor"):
        TorchDataset(Odd(change)).__getitems__([0, 1])


def test_the_map_style_dataset_looks_at_what_is_gathered() -> None:
    with pytest.raises(LoaderError, match=r"gather\(\) returned 'x' of shape \[1\] for 2 samples"):
        TorchDataset(Odd(lambda indices: indices[1:])).__getitems__([0, 1])
    with pytest.raises(LoaderError, match="is the class Counting; give an instance"):
        TorchDataset(Counting)
    with pytest.raises(LoaderError, match="seed='a'; it must be an integer"):
        TorchDataset(Counting(3), seed="a")
    with pytest.raises(LoaderError, match="epoch=None; it must be an integer"):
        TorchDataset(Counting(3)).set_epoch(None)
