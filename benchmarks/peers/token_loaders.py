"""Token loaders of others over the same ids: LitData, Megatron-core, MosaicML Streaming.

Each library gets the ids in its own format, in a folder, and serves shuffled batches of ids and labels, int64
torch tensors [32, 1024]. One that is not installed is left out. ``benchmarks/windows.py`` calls ``ways``; on
its own this file tries the settings of each, and prints what they reach:

    python benchmarks/peers/token_loaders.py --tokens 20_000_000 --batches 200 --repeats 3

LitData and MosaicML Streaming ask for older libraries than headrace is tested with: use pip --no-deps.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import shutil
import statistics
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

WINDOW, ROWS = 1024, 32
Batches = Iterator[Any]
Ways = dict[str, Callable[[], Batches]]


def is_there(module: str) -> bool:
    """Whether a library is installed."""
    return importlib.util.find_spec(module) is not None


def shifted(loader: Any, tokens_of: Callable[[Any], torch.Tensor]) -> Batches:
    """Turn uint16 rows of W + 1 ids into ids and labels, by NumPy, which is quicker at it than torch."""
    for batch in loader:
        rows = tokens_of(batch).numpy()
        yield tuple(torch.from_numpy(part.astype(np.int64)) for part in (rows[:, :-1], rows[:, 1:]))


def write_litdata(values: np.ndarray, folder: Path) -> None:
    """Write chunks of about 64 MB, as its documentation advises."""
    from litdata.streaming import Cache, TokensLoader

    cache = Cache(
        str(folder), chunk_size=(WINDOW + 1) * 32_768, item_loader=TokensLoader(block_size=WINDOW + 1)
    )
    for number, first in enumerate(range(0, values.size, 1 << 20)):
        cache[number] = torch.from_numpy(values[first : first + (1 << 20)])
    cache.done()
    cache.merge()


def litdata(folder: Path, workers: int) -> Batches:
    """Serve with its TokensLoader, shuffled."""
    from litdata import StreamingDataLoader, StreamingDataset, TokensLoader

    dataset = StreamingDataset(
        str(folder), item_loader=TokensLoader(block_size=WINDOW + 1), shuffle=True, drop_last=True, seed=1
    )
    loader = StreamingDataLoader(dataset, batch_size=ROWS, num_workers=workers)
    return shifted(loader, lambda batch: batch)


def write_megatron(values: np.ndarray, prefix: Path) -> None:
    """Write an indexed dataset of documents of some thousand ids."""
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    builder = IndexedDatasetBuilder(f"{prefix}.bin", dtype=np.uint16)
    step = 1 << 16
    for first in range(0, values.size, step):
        part = values[first : first + step]
        builder.add_document(part, [part.size])
    builder.finalize(f"{prefix}.idx")


class _Tokenizer:
    """What a GPTDataset asks of a tokenizer."""

    eod = eos_id = pad = 0
    vocab_size = 50_257
    unique_identifiers: dict[str, str] = {"class": "bare ids"}  # noqa: RUF012


def megatron(prefix: Path, workers: int) -> Batches:
    """Serve with GPTDataset, without an attention mask; positions and loss mask are made once."""
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.indexed_dataset import IndexedDataset
    from megatron.core.datasets.utils import Split

    config = GPTDatasetConfig(
        random_seed=1,
        sequence_length=WINDOW,
        split="1,0,0",
        tokenizer=_Tokenizer(),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
        path_to_cache=str(prefix.parent / "cache"),
    )
    indexed = IndexedDataset(str(prefix), multimodal=False, mmap=True)
    documents = np.arange(indexed.document_indices.shape[0] - 1, dtype=np.int32)
    dataset = GPTDataset(indexed, str(prefix), documents, None, Split.train, config)
    loader = torch.utils.data.DataLoader(dataset, batch_size=ROWS, num_workers=workers, drop_last=True)
    for batch in loader:
        yield batch["tokens"], batch["labels"]


def write_mosaicml(values: np.ndarray, folder: Path) -> None:
    """Write rows of W + 1 ids as shards of 64 MB."""
    without_vision()
    from streaming import MDSWriter

    rows = values[: values.size // (WINDOW + 1) * (WINDOW + 1)].reshape(-1, WINDOW + 1)
    shutil.rmtree(folder, ignore_errors=True)
    with MDSWriter(out=str(folder), columns={"tokens": f"ndarray:uint16:{WINDOW + 1}"}) as writer:
        for row in rows:
            writer.write({"tokens": row})


def mosaicml(folder: Path, workers: int) -> Batches:
    """Serve with StreamingDataset, shuffled."""
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    clean_stale_shared_memory()
    dataset = StreamingDataset(local=str(folder), shuffle=True, batch_size=ROWS, shuffle_seed=1)
    loader = torch.utils.data.DataLoader(dataset, batch_size=ROWS, num_workers=workers, drop_last=True)
    return shifted(loader, lambda batch: batch["tokens"])


def without_vision() -> None:
    """Let MosaicML Streaming be imported where torchvision, which its image datasets need, is not there."""
    if not is_there("torchvision"):
        importlib.import_module("transformers")  # looks for torchvision, and must not find the stand-in
        names = (
            "torchvision",
            "torchvision.datasets",
            "torchvision.transforms",
            "torchvision.transforms.functional",
        )
        for name in names:
            sys.modules[name] = types.ModuleType(name)
        sys.modules["torchvision.datasets"].VisionDataset = object  # type: ignore[attr-defined]
        sys.modules["torchvision.transforms.functional"].to_tensor = None  # type: ignore[attr-defined]


Write = Callable[[np.ndarray, Path], None]
Serve = Callable[[Path, int], Batches]


def ways(values: np.ndarray, folder: Path, workers: tuple[int, ...] = (0,)) -> Ways:
    """Write the ids for each library that is there; return what serves them.

    Args:
        values: uint16 [T].
        folder: Where the libraries' files go.
        workers: Worker processes to try.
    """
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)  # batches of this size are slower on several
    os.environ.setdefault("LITDATA_DISABLE_VERSION_CHECK", "1")
    libraries: list[tuple[str, str, Write, Serve]] = [
        ("LitData TokensLoader", "litdata", write_litdata, litdata),
        ("Megatron-core GPTDataset", "megatron", write_megatron, megatron),
        ("MosaicML Streaming", "streaming", write_mosaicml, mosaicml),
    ]
    found: Ways = {}
    for name, module, write, serve in libraries:
        if not is_there(module):
            print(f"{name} is not installed")
            continue
        place = folder / module
        place.mkdir(parents=True, exist_ok=True)
        place = place / "ids"
        write(values, place)
        for count in workers:
            found[f"{name}, {count} workers"] = lambda serve=serve, place=place, count=count: serve(
                place, count
            )
    return found


def rate(batches: Batches, count: int) -> float:
    """Return tokens a second over ``count`` batches, after three to warm up."""
    for _ in islice(batches, 3):
        pass
    begin = time.perf_counter()
    served = sum(batch[0].numel() for batch in islice(batches, count))
    return served / (time.perf_counter() - begin)


def main() -> None:
    """Try the settings of each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=20_000_000)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    arguments = parser.parse_args()
    values = np.random.default_rng(0).integers(0, 50_257, arguments.tokens, dtype=np.uint16)
    with tempfile.TemporaryDirectory() as folder:
        served = ways(values, Path(folder), tuple(arguments.workers))
        rates: dict[str, list[float]] = {name: [] for name in served}
        for _ in range(arguments.repeats):
            for name, make in served.items():
                rates[name].append(rate(make(), arguments.batches))
    for name, found in rates.items():
        print(f"{name:<40} {statistics.median(found) / 1e6:>8.1f} M tokens/s")


if __name__ == "__main__":
    main()
