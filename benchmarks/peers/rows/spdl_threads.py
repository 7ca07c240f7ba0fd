"""SPDL: the gather by hand over padded maps, in the threads of a pipeline."""

from __future__ import annotations

from pathlib import Path

from spdl.pipeline import PipelineBuilder

from peers.rows.layout import Batches, count, gather, padded_columns, shuffled


def padded(folder: Path, id_dtype: str, threads: int = 2, sink: int = 4, order: str = "input") -> Batches:
    """Gather batches on ``threads`` threads, ``sink`` of them ahead."""
    columns = padded_columns(folder, id_dtype)
    builder = PipelineBuilder().add_source(shuffled(count(folder)))
    builder = builder.pipe(
        lambda index: gather(columns, index, id_dtype), concurrency=threads, output_order=order
    )
    pipeline = builder.add_sink(sink).build(num_threads=threads)
    with pipeline.auto_stop():
        yield from pipeline.get_iterator()
