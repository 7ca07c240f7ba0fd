"""The loader: minibatches of any sample space, in any order, on any number of ranks."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.errors import LoaderError, OrderError, StateError
from headrace.loading.checks import check_epoch, check_space, needed_order
from headrace.loading.iterator import LoaderIterator
from headrace.loading.maker import BatchMaker, Made, Pass, Transform
from headrace.loading.output import OutputKind, converter
from headrace.loading.pool import Pool
from headrace.loading.progress import Progress
from headrace.loading.ranks import distributed_ranks, resolve_ranks, torch_workers
from headrace.loading.space import EpochSpace, SampleSpace
from headrace.loading.state import State, check_state, make_state
from headrace.loading.timing import Clock, Report
from headrace.order.bucketed import checked_lengths, cut_order
from headrace.order.integers import integer
from headrace.order.plan import Last, Plan
from headrace.order.quality import ShuffleQuality, measure_shuffle
from headrace.order.sampler import Budget, EpochOrder, Global, Sampler, Sequential, as_sampler

if TYPE_CHECKING:
    from headrace.loading.torch_loader import TorchDataLoader


class Loader:
    """Serves the minibatches of a sample space.

        loader = Loader(space, batch_size=4096, shuffle="global", seed=7)
        for batch in loader:                    # {"user": int64 [B], "history": int64 [B, L], ...}
            ...

    The global batch at step s is the epoch positions ``[s·B, (s+1)·B)`` with ``B = batch_size ×
    world_size``; a rank takes its contiguous part. With one B, the samples of every step are the
    same on any number of ranks, with any number of threads, and after any resume.

    A full pass moves ``epoch`` on by one; leaving early and iterating again starts the same
    epoch over, unless a state was loaded in between. To leave after the last batch is a full pass.

    Args:
        space: What can gather: dataset rows, windows, skip-grams, a mixture.
        batch_size: Samples per rank and step.
        global_batch_size: Instead: samples per step over all ranks.
        max_tokens: Instead: tokens per rank and step, padding to the longest counted. Over all ranks a
            step holds at most ``max_tokens × world_size``; where the ranks do not divide its samples,
            a rank's part may exceed its own by one sample (see ``LengthBucketed(multiple_of=…)``).
        shuffle: False, ``"global"``, ``"block"``, a sampler of ``headrace.order``, an index array, or
            an object with ``sample(position)``.
        seed: Any integer, for the order and for everything that is drawn.
        epoch: The epoch of the first pass.
        rank: This process. Default: of ``torch.distributed``, also where that is initialised after the
            loader was made; else of RANK and WORLD_SIZE, else 0 of 1.
        world_size: Number of processes.
        last: What becomes of the last, incomplete global batch. ``"keep"``: it is shared out, and a rank
            may get fewer samples, or none; ``"pad"``: every rank gets as many rows, and ``valid`` says
            which are samples; ``"drop"``: it is left out, and reported. Every rank has as many steps.
        output: ``"numpy"``, ``"torch"`` or ``"jax"``.
        group: Give ``{"inputs": …, "targets": …, "meta": …}`` instead of a flat dict.
        transform: ``transform(batch, keys)`` gets NumPy arrays and the uint64 epoch positions of its
            samples, and returns a batch; called in the loader's threads, before filling rows are added.
        threads: Threads that make batches ahead; 0 makes them in the consumer's, when they are asked for.
        prefetch: Batches that are made ahead of the consumer.
        pin_memory: Copy to page-locked memory (torch). Default: when ``device`` is an accelerator.
        device: Where the batch shall be; the copy does not block where memory is pinned.
        progress: Show a progress line on standard error.

    Raises:
        LoaderError: Arguments do not fit together.
        OrderError: Ranks, sizes or the order do not fit the space.
    """

    def __init__(
        self,
        space: SampleSpace,
        *,
        batch_size: int | None = None,
        global_batch_size: int | None = None,
        max_tokens: int | None = None,
        shuffle: Any = False,
        seed: int = 0,
        epoch: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        last: Last = "keep",
        output: OutputKind = "numpy",
        group: bool = False,
        transform: Transform | None = None,
        threads: int = 2,
        prefetch: int = 4,
        pin_memory: bool | None = None,
        device: Any = None,
        progress: bool = False,
    ) -> None:
        self._arguments = {
            name: value for name, value in locals().items() if name not in ("self", "__class__")
        }
        check_space(space, "what a Loader is made of")
        self.space = space
        self.rank, self.world_size = resolve_ranks(rank, world_size)
        self._follows_ranks = rank is None
        self._process = os.getpid()
        self.seed = integer("seed", seed, LoaderError)
        self.epoch = integer("epoch", epoch, LoaderError)
        self.last = last
        self.threads = _not_negative("threads", threads)
        self.prefetch = _not_negative("prefetch", prefetch)
        self.sampler = _sampler_of(space, shuffle)
        self._sizes = {
            "batch_size": batch_size,
            "global_batch_size": global_batch_size,
            "max_tokens": max_tokens,
        }
        self._budget = _budget(self._sizes, self.world_size)
        self.converter = converter(output, device, pin_memory)
        self._transform = _checked_transform(transform)
        self._group = group
        self._progress = progress
        self._clock = Clock()
        self._position = 0
        self._begin = 0
        self._pass: weakref.ref[Pass] | None = None
        self._epoch_parts: tuple[int, EpochSpace, EpochOrder] | None = None
        self._plan(0)

    def __len__(self) -> int:
        """Return the steps of a whole pass over the present epoch, the same on every rank."""
        return len(self._plan(0))

    def __iter__(self) -> LoaderIterator:
        run = self.start_pass()
        progress = self.progress_line(run)
        return LoaderIterator(run, self.threads, self.prefetch, progress)

    def __getstate__(self) -> dict[str, Any]:
        ranks = {"rank": self.rank, "world_size": self.world_size}
        arguments = {**self._arguments, **ranks, "epoch": self.epoch}
        return {
            "arguments": arguments,
            "follows_ranks": self._follows_ranks,
            "process": self._process,
            "position": self._position,
            "begin": self._begin,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        space = state["arguments"].pop("space")
        self.__init__(space, **state["arguments"])  # type: ignore[misc]
        self._follows_ranks, self._process = state["follows_ranks"], state["process"]
        self._position, self._begin = state["position"], state["begin"]

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next.

        The present one keeps a position that was loaded and not yet iterated; another starts at 0,
        and a pass that is under way is over: its iterator raises when it is asked for more.
        """
        epoch = integer("epoch", epoch, LoaderError)
        if epoch != self.epoch or self._all_delivered():
            self.epoch, self._position, self._begin, self._pass = epoch, 0, 0, None

    def state_dict(self) -> State:
        """Return where the consumer is: a few numbers that go through JSON, the same on every rank.

        A state taken after the last batch of an epoch is that of the start of the next one.
        """
        if self._all_delivered():
            return make_state(self._identity(), self.epoch + 1, 0)
        return make_state(self._identity(), self.epoch, self._position)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken, with any world size or batch size.

        The next pass delivers ``[position, position + B)``, and so on to the end of its epoch. A
        pass that is under way is over: its iterator raises when it is asked for more.

        Raises:
            StateError: The state is of another dataset, order, seed or layout; the difference is named.
        """
        epoch, position = check_state(state, self._identity())
        size = len(self._parts(epoch)[2])
        if position > size:
            raise StateError(f"state has position {position}, and epoch {epoch} has {size} samples.")
        try:
            steps = len(self._plan(position, epoch))
        except OrderError as error:
            raise StateError(f"state has position {position} in epoch {epoch}: {error}") from None
        self.epoch, self._position = (epoch, position) if steps or not position else (epoch + 1, 0)
        self._begin = self._position
        self._pass = None

    def report(self) -> Report:
        """Return where the time of all passes so far went, and what to change."""
        return self._clock.report(self.threads, self._plan(0).left_out)

    def _identity(self) -> dict[str, Any]:
        """Return what a state is compared by."""
        self._follow_ranks()
        order = self.sampler.describe()
        if self._budget.tokens is not None:
            order["global_tokens"] = self._budget.tokens
        elif getattr(self.sampler, "planned", False):
            order["global_batch"] = self._budget.samples
        return {
            "dataset": getattr(self.space, "data_fingerprint", self.space.fingerprint),
            "space": self.space.fingerprint,
            "parameters": dict(getattr(self.space, "parameters", {})),
            "order": order,
            "seed": self.seed,
        }

    def start_pass(self) -> Pass:
        """Begin a pass over the present epoch, where a loaded state says or at its start.

        What ``iter(loader)`` and the adapters of frameworks are built on: the pass makes the
        batch of any step, and is told which batches were delivered.
        """
        self._check_process()
        if self._all_delivered():
            self._finish()
        begin, self._begin = self._begin, 0
        self._position = begin
        run = Pass(self._maker(begin), self._deliver, self._finish, self._is_current)
        self._pass = weakref.ref(run)  # an abandoned pass frees its memory
        return run

    def make_pass(self, epoch: int, begin: int) -> BatchMaker:
        """Return what makes the batches of an epoch from a position on; for a loader in a worker process."""
        self.epoch = epoch
        return self._maker(begin)

    def as_torch_dataloader(self, **options: Any) -> TorchDataLoader:
        """Return a ``torch.utils.data.DataLoader`` over this loader; see ``TorchDataLoader`` for its options.

        Raises:
            LoaderError: torch is missing, or the output of this loader is not ``"torch"``.
        """
        if self._arguments["output"] != "torch":
            raise LoaderError("as_torch_dataloader() needs a loader with output='torch'.")
        from headrace.loading.torch_loader import TorchDataLoader

        return TorchDataLoader(self, **options)

    def shuffle_quality(self, samples: int = 1 << 20) -> ShuffleQuality:
        """Return how near this loader's order comes to a true shuffle.

        Args:
            samples: About how many positions are looked at, at least 1, in global batches that are spread
                over the epoch; all where there are fewer.

        Raises:
            LoaderError: The space orders its samples itself, so that its indices say nothing of the order.
        """
        if getattr(self.space, "brings_order", False):
            raise LoaderError(
                "this space orders its samples itself, so that their numbers say nothing of the shuffle; "
                "measure the loaders of its parts, with shuffle='global'."
            )
        if integer("samples", samples, LoaderError) < 1:
            raise LoaderError(f"samples={samples}; it must be at least 1.")
        order = self._parts(self.epoch)[2]
        return measure_shuffle(order, self._plan(0), len(self._parts(self.epoch)[1]), samples)

    def _parts(self, epoch: int) -> tuple[int, EpochSpace, EpochOrder]:
        """Return the space and the order of an epoch; made once."""
        self._follow_ranks()
        if self._epoch_parts is None or self._epoch_parts[0] != epoch:
            space = check_epoch(self.space.at(self.seed, epoch), self.space)
            self._epoch_parts = epoch, space, self._order(space, epoch)
        return self._epoch_parts

    def _order(self, space: EpochSpace, epoch: int) -> EpochOrder:
        order = self.sampler.at(len(space), self.seed, epoch, self._budget)
        if self._budget.tokens is None or order.cuts is not None:
            return order
        return cut_order(order, _lengths_of(self.space, space), self._budget.tokens)

    def _plan(self, begin: int, epoch: int | None = None) -> Plan:
        order = self._parts(self.epoch if epoch is None else epoch)[2]
        return Plan(
            size=len(order),
            global_batch=self._budget.samples or 0,
            rank=self.rank,
            world_size=self.world_size,
            last=self.last,
            begin=begin,
            cuts=order.cuts,
        )

    def _maker(self, begin: int) -> BatchMaker:
        _, space, order = self._parts(self.epoch)
        if self._clock.process != os.getpid():
            self._clock = Clock()  # a thread of the parent's, which is not here, may have held its lock
        return BatchMaker(
            space=self.space,
            epoch_space=space,
            order=order,
            plan=self._plan(begin),
            converter=self.converter,
            clock=self._clock,
            transform=self._transform,
            group=self._group,
            epoch=self.epoch,
            pool=Pool(),
        )

    def progress_line(self, run: Pass) -> Progress | None:
        """Return what shows how far a pass is; None where that was not asked for."""
        if not self._progress:
            return None
        whole = len(self)
        return Progress(f"epoch {self.epoch}", whole, whole - len(run.maker.plan))

    def _check_process(self) -> None:
        """Refuse to give the whole part of this rank in each of several worker processes."""
        workers = torch_workers()
        if workers > 1 and os.getpid() != self._process:
            raise LoaderError(
                f"each of {workers} worker processes would give all batches of this loader; use "
                f"loader.as_torch_dataloader(num_workers={workers}), where each gives its own."
            )

    def _all_delivered(self) -> bool:
        """Whether the consumer has had the last batch of the epoch, and has not asked for one more."""
        return self._position > 0 and not len(self._plan(self._position))

    def _follow_ranks(self) -> None:
        """Take the ranks of ``torch.distributed`` where none were given, and it came up after this loader.

        Trainers start their processes, or join them, after a script has made its loaders.
        """
        ranks = distributed_ranks() if self._follows_ranks else None
        if ranks is not None and ranks != (self.rank, self.world_size):
            self.rank, self.world_size = ranks
            self._budget = _budget(self._sizes, self.world_size)
            self._epoch_parts = None

    def _is_current(self, run: Pass) -> bool:
        return self._pass is not None and self._pass() is run

    def _deliver(self, made: Made) -> None:
        self._position = made.stop

    def _finish(self) -> None:
        self.epoch, self._position, self._pass = self.epoch + 1, 0, None


def _not_negative(name: str, value: int) -> int:
    number = integer(name, value, LoaderError)
    if number < 0:
        raise LoaderError(f"{name}={value}; it must not be negative.")
    return number


def _checked_transform(transform: Any) -> Transform | None:
    if transform is not None and not callable(transform):
        raise LoaderError(
            f"transform= is a {type(transform).__name__}; it is a function transform(batch, keys)."
        )
    checked: Transform | None = transform
    return checked


def _budget(sizes: Mapping[str, int | None], world_size: int) -> Budget:
    """Return what a global batch holds: of three sizes one is given."""
    given = {name: value for name, value in sizes.items() if value is not None}
    if len(given) != 1:
        found = " and ".join(f"{name}=" for name in given) or "none"
        raise LoaderError(f"give one of batch_size=, global_batch_size= and max_tokens=; {found} was given.")
    name, found_value = next(iter(given.items()))
    value = integer(name, found_value, LoaderError)
    if value < 1:
        raise LoaderError(f"{name}={value}; it must be at least 1.")
    if name == "max_tokens":
        return Budget(None, value * world_size)
    return Budget(value if name == "global_batch_size" else value * world_size)


def _sampler_of(space: SampleSpace, shuffle: Any) -> Sampler:
    """Return the sampler, which must leave a space alone that orders its samples itself."""
    sampler = as_sampler(shuffle)
    _check_own_order(space, sampler)
    if not getattr(space, "brings_order", False):
        return sampler
    if not isinstance(sampler, Sequential | Global):
        raise LoaderError("this space orders its samples itself; use shuffle=False, and its own arguments.")
    return Sequential()


def _check_own_order(space: SampleSpace, sampler: Sampler) -> None:
    """Refuse another order for a space whose samples only one order can batch."""
    needed = needed_order(space)
    if needed is not None and type(sampler) is not type(needed):
        raise LoaderError(
            f"these samples need an order of their own, {needed.describe()['kind']}: "
            "use the loader(…) of the space, or shuffle=space.order()."
        )


def _lengths_of(space: SampleSpace, epoch_space: EpochSpace) -> Any:
    for owner in (epoch_space, space):
        if hasattr(owner, "sample_lengths"):
            return checked_lengths(owner.sample_lengths())
    raise LoaderError(
        "max_tokens= needs the length of each sample, and this space has none; "
        "use shuffle=order.LengthBucketed(lengths), or batch_size=."
    )
