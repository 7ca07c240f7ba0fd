"""The state of a loader: a few numbers that say which samples have been delivered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from headrace.errors import StateError
from headrace.order.integers import integer

STATE_VERSION = 1
State: TypeAlias = dict[str, Any]

_FIELDS = ("version", "dataset", "space", "parameters", "order", "seed", "epoch", "position")


def make_state(identity: Mapping[str, Any], epoch: int, position: int) -> State:
    """Return the state of a loader that has delivered ``position`` samples of an epoch, over all ranks."""
    return {"version": STATE_VERSION, **identity, "epoch": epoch, "position": position}


def check_state(state: Mapping[str, Any], identity: Mapping[str, Any]) -> tuple[int, int]:
    """Return epoch and position of a state that belongs to this loader.

    Args:
        state: What ``state_dict`` gave, perhaps through JSON.
        identity: What this loader's own states hold: space, parameters, order, seed.

    Raises:
        StateError: It is of another dataset, order, seed, layout or version; the difference is named.
    """
    given: object = state
    known = given if isinstance(given, Mapping) else ()
    missing = [name for name in _FIELDS if name not in known]
    if missing:
        raise StateError(
            f"this is no loader state: {', '.join(missing)} missing. Give what state_dict() returned."
        )
    if state["version"] != STATE_VERSION:
        raise StateError(
            f"state is of version {state['version']}, this headrace reads version {STATE_VERSION}; "
            "load it with the headrace that wrote it, or start without a state."
        )
    _check_equal("seed", state["seed"], identity["seed"], "the order differs. Load it with loader(seed={})")
    _check_mapping("order", state["order"], identity["order"])
    _check_mapping("layout", state["parameters"], identity["parameters"])
    _check_equal(
        "dataset", state["dataset"], identity["dataset"], "the samples differ. Load it with that dataset"
    )
    selection = "the samples differ. Load it with the same selection and parameters of the space"
    _check_equal("space", state["space"], identity["space"], selection)
    return _count(state, "epoch"), _count(state, "position")


def _count(state: Mapping[str, Any], name: str) -> int:
    value = integer(f"state has {name}", state[name], StateError)
    if name == "position" and value < 0:
        raise StateError(f"state has position={value}; it must not be negative.")
    return value


def _check_equal(name: str, theirs: Any, ours: Any, advice: str) -> None:
    if theirs != ours:
        found = theirs if str(theirs) != str(ours) else repr(theirs)
        raise StateError(
            f"state is of {name} {found}, this loader has {name} {ours}: {advice.format(theirs)}, "
            "or start without a state."
        )


def _check_mapping(name: str, theirs: Any, ours: Mapping[str, Any]) -> None:
    """Compare key by key, so that the message names the one that differs."""
    known = theirs if isinstance(theirs, Mapping) else {}
    for key in sorted({*known, *ours}):
        if known.get(key) != ours.get(key):
            raise StateError(
                f"state has {name} {key}={known.get(key)!r}, this loader has {key}={ours.get(key)!r}: "
                f"the batches differ. Make the loader with the same {name}, or start without a state."
            )
