"""The same bits for any number of threads and ranks, and after any resume."""

from __future__ import annotations

import json

import numpy as np
import pytest

from headrace.errors import LoaderError, StateError
from headrace.fit.vocabulary import Vocabulary
from headrace.testing import check_sample_space
from headrace.word2vec import CBOW, SkipGram

WORDS = [f"w{rank}" for rank in range(60)]
SENTENCES = [[WORDS[(row * 7 + k * k) % 60] for k in range(3 + row % 11)] for row in range(120)]
VOCABULARY = Vocabulary.fit(WORDS)


def space_of(kind: type[SkipGram] | type[CBOW] = SkipGram, **options: object) -> SkipGram | CBOW:
    return kind(SENTENCES, VOCABULARY, window=3, negatives=2, **({"subsample": 0.02} | options))  # type: ignore[arg-type]


def trimmed(batches: object) -> list[tuple[int, list[int], int]]:
    """Centre, live cells and number of contexts of each sample, in order."""
    return [
        (int(center[0]), filled[mask == 1].tolist(), int(label.sum()))
        for batch in batches  # type: ignore[attr-defined]
        for center, filled, mask, label in zip(
            *(batch[name] for name in ("centers", "contexts_negatives", "masks", "labels")), strict=True
        )
    ]


@pytest.mark.parametrize("kind", [SkipGram, CBOW])
@pytest.mark.parametrize("width", ["max", "batch"])
def test_laws_of_every_sample_space(kind: type[SkipGram], width: str) -> None:
    check_sample_space(space_of(kind, width=width))


@pytest.mark.parametrize("kind", [SkipGram, CBOW])
def test_threads_and_batch_size_do_not_matter(kind: type[SkipGram]) -> None:
    expected = trimmed(space_of(kind).loader(batch_size=1000, shuffle="global", seed=5, threads=0))
    for threads, size in [(0, 7), (1, 16), (3, 16)]:
        loader = space_of(kind).loader(batch_size=size, shuffle="global", seed=5, threads=threads)
        assert trimmed(loader) == expected
    unlike = space_of(kind).loader(batch_size=7, shuffle="global", seed=6, threads=0)
    assert trimmed(unlike) != expected


def test_ranks_share_the_samples_of_each_step() -> None:
    def loader(rank: int, world_size: int) -> list[dict[str, np.ndarray]]:
        return list(
            space_of().loader(
                global_batch_size=12, shuffle="global", seed=5, rank=rank, world_size=world_size, threads=0
            )
        )

    one = loader(0, 1)
    for world_size in (2, 3, 5):
        parts = [loader(rank, world_size) for rank in range(world_size)]
        for step, whole in enumerate(one):
            assert trimmed([part[step] for part in parts]) == trimmed([whole])


@pytest.mark.parametrize("steps", [0, 1, 9])
def test_resume_goes_on_with_the_same_draws(steps: int) -> None:
    options = {"shuffle": "global", "seed": 5, "epoch": 2, "threads": 0}
    unbroken = trimmed(space_of().loader(batch_size=10, **options))
    loader = space_of().loader(batch_size=10, **options)
    for _, _ in zip(range(steps), loader, strict=False):
        pass
    state = json.loads(json.dumps(loader.state_dict()))
    resumed = space_of().loader(batch_size=4, **options)
    resumed.load_state_dict(state)
    assert trimmed(resumed) == unbroken[10 * steps :]


def test_a_state_of_other_settings_is_refused_by_name() -> None:
    state = space_of().loader(batch_size=4).state_dict()
    with pytest.raises(StateError, match="window"):
        space_of_window_2().loader(batch_size=4).load_state_dict(state)


def space_of_window_2() -> SkipGram:
    return SkipGram(SENTENCES, VOCABULARY, window=2, negatives=2, subsample=0.02)


def test_epochs_draw_anew_and_every_kept_token_is_a_centre_once() -> None:
    space = space_of()
    loader = space.loader(batch_size=16, shuffle="global", seed=5, threads=0)
    seen = []
    for epoch in range(3):
        samples = trimmed(loader)
        centers = sorted(center for center, _, _ in samples)
        assert centers == sorted(space.at(5, epoch).words.tolist())
        seen.append(samples)
    assert seen[0] != seen[1] != seen[2]


def test_filling_rows_are_zero_and_not_valid() -> None:
    batches = list(space_of().loader(batch_size=16, last="pad", threads=0))
    last = batches[-1]
    assert last["valid"].tolist() == sorted(last["valid"].tolist(), reverse=True)
    for name in ("centers", "contexts_negatives", "masks", "labels"):
        assert not last[name][~last["valid"]].any()


def test_labels_are_the_targets() -> None:
    batch = next(iter(space_of().loader(batch_size=4, group=True, threads=0)))
    assert list(batch["targets"]) == ["labels"]
    assert list(batch["inputs"]) == ["centers", "contexts_negatives", "masks"]


def test_an_exhausted_vocabulary_names_the_centre_through_the_loader() -> None:
    space = CBOW([["w0", "w1"]], VOCABULARY, subsample=None)
    with pytest.raises(LoaderError, match=r"centre 'w[01]' at epoch position.*exhausted='mask'"):
        list(space.loader(batch_size=2))


def test_an_epoch_of_nothing_has_no_batches() -> None:
    loader = SkipGram([["w0"]], VOCABULARY).loader(batch_size=2)
    assert (len(loader), list(loader)) == (0, [])
