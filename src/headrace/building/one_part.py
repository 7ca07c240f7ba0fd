"""A source as one part, made through files: a joined table may be larger than the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from headrace.building.plan import ParsePlan
from headrace.building.settings import Settings
from headrace.building.spool import BatchSpool
from headrace.disk import TEMPORARY_SUFFIX
from headrace.engine.local import run_in_order
from headrace.parse.part import PartReader, save_part
from headrace.sources import Batch, Block


def save_one_part(
    blocks: Iterable[Block],
    parse: Callable[[Block], Batch],
    plan: ParsePlan,
    path: Path,
    settings: Settings,
    finish: Callable[[Path], None],
) -> None:
    """Parse blocks, several at once, and save their rows as one part.

    Args:
        blocks: In the order of the rows.
        parse: Makes arrays of a block; called from several threads.
        plan: What is read.
        path: Where the part is to be; files beside it hold what was parsed so far.
        settings: Threads and memory.
        finish: As ``save_part`` has it.
    """
    with BatchSpool(path.with_name(f"{path.name}-columns{TEMPORARY_SUFFIX}")) as columns:
        reader = PartReader(plan.readings, plan.checks, columns, settings.scratch(path.parent))
        for batch in run_in_order(parse, blocks, settings.workers):
            reader.add(batch)
        save_part(reader.part(), path, finish)
