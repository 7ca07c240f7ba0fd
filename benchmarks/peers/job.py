"""What every contender of the build benchmark is asked to do.

- A row whose price is no number is left out.
- Rows before ``SPLIT`` are train, the others valid.
- Vocabularies count train rows alone: ``user_id`` keeps values seen twice, ``creative_id`` and the
  elements of ``history`` share one that keeps values seen twice, the others keep all. Tags are a set:
  a tag counts once a row.
- Ids: 0 padding, 1 unknown, 2 missing, then values by falling count, ties by their text.
- ``price`` becomes ``log1p``, float32. ``history`` keeps its last 50. ``tags``: the 8
  most frequent, ascending.
- ``convert``: converted within a day of the click and before the split's end; known for clicks whose
  day is over by then, otherwise null.
- Train and valid go to disk, uncompressed, as Arrow or Parquet; vocabularies too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

SPLIT = 1_749_427_200  # 2025-06-09T00:00:00Z
DAY = 86_400
PAD, UNKNOWN, MISSING, FIRST = 0, 1, 2, 3
MAX_HISTORY, MAX_TAGS = 50, 8
MIN_COUNT = {"user_id": 2, "creative": 2, "slot": 1, "device": 1, "city": 1, "os": 1, "tags": 1}
VOCABULARY = {
    "user_id": "user_id",
    "creative_id": "creative",
    "slot": "slot",
    "device": "device",
    "city": "city",
    "os": "os",
}
"""The vocabulary of each column that holds one value a row."""
COLUMNS = (
    "ts",
    "user_id",
    "creative_id",
    "slot",
    "device",
    "city",
    "os",
    "price",
    "history",
    "tags",
    "click",
    "conv_ts",
)


def summarise(out: Path, sizes: dict[str, int]) -> dict[str, Any]:
    """Return figures that two contenders who did the same job share, from what lies on disk.

    Args:
        out: Holds ``train`` and ``valid``, each a file or a folder of ``.arrow`` or ``.parquet``.
        sizes: Rows of each vocabulary's table, with the three reserved ids.
    """
    figures: dict[str, Any] = {f"{name} vocabulary": size for name, size in sizes.items()}
    for split in ("train", "valid"):
        for batch in _batches(out, split):
            for name, value in _figures(batch).items():
                key = f"{split} {name}"
                figures[key] = figures.get(key, 0) + value
    return {name: round(value, 1) if isinstance(value, float) else value for name, value in figures.items()}


def _batches(out: Path, split: str) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in sorted([*out.glob(f"{split}*"), *out.glob(f"{split}/**/*")]):
        if path.suffix == ".parquet":
            yield from pq.ParquetFile(path).iter_batches()
        elif path.suffix == ".arrow":
            with pa.memory_map(str(path)) as source:
                reader = _open(source)
                yield from reader


def _open(source: Any) -> Iterator[Any]:
    import pyarrow as pa

    try:
        file = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return iter(pa.ipc.open_stream(source))
    return (file.get_batch(number) for number in range(file.num_record_batches))


def _figures(batch: Any) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    def total(column: Any) -> Any:
        return pc.sum(column).as_py() or 0

    figures: dict[str, Any] = {"rows": batch.num_rows}
    for name in VOCABULARY:
        figures[name] = total(pc.fill_null(batch[name].cast(pa.int64()), MISSING))
    for name in ("history", "tags"):
        elements = pc.list_flatten(batch[name])
        figures |= {f"{name} elements": len(elements), name: total(elements.cast(pa.int64()))}
    figures["price"] = float(total(batch["price"].cast(pa.float64())))
    figures["click"] = int(total(batch["click"].cast(pa.float64())))
    known = batch["convert"].cast(pa.float64())
    return figures | {"convert": int(total(known)), "convert known": len(known) - known.null_count}
