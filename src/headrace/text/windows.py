"""Windows over token documents, as a sample space."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import xxhash
from numpy.typing import ArrayLike, DTypeLike, NDArray

from headrace.errors import TextError, did_you_mean
from headrace.kernels.windows_fill import IGNORED
from headrace.loading.loader import Loader
from headrace.loading.space import Role
from headrace.text.aligned import check_sentences_known
from headrace.text.buckets import BucketedCut
from headrace.text.cuts import Cut, ListedCut, StrideCut
from headrace.text.cutting import cut_at
from headrace.text.epoch import WindowEpoch
from headrace.text.inputs import as_tokens, check_spans
from headrace.text.masking import Masking, masked_by
from headrace.text.orders import OneLength, SeparateDocuments
from headrace.text.planning import Plan, PlanRow
from headrace.text.settings import (
    MLM,
    ROW_OUTPUTS,
    DynamicStride,
    Labels,
    Pack,
    Positions,
    Settings,
    Shared,
    Tail,
    buckets_of,
    check_draw,
    check_integer,
    check_outputs,
    mask_dtype_of,
)
from headrace.text.streams import Streams, eos_to_add, pad_to_use
from headrace.text.summary import Summary, summarize
from headrace.text.warning import warnings_of

SPAN_OUTPUTS = ("start_positions", "end_positions")
"""Outputs that ``spans`` adds, int64 [B]."""


class Windows:
    """Rows of a fixed number of tokens, cut from documents: what a language model trains on.

        tokens 0..9 in one document, window=4
        stride=4              0 1 2 3   4 5 6 7   8 9 . .
        stride=2              0 1 2 3   2 3 4 5   4 5 6 7   6 7 8 9
        stride=4, offset=1    0 . . .   1 2 3 4   5 6 7 8   9 . . .

    A sample space: ``len(windows)``, ``windows.loader(batch_size=..., ...)``; it keeps no state.

    With a fixed stride, no offset or alignment, ``tail="pad"`` and ``min_remainder=0`` a stream of
    L tokens has no window for L = 0, one for 0 < L <= W, else ``1 + ceil((L - W) / S)``. A window
    without a token that is in no earlier one is never made.

    Args:
        tokens: ``Tokens``, a folder of a token store, a ``Dataset`` or an Arrow table with a column
            ``input_ids``, or a list of lists of ids.
        window: Tokens in a row, W; or several lengths, each cutting all documents, one bucket a length.
        stride: Tokens from one start to the next, S in ``[1, W]``; None: W. Or a ``DynamicStride``. Of
            several window lengths: one for all, or one for each.
        pack: False: every document is a stream of its own. ``"concat"``: all documents are one stream.
            ``"best_fit"``: documents are cut into pieces of W, and the pieces are placed so that few
            rows are needed.
        tail: What becomes of a last window of fewer than W tokens: ``"pad"``, ``"drop"`` it, or
            ``"shift"`` its start back to L - W.
        min_remainder: With ``"pad"`` and ``"shift"``, the last window is left out when it has fewer
            *new* tokens than this.
        eos: End token that closes every document when packing; None: the one the tokens declare;
            False: none. ``pack=False`` adds none unless an id is given. A document that ends with it
            gets no second.
        pad_id: Id on padding; None: the tokens' pad token, else the end token, else 0.
        align: ``"sentence"``: a start moves back to the nearest sentence start that is at most W // 4
            away and after the previous start.
        offset: Where the second window begins, in ``[0, S)``, 0 meaning S; ``"random"``: another place
            in each epoch, every place once in S epochs.
        labels: ``"next"``: the token after each token in its document, also where it lies outside the
            window. ``"same"``: a copy of the inputs, for models that shift inside.
        overlap_labels: False: a label is live only in the first window that can hold it, so that every
            token is scored once.
        outputs: Which arrays a batch has: int64 [B, W] ``input_ids``, ``labels``, ``attention_mask``
            (1 on tokens), ``segment_ids`` (1.. a document's part in the row, 0 on padding),
            ``position_ids``; int64 [B] ``document``, ``start``, ``length``; columns parallel to the tokens.
        positions: ``position_ids`` begin at 0 with each ``"segment"``, with the ``"window"``, or with
            the ``"document"``.
        objective: None: next token. ``MLM(...)``: masked tokens are the labels.
        separate_documents: No two windows of a document in one batch, for contrastive losses.
        spans: int [D, 2], first and last token of an answer in each document, -1 where there is none:
            adds ``start_positions`` and ``end_positions`` int64 [B], -1 where the window does not hold it.
        mask_dtype: ``"int64"`` or ``"bool"``, of ``attention_mask``.

    Raises:
        TextError: The arguments cannot be meant together; the message says what to change.
    """

    def __init__(
        self,
        tokens: Any,
        window: int | Sequence[int],
        stride: int | DynamicStride | Sequence[int | DynamicStride | None] | None = None,
        pack: Pack = False,
        tail: Tail = "pad",
        min_remainder: int = 0,
        eos: int | Literal[False] | None = None,
        pad_id: int | None = None,
        align: Literal["sentence"] | None = None,
        offset: int | Literal["random"] = 0,
        labels: Labels = "next",
        overlap_labels: bool = True,
        outputs: Sequence[str] = ("input_ids", "labels"),
        positions: Positions = "segment",
        objective: MLM | None = None,
        separate_documents: bool = False,
        spans: ArrayLike | None = None,
        mask_dtype: DTypeLike = "int64",
    ) -> None:
        self.tokens = as_tokens(tokens)
        shared = Shared(
            pack=pack,
            tail=tail,
            min_remainder=min_remainder,
            align=align,
            offset=offset,
            labels=labels,
            overlap_labels=overlap_labels,
            outputs=check_outputs(outputs, list(self.tokens.columns)),
            positions=positions,
            objective=objective,
            separate_documents=separate_documents,
            mask_dtype=mask_dtype_of(mask_dtype),
        )
        self.shared = shared
        self.buckets = buckets_of(window, stride, shared)
        self.streams = Streams(self.tokens, eos_to_add(self.tokens, eos, pack), joined=pack == "concat")
        self.pad_id = pad_to_use(self.tokens, pad_id, eos)
        self.spans = None if spans is None else check_spans(spans, self.tokens, pack)
        if objective is not None:
            masked_by(self.tokens, objective)
        if align is not None:
            check_sentences_known(self.tokens)
        self._warn()

    def __getstate__(self) -> dict[str, Any]:
        """Return what makes them again in another process, which maps a kept plan or counts anew."""
        state = dict(self.__dict__)
        if self.tokens.folder is not None and not self._has_nameless_function:
            state.pop("_fixed_cut", None)
        return state

    @property
    def settings(self) -> Settings:
        """What was declared; of several window lengths, the first."""
        return self.buckets[0]

    def __len__(self) -> int:
        """Return the number of windows; with ``offset="random"`` of epoch 0 under seed 0."""
        return len(self._cut(0, 0))

    def __repr__(self) -> str:
        lengths = [settings.window for settings in self.buckets]
        strides = [settings.stride for settings in self.buckets]
        window, stride = (lengths[0], strides[0]) if len(lengths) == 1 else (lengths, strides)
        return f"Windows({len(self):,} × {window}, stride={stride}, pack={self.settings.pack!r})"

    @cached_property
    def fingerprint(self) -> str:
        """Hexadecimal digest of the tokens and of every argument that changes a window."""
        digest = xxhash.xxh3_128(self.tokens.fingerprint.encode())
        declared = [settings.parameters for settings in self.buckets]
        digest.update(repr((declared, self.streams.eos, self.pad_id, self._masked_by)).encode())
        if self.spans is not None:
            digest.update(self.spans.tobytes())
        for cut in self._cuts_of_nameless_functions():
            digest.update(cut.position.data)
        return digest.hexdigest()

    @property
    def _masked_by(self) -> tuple[int, int] | None:
        """Mask token and number of ids, which may be declared anew for the same tokens."""
        objective = self.settings.objective
        return None if objective is None else masked_by(self.tokens, objective)

    @property
    def _has_nameless_function(self) -> bool:
        return any(_is_nameless(settings.stride) for settings in self.buckets)

    def _cuts_of_nameless_functions(self) -> Iterator[ListedCut]:
        """Yield the windows that follow a function of which nothing but its windows is known."""
        for number, settings in enumerate(self.buckets):
            if _is_nameless(settings.stride):
                whole = self._fixed_cut
                cut = whole.cuts[number] if isinstance(whole, BucketedCut) else whole
                assert isinstance(cut, ListedCut)
                yield cut

    @property
    def fill(self) -> Mapping[str, float]:
        """What stands in a filling row: padding, no label, no document."""
        absent = dict.fromkeys(("document", *SPAN_OUTPUTS), -1)
        return {"input_ids": self.pad_id, "labels": IGNORED, **absent}

    @property
    def roles(self) -> Mapping[str, Role]:
        """Labels and spans are targets; where a row comes from is meta."""
        roles: dict[str, Role] = dict.fromkeys(("labels", *SPAN_OUTPUTS), "targets")
        roles.update(dict.fromkeys(ROW_OUTPUTS, "meta"))
        return roles

    def at(self, seed: int, epoch: int) -> WindowEpoch:
        """Return the windows of one epoch.

        A fixed stride costs nothing, and a plan is made once. ``offset="random"`` takes one
        pass over the documents' lengths, and 8 bytes a document.
        """
        objective = self.settings.objective
        masking = None if objective is None else Masking.at(self.streams, objective, seed, epoch)
        cut = self._cut(seed, epoch)
        return WindowEpoch(cut, self.streams, self.settings, self.pad_id, masking, self.spans)

    def order(self) -> Any:
        """Return the order that these windows need, or None where any will do.

        Several window lengths need one in which a batch holds one length;
        ``separate_documents`` one in which no document comes twice in a batch.
        """
        if len(self.buckets) > 1:
            windows = tuple(settings.window for settings in self.buckets)
            return OneLength(self._rows_by_bucket, windows)
        if self.settings.separate_documents:
            return SeparateDocuments(self._rows_by_document, self.settings.window)
        return None

    def loader(self, **options: Any) -> Loader:
        """Return minibatches of the windows.

        Several window lengths, and ``separate_documents``, bring a shuffle of their own.

        Args:
            **options: See ``headrace.loading.loader.Loader``: ``batch_size``, ``global_batch_size`` or
                ``max_tokens``, ``shuffle``, ``seed``, ``rank``, ``world_size``, ``last``, ``output``, ...

        Raises:
            TextError: ``shuffle`` asks for an order in which these windows cannot be batched, or there is no
                such option.
        """
        _check_options(options)
        own = self.order()
        if own is None:
            return Loader(self, **options)
        shuffle = options.pop("shuffle", "global")
        if not (shuffle is True or (isinstance(shuffle, str) and shuffle == "global")):
            raise TextError(
                f"shuffle={shuffle!r}: several window lengths and separate_documents bring their own "
                "shuffle. Leave it out, or give shuffle='global'."
            )
        return Loader(self, shuffle=own, **options)

    def summary(self, seed: int = 0, epoch: int = 0) -> Summary:
        """Count what the windows of an epoch hold and what they leave out."""
        check_draw(seed, epoch)
        return summarize(self.at(seed, epoch))

    def plan(self, windows: Sequence[int], strides: Sequence[int] | None = None) -> Plan:
        """Return what other windows and strides would cost on these tokens, all else being equal.

        Packed, aligned and dynamic windows are planned for it, and not kept.

        Args:
            windows: Window lengths.
            strides: Strides; those beyond a window are left out with it. None: the window's length.
        """
        for name, lengths in (("windows", windows), ("strides", [] if strides is None else strides)):
            if not isinstance(lengths, Sequence):
                raise TextError(f"plan({name}={lengths!r}): expected a list of lengths.")
            for length in lengths:
                check_integer(f"plan: one of {name}", length, 1)
        pairs = [
            (window, stride)
            for window in windows
            for stride in ([window] if strides is None else strides)
            if stride <= window
        ]
        streams = replace(self.streams, tokens=replace(self.tokens, folder=None))
        return Plan(tuple(PlanRow.of(*pair, self._summary_of(streams, *pair)) for pair in pairs))

    def _summary_of(self, streams: Streams, window: int, stride: int) -> Summary:
        """Count what the same tokens hold when they are cut otherwise."""
        buckets = buckets_of(window, stride, self.shared)
        return summarize(WindowEpoch(cut_at(streams, buckets, 0, 0), streams, buckets[0], self.pad_id))

    def _cut(self, seed: int, epoch: int) -> Cut:
        if self.settings.offset != "random":
            return self._fixed_cut
        return cut_at(self.streams, self.buckets, seed, epoch)

    @cached_property
    def _fixed_cut(self) -> Cut:
        return cut_at(self.streams, self.buckets, 0, 0)

    def _rows_by_bucket(self, seed: int, epoch: int) -> NDArray[np.int64]:
        return np.array([rows for rows, _ in self.at(seed, epoch).rows_by_window()], np.int64)

    def _rows_by_document(self, seed: int, epoch: int) -> NDArray[np.int64]:
        cut = self._cut(seed, epoch)
        assert isinstance(cut, StrideCut | ListedCut)
        return np.diff(cut.cumulative)

    def _warn(self) -> None:
        for settings in self.buckets:
            for line in warnings_of(settings, self.streams):
                warnings.warn(line, UserWarning, stacklevel=3)


def _is_nameless(stride: int | DynamicStride) -> bool:
    return isinstance(stride, DynamicStride) and stride.density_name is None


_OPTIONS_OF_TORCH = {
    "num_workers": "threads=",
    "prefetch_factor": "prefetch=",
    "drop_last": "last='drop'",
    "sampler": "shuffle=",
    "collate_fn": "transform=",
}
"""What does here what an option of ``torch.utils.data.DataLoader`` does there."""
_LOADER_OPTIONS = tuple(name for name in inspect.signature(Loader).parameters if name != "space")


def _check_options(options: Mapping[str, Any]) -> None:
    unknown = next((name for name in options if name not in _LOADER_OPTIONS), None)
    if unknown is not None:
        instead = _OPTIONS_OF_TORCH.get(unknown)
        raise TextError(
            f"loader({unknown}={options[unknown]!r}): windows have no such option; there are "
            f"{', '.join(_LOADER_OPTIONS)}."
            + (f" Use {instead}." if instead else did_you_mean(unknown, _LOADER_OPTIONS))
        )
