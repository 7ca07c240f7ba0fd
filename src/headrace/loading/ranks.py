"""Which process this is, and of how many."""

from __future__ import annotations

import os
import sys

from headrace.errors import LoaderError
from headrace.order.integers import integer
from headrace.order.plan import check_ranks


def resolve_ranks(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return rank and world size: as given, or of ``torch.distributed``, the environment, or 0 of 1.

    Raises:
        LoaderError: Only one of the two is given, one is no integer, or RANK and WORLD_SIZE are none.
        OrderError: The rank is not of this world.
    """
    if (rank is None) != (world_size is None):
        given, missing = ("rank", "world_size") if world_size is None else ("world_size", "rank")
        raise LoaderError(f"{given}= is given without {missing}=; give both, or neither.")
    if rank is None or world_size is None:
        rank, world_size = distributed_ranks() or _environment_ranks()
    rank, world_size = integer("rank", rank, LoaderError), integer("world_size", world_size, LoaderError)
    check_ranks(rank, world_size)
    return rank, world_size


def distributed_ranks() -> tuple[int, int] | None:
    """Ask ``torch.distributed``, where it has been imported and initialised."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_rank()), int(distributed.get_world_size())


def torch_workers() -> int:
    """Return how many worker processes of a ``DataLoader`` there are, where this is one of them; else 1."""
    data = getattr(getattr(sys.modules.get("torch"), "utils", None), "data", None)
    worker = None if data is None else data.get_worker_info()
    return 1 if worker is None else int(worker.num_workers)


def _environment_ranks() -> tuple[int, int]:
    """Read RANK and WORLD_SIZE, as torchrun sets them; launchers on one node give LOCAL_RANK alone."""
    size = os.environ.get("WORLD_SIZE", "1")
    rank = os.environ.get("RANK")
    if rank is None and size != "1" and os.environ.get("NODE_RANK", "0") == "0":
        rank = os.environ.get("LOCAL_RANK")
    if rank is None and size != "1":
        raise LoaderError(
            f"the environment has WORLD_SIZE={size!r} and no RANK, so that every process would take "
            "the same part; give rank= and world_size=, or initialise torch.distributed before."
        )
    try:
        return int(rank or "0"), int(size)
    except ValueError:
        raise LoaderError(
            f"the environment has RANK={rank!r} and WORLD_SIZE={size!r}, which must be integers; "
            "mend them, or give rank= and world_size=."
        ) from None
