"""Window and stride against cost: a table to look at before a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.text.summary import Summary

_HEAD = (
    f"{'window':>8} {'stride':>8} {'samples':>14} {'tokens':>18} "
    f"{'repetition':>11} {'padding':>8} {'left out':>12}"
)


@dataclass(frozen=True)
class PlanRow:
    """One choice of window and stride, and what it costs."""

    window: int
    stride: int
    samples: int
    """Rows of an epoch."""
    tokens: int
    """Tokens in them, repeated ones counted as often as they come."""
    repetition: float
    """How often a token comes, on average."""
    padding: float
    """Share of places without a token."""
    left_out: int
    """Tokens that no row holds."""

    @classmethod
    def of(cls, window: int, stride: int, summary: Summary) -> PlanRow:
        """Take a row's numbers from a summary."""
        return cls(
            window,
            stride,
            summary.windows,
            summary.tokens_in_rows,
            summary.repetition,
            summary.padding_share,
            summary.tokens_left_out,
        )


@dataclass(frozen=True)
class Plan(Sequence[PlanRow]):
    """A table of choices; ``str()`` of it is for reading, its rows are for computing."""

    rows: tuple[PlanRow, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: Any) -> Any:
        return self.rows[number]

    def __str__(self) -> str:
        return "\n".join([_HEAD, *map(_line, self.rows)])


def _line(row: PlanRow) -> str:
    return (
        f"{row.window:>8,} {row.stride:>8,} {row.samples:>14,} {row.tokens:>18,} "
        f"{row.repetition:>11.2f} {row.padding:>8.1%} {row.left_out:>12,}"
    )
