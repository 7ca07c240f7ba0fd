"""What a user declares about windows: checked, frozen, no work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headrace.errors import TextError, did_you_mean
from headrace.loading.dtypes import dtype_name

Pack: TypeAlias = Literal[False, "concat", "best_fit"]
Tail: TypeAlias = Literal["pad", "drop", "shift"]
Labels: TypeAlias = Literal["next", "same"]
Positions: TypeAlias = Literal["segment", "window", "document"]
Density: TypeAlias = Literal["edges", "surprisal"] | Callable[[NDArray[np.int64]], NDArray[np.float64]]

TOKEN_OUTPUTS = ("input_ids", "labels", "attention_mask", "segment_ids", "position_ids")
"""Outputs with one value a token, [B, W]."""
_LARGEST = 1 << 62
_LONGEST = (1 << 31) - 1
"""Tokens in a window: lists of windows keep sizes as int32."""
_MASK_DTYPES = ("int64", "bool")
ROW_OUTPUTS = ("document", "start", "length")
"""Outputs with one value a row, int64 [B]."""


@dataclass(frozen=True)
class DynamicStride:
    """Windows that lie closer where the text is denser.

    The next start is the first place where the sum of the density since the
    previous start reaches a quantum; the quantum is the one that makes the mean
    stride ``mean``, found by bisection on the tokens themselves.
    """

    density: Density
    """``"edges"``: more windows at both ends of a document, the arcsine density
    1 / (pi sqrt(u (1 - u))) with u = (place + 1/2) / L. ``"surprisal"``: more windows over rare
    tokens, -log2 of a token's share of all tokens. Or a function from a document's ids to
    non-negative float64 [L]; where it defines ``__fingerprint__()``, a text that changes when the
    function does, its windows are kept beside the tokens, as those of the built-in densities are."""
    mean: float
    """Mean number of tokens from one start to the next that is aimed at."""
    minimum: int = 1
    """Fewest tokens from one start to the next."""
    maximum: int | None = None
    """Most tokens from one start to the next; None: the window's length."""

    @property
    def density_name(self) -> str | None:
        """What stands for the density wherever it is written down; None for a function that does not say."""
        if isinstance(self.density, str):
            return self.density
        told = fingerprint_of(self.density)
        return None if told is None else f"function {told}"

    def declared(self, window: int) -> tuple[str | None, float, int, int]:
        """Return what stands for the density, mean, minimum and maximum, however they were written."""
        maximum = window if self.maximum is None else self.maximum
        return self.density_name, float(self.mean), int(self.minimum), int(maximum)


@dataclass(frozen=True)
class MLM:
    """Masked language model: some tokens are hidden, and are the labels.

    Of the chosen tokens 80 % become the mask token, 10 % a random token, 10 % stay
    (J. Devlin and others, "BERT", 2019). Which are chosen depends on seed, epoch and the
    token's number in the store, so that a token in two windows is masked in both.
    """

    probability: float = 0.15
    """Share of tokens that are chosen."""
    whole_word: bool = False
    """Choose whole words: the tokens must carry the column ``word_starts``
    (``tokenize(..., words=True)`` makes it)."""
    mask_id: int | None = None
    """Id of the mask token; None: the one the tokens declare."""


@dataclass(frozen=True)
class Shared:
    """The arguments of ``Windows`` that do not depend on the window's length. For their meaning see there."""

    pack: Pack
    tail: Tail
    min_remainder: int
    align: Literal["sentence"] | None
    offset: int | Literal["random"]
    labels: Labels
    overlap_labels: bool
    outputs: tuple[str, ...]
    positions: Positions
    objective: MLM | None
    separate_documents: bool
    mask_dtype: str


@dataclass(frozen=True)
class Settings(Shared):
    """The arguments of ``Windows`` for one window length, checked against one another."""

    window: int
    stride: int | DynamicStride

    def __post_init__(self) -> None:
        _check_choices(self)
        _check_window(self)
        _check_packing(self)
        _check_objective(self)

    @property
    def parameters(self) -> dict[str, Any]:
        """All that is declared, by name, with what stands for a density in the place of a function."""
        values = {field.name: _written(getattr(self, field.name)) for field in fields(self)}
        if isinstance(self.stride, DynamicStride):
            values["stride"] = self.stride.declared(self.window)
        if self.objective is not None:
            values["objective"] = tuple(map(_written, astuple(self.objective)))
        return values


def buckets_of(window: Any, stride: Any, shared: Shared) -> tuple[Settings, ...]:
    """Return one ``Settings`` for each window length.

    Args:
        window: One length or several.
        stride: None for the window's length; one for all, or as many as there are lengths.
        shared: The other arguments.

    Raises:
        TextError: They do not fit together.
    """
    windows = list(map(_plain, window)) if _is_several(window) else [_plain(window)]
    strides = list(map(_plain, stride)) if _is_several(stride) else [_plain(stride)] * len(windows)
    for length in windows:
        check_integer("window", length, 1, _LONGEST)
    if not windows or len(strides) != len(windows) or len(set(windows)) != len(windows):
        raise TextError(
            f"window={window!r}, stride={stride!r}: give at least one length, each once, and one stride for "
            "all or one for each."
        )
    if len(windows) > 1 and (shared.pack == "best_fit" or shared.separate_documents):
        raise TextError(
            f"window={windows}: several lengths go neither with pack='best_fit' nor with "
            "separate_documents=True. Give one length, or make a Windows and a loader for each."
        )
    shared_values = {field.name: getattr(shared, field.name) for field in fields(shared)}
    return tuple(
        Settings(**shared_values, window=length, stride=length if step is None else step)
        for length, step in zip(windows, strides, strict=True)
    )


def _is_several(value: Any) -> bool:
    """Whether several lengths were given; a text is one wrong one."""
    return isinstance(value, Sequence) and not isinstance(value, str)


_CHOICES: dict[str, tuple[Any, ...]] = {
    "pack": (False, "concat", "best_fit"),
    "overlap_labels": (True, False),
    "separate_documents": (False, True),
    "tail": ("pad", "drop", "shift"),
    "align": (None, "sentence"),
    "labels": ("next", "same"),
    "positions": ("segment", "window", "document"),
}


def _check_choices(settings: Settings) -> None:
    for name, allowed in _CHOICES.items():
        found = getattr(settings, name)
        if not any(type(found) is type(choice) and found == choice for choice in allowed):
            raise TextError(
                f"{name}={found!r}: expected one of {', '.join(map(repr, allowed))}."
                + did_you_mean(str(found), [str(choice) for choice in allowed])
            )


def _check_window(settings: Settings) -> None:
    window, stride = settings.window, settings.stride
    check_integer("min_remainder", settings.min_remainder, 0, None)
    if isinstance(stride, DynamicStride):
        _check_dynamic(stride, settings)
        return
    if not _is_integer(stride) or not 1 <= stride <= window:
        raise TextError(
            f"stride={stride!r}: with window={window} it must be an integer in [1, {window}]; a larger one "
            "would skip tokens. stride=None takes the window's length."
        )
    if settings.min_remainder > stride and stride < window:
        raise TextError(
            f"min_remainder={settings.min_remainder} counts new tokens, and with stride={stride} a window "
            f"after the first has at most {stride} of them. Give at most {stride}, or tail='drop'."
        )
    if not (isinstance(settings.offset, str) and settings.offset == "random"):
        check_integer("offset", settings.offset, 0, stride - 1)


def _check_dynamic(stride: DynamicStride, settings: Settings) -> None:
    if settings.offset != 0 or settings.align is not None:
        raise TextError("DynamicStride sets every start itself: leave offset=0 and align=None with it.")
    named = isinstance(stride.density, str) and stride.density in ("edges", "surprisal")
    if not named and not callable(stride.density):
        raise TextError(
            f"DynamicStride(density={stride.density!r}): expected 'edges', 'surprisal' or a function from "
            "token ids to non-negative float64 [L]."
            + did_you_mean(str(stride.density), ("edges", "surprisal"))
        )
    maximum = settings.window if stride.maximum is None else stride.maximum
    check_integer("DynamicStride(minimum)", stride.minimum, 1, settings.window)
    check_integer("DynamicStride(maximum)", maximum, stride.minimum, settings.window)
    if not is_number(stride.mean) or not stride.minimum <= stride.mean <= maximum:
        raise TextError(
            f"DynamicStride(mean={stride.mean!r}): expected a number in [{stride.minimum}, {maximum}], "
            "between minimum and maximum."
        )


def _check_packing(settings: Settings) -> None:
    if settings.pack != "best_fit":
        return
    wrong = [
        f"{name}={getattr(settings, name)!r} (must be {right!r})"
        for name, right in (
            ("stride", settings.window),
            ("offset", 0),
            ("align", None),
            ("tail", "pad"),
            ("min_remainder", 0),
        )
        if getattr(settings, name) != right
    ]
    if wrong:
        raise TextError(
            f"pack='best_fit' cuts documents into pieces of {settings.window} tokens: {', '.join(wrong)}. "
            "Leave them out, or use pack='concat'."
        )


def _check_objective(settings: Settings) -> None:
    objective = settings.objective
    if objective is not None and not isinstance(objective, MLM):
        raise TextError(f"objective={objective!r}: expected None or MLM(probability=0.15, whole_word=False).")
    if objective is not None and not (is_number(objective.probability) and 0 <= objective.probability <= 1):
        raise TextError(f"MLM(probability={objective.probability!r}): expected a share in [0, 1].")
    if objective is not None and not isinstance(objective.whole_word, bool):
        raise TextError(f"MLM(whole_word={objective.whole_word!r}): expected True or False.")
    if objective is not None and not {"input_ids", "labels"} <= set(settings.outputs):
        raise TextError(f"MLM fills input_ids and labels; outputs={settings.outputs} must name both.")
    if settings.separate_documents and settings.pack is not False:
        raise TextError(
            f"separate_documents=True with pack={settings.pack!r}: a packed row holds several documents. "
            "Use pack=False."
        )


def check_integer(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Check that an argument is an integer in ``[least, most]``.

    Raises:
        TextError: It is not.
    """
    if not _is_integer(value) or not least <= value <= (_LARGEST if most is None else most):
        allowed = f"at least {least}" if most is None else f"in [{least}, {most}]"
        raise TextError(f"{name}={value!r}: expected an integer {allowed}.")


def fingerprint_of(value: Any) -> str | None:
    """Return what an object's own ``__fingerprint__()`` says; None where it has none.

    Raises:
        TextError: It failed.
    """
    own = getattr(value, "__fingerprint__", None)
    if isinstance(value, type) or not callable(own):
        return None
    try:
        return str(own())
    except Exception as error:
        name = type(value).__qualname__
        raise TextError(f"{name}.__fingerprint__() failed: {type(error).__name__}: {error}") from error


def check_draw(seed: Any, epoch: Any) -> None:
    """Check what decides random cuts and masked tokens: any integer, and one of at least 0.

    Raises:
        TextError: They are not.
    """
    if not _is_integer(seed):
        raise TextError(f"seed={seed!r}: expected an integer.")
    check_integer("epoch", epoch, 0)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number, and no boolean."""
    if isinstance(value, (float, np.floating)):
        return bool(np.isfinite(value))
    return _is_integer(value)


def _plain(value: Any) -> Any:
    """Return NumPy's integers as Python's."""
    return int(value) if isinstance(value, np.integer) else value


def _written(value: Any) -> Any:
    """Return NumPy's numbers as Python's: how a number was written makes no other windows."""
    return value.item() if isinstance(value, np.generic) else value


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def mask_dtype_of(given: DTypeLike) -> str:
    """Return the dtype of ``attention_mask`` by name.

    Raises:
        TextError: It is neither int64 nor bool.
    """
    name = dtype_name(given, _MASK_DTYPES)
    if name is None:
        raise TextError(
            f"mask_dtype={given!r}: expected one of {', '.join(map(repr, _MASK_DTYPES))}."
            + did_you_mean(str(given), _MASK_DTYPES)
        )
    return name


def check_outputs(outputs: Any, columns: Sequence[str]) -> tuple[str, ...]:
    """Check the names of the wanted arrays.

    Raises:
        TextError: One is unknown, or stands twice.
    """
    known = [*TOKEN_OUTPUTS, *ROW_OUTPUTS, *columns]
    if isinstance(outputs, str):
        raise TextError(f"outputs={outputs!r}: expected a tuple of names, such as ({outputs!r},).")
    if not isinstance(outputs, Sequence) or not outputs or not all(isinstance(o, str) for o in outputs):
        raise TextError(
            f"outputs={outputs!r}: expected a tuple of names, at least one of {', '.join(known)}."
        )
    for name in outputs:
        if name not in known:
            raise TextError(
                f"outputs: {name!r} is unknown; there are {', '.join(known)}." + did_you_mean(name, known)
            )
    if len(set(outputs)) != len(outputs):
        raise TextError(f"outputs={tuple(outputs)}: a name stands twice.")
    return tuple(outputs)
