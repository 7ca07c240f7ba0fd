"""The order of a vocabulary, in memory and in files, against plain Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.fit.counting import ValueCounts
from headrace.fit.ranking import rank
from headrace.fit.rules import Rules
from headrace.fit.vocabulary import Vocabulary
from headrace.kernels.ranking import BLOCK
from headrace.scratch import IN_MEMORY, Scratch


@given(
    counted=st.dictionaries(
        st.text("ab\0é漢", max_size=4) | st.integers(0, 99).map(str), st.integers(1, 4), max_size=30
    ),
    start=st.sampled_from(["", "user_", "longer than a head "]),
    min_count=st.integers(1, 3),
    max_size=st.integers(0, 12) | st.none(),
)
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_order_is_that_of_the_definition(
    tmp_path: Path, counted: dict[str, int], start: str, min_count: int, max_size: int | None
) -> None:
    counted = {start + value: count for value, count in counted.items()}
    values, counts = pa.array(list(counted), pa.large_string()), np.array(list(counted.values()), np.int64)
    rules = Rules(min_count, max_size)
    ranked = sorted(range(len(counted)), key=lambda i: (-counts[i], values[i].as_py().encode()))
    expected = [place for place in ranked if counts[place] >= min_count][:max_size]
    for scratch in (IN_MEMORY, Scratch(tmp_path, 16)):
        assert rank(values, counts, rules, scratch).tolist() == expected


@pytest.mark.parametrize("size", [BLOCK - 1, BLOCK + 1, 3 * BLOCK + 7])
def test_more_values_than_a_block(size: int, tmp_path: Path) -> None:
    texts = [f"{i * 7919 % size:x} and so on" if i % 3 else f"{i:012}" for i in range(size)]
    texts = list(dict.fromkeys(texts))
    counts = np.arange(len(texts), dtype=np.int64) * 31 % 5
    expected = sorted(np.flatnonzero(counts >= 1).tolist(), key=lambda i: (-counts[i], texts[i]))
    values = pa.array(texts, pa.large_string())
    assert rank(values, counts, Rules(), Scratch(tmp_path, 1 << 16)).tolist() == expected


def test_a_vocabulary_made_in_files_is_the_one_made_in_memory(tmp_path: Path) -> None:
    texts = pa.array(
        [*(str(7919 * i % 5000) for i in range(9000)), *(f"t{i % 700}" for i in range(3000)), None]
    )
    made = []
    for name, scratch in (("memory", IN_MEMORY), ("files", Scratch(tmp_path / "scratch", 64))):
        counts = ValueCounts(scratch)
        for start in range(0, len(texts), 4001):
            part = texts.slice(start, 4001).dictionary_encode()
            seen = np.bincount(part.indices.drop_null().to_numpy(), minlength=len(part.dictionary))
            with_missing = np.append(seen, part.null_count).astype(np.int64)
            counts.add(part.dictionary.cast(pa.large_string()), with_missing, 2)
        vocabulary = counts.vocabulary(Rules(min_count=2, missing_id=2))
        vocabulary.save(tmp_path / name / "v.arrow", scratch)
        loaded = Vocabulary.load(tmp_path / name / "v.arrow")
        assert loaded.encode(texts).tolist() == vocabulary.encode(texts).tolist()
        made.append([(tmp_path / name / file).read_bytes() for file in ("v.arrow", "v.index.arrow")])
    assert made[0] == made[1]


def test_large_arrays_lie_in_files(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, 100)
    assert isinstance(scratch.empty(1000, np.int64).base, np.memmap)
    assert not isinstance(scratch.empty(10, np.int64).base, np.memmap)
    assert scratch.zeros(1000, np.int64).sum() == 0
    assert scratch.full(1000, 7, np.int64).tolist() == [7] * 1000
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [0, 1, 12])
def test_without_a_folder_everything_is_in_memory(size: int) -> None:
    assert not IN_MEMORY.is_large(1 << 60)
    assert IN_MEMORY.empty(size, np.int8).nbytes == size
