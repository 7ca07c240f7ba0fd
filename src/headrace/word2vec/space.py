"""Skip-gram and CBOW as sample spaces: a sample is one centre word with its contexts and negatives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from headrace.errors import CorpusError
from headrace.fit.vocabulary import Vocabulary
from headrace.kernels.alias import LARGEST_TABLE
from headrace.kernels.rng import stream_key
from headrace.kernels.skipgram import keep_tokens, kept_lengths
from headrace.loading.loader import Loader
from headrace.loading.space import Role
from headrace.word2vec.corpus import COLUMN, Corpus, as_corpus
from headrace.word2vec.epoch import Epoch
from headrace.word2vec.noise import Noise, keep_probabilities, keep_thresholds
from headrace.word2vec.reading import OWN_UNKNOWN
from headrace.word2vec.settings import Exhausted, NegativesPer, Settings, Width
from headrace.word2vec.spool import take_room

_LARGEST_SMALL = 1 << 15
_SPARE_DEVIATIONS = 12
_SPARE_TOKENS = 64


class CenterSpace:
    """Centre words with their contexts and noise words: what ``SkipGram`` and ``CBOW`` share.

    Each epoch keeps its own tokens (subsampling), and each centre draws its own
    window and negatives. A batch is int64:

        centers            [B, 1]   the centre word
        contexts_negatives [B, M]   its contexts in reading order, then negatives, then PAD = 0
        masks              [B, M]   1 for contexts and negatives, 0 for padding
        labels             [B, M]   1 for contexts, 0 elsewhere

    UNKNOWN (a literal ``<unk>`` of the corpus too) is removed before windows are cut, and
    never drawn; neither is a context of the same centre.
    An epoch holds its kept tokens, 2 bytes each where the vocabulary has at most
    32,768 ids and 4 bytes else; the corpus itself stays where it lies.
    """

    _predicts_center: ClassVar[bool]
    """Whether the centre is the one right answer, and not the contexts."""
    _negatives_per: ClassVar[NegativesPer]
    """What noise words are counted by where nothing else is said."""

    def __init__(
        self,
        corpus: Any,
        vocabulary: Vocabulary,
        window: int = 5,
        negatives: int = 5,
        negatives_per: NegativesPer | None = None,
        subsample: float | None = 1e-4,
        power: float = 0.75,
        width: Width = "batch",
        *,
        exhausted: Exhausted = "error",
        column: str = COLUMN,
        scratch: Path | str | None = None,
    ) -> None:
        """Count the corpus, and fix what a sample is.

        Args:
            corpus: Sentences: a ``Corpus``, a token store, a ``Dataset``, an Arrow list array, or
                lists; lists of words are encoded, integers are ids of the vocabulary.
            vocabulary: The words.
            window: Largest window, at least 1; each centre draws its own from ``1..window``.
            negatives: Noise words for each pair or centre, at least 0.
            negatives_per: ``"pair"``: for each context; ``"center"``: for each centre. ``None``: pair
                in ``SkipGram``, centre in ``CBOW``.
            subsample: Threshold t of the keep rule ``min(1, sqrt(t / f))``; ``None`` keeps all.
            power: Noise is drawn in proportion to count to this power.
            width: ``"batch"``: M is the longest row of the batch; ``"max"``: always the longest possible.
            exhausted: What becomes of a centre whose contexts are all the words there are:
                ``"error"``, or ``"mask"``: its row has no negatives.
            column: The column of a ``Dataset`` that holds the sentences.
            scratch: Folder for an unnamed file that holds an epoch's kept tokens; ``None``: memory.

        Raises:
            CorpusError: A setting is impossible, or no word of the vocabulary occurs in the corpus.
        """
        per = self._negatives_per if negatives_per is None else negatives_per
        self.settings = Settings(
            window, negatives, per, subsample, power, width, exhausted, self._predicts_center
        )
        self.settings.check()
        if not isinstance(vocabulary, Vocabulary):
            raise CorpusError(
                f"vocabulary: found a {type(vocabulary).__name__}, expected a Vocabulary, such as "
                "Vocabulary.fit(sentences) and read_corpus return."
            )
        if len(vocabulary) > LARGEST_TABLE:
            raise CorpusError(
                f"the vocabulary has {len(vocabulary)} ids; at most {LARGEST_TABLE} are supported."
            )
        self.vocabulary = vocabulary
        self.corpus = as_corpus(corpus, vocabulary, column)
        self.scratch = scratch
        self.counts = _word_counts(self.corpus, vocabulary)
        self._thresholds = keep_thresholds(self.keep_probabilities)
        self.noise = Noise.from_counts(self.counts, self.settings.power)

    @property
    def keep_probabilities(self) -> NDArray[np.float64]:
        """float64 [V], with which probability each word is kept; 0 for ids that are removed."""
        return keep_probabilities(self.counts, self.settings.subsample)

    @cached_property
    def fingerprint(self) -> str:
        """Hexadecimal digest of the corpus, the vocabulary's size and every setting."""
        parts = (type(self).__name__, self.corpus.fingerprint, len(self.vocabulary), self.settings)
        digest = xxhash.xxh3_128(repr(parts).encode())
        digest.update(self.counts.data)
        return digest.hexdigest()

    @property
    def parameters(self) -> Mapping[str, str]:
        """The settings by name, so that a refused state names the one that differs."""
        return {"kind": type(self).__name__} | {
            name: repr(value) for name, value in asdict(self.settings).items()
        }

    @property
    def fill(self) -> Mapping[str, float]:
        """Filling rows hold 0 everywhere: PAD, and a mask of 0."""
        return {}

    @property
    def roles(self) -> Mapping[str, Role]:
        """The labels are the targets."""
        return {"labels": "targets"}

    def at(self, seed: int, epoch: int) -> Epoch:
        """Draw which tokens the epoch keeps, in one compiled pass over the corpus."""
        key = _subsample_key(seed, epoch)
        kept = self._kept(key, _likely_room(self.counts, self.keep_probabilities))
        if kept is None:
            kept = self._kept(key, int(self.counts.sum()) + 1)
        assert kept is not None
        sample_key = stream_key(seed, epoch, "word2vec.sample")
        return Epoch(self.settings, self.noise, self.vocabulary, kept, sample_key)

    def _kept(self, key: np.uint64, room: int) -> NDArray[np.unsignedinteger[Any]] | None:
        """Return the kept tokens, or ``None`` where they need more room."""
        kept = self._room(room)
        length = first = 0
        for shard in self.corpus.shards:
            length = keep_tokens(shard.ids, shard.offsets, first, self._thresholds, key, kept, length)
            if length < 0:
                return None
            first += shard.num_tokens
        return kept[:length]

    def lengths(self, seed: int, epoch: int) -> NDArray[np.int64]:
        """Return how many tokens the epoch keeps of each sentence, int64 [N]; 0 and 1 are counted too."""
        parts = [np.empty(0, np.int64)]
        first = 0
        for shard in self.corpus.shards:
            key = _subsample_key(seed, epoch)
            parts.append(kept_lengths(shard.ids, shard.offsets, first, self._thresholds, key))
            first += shard.num_tokens
        return np.concatenate(parts)

    def loader(self, **options: Any) -> Loader:
        """Return a ``Loader`` over the centres.

        Args:
            **options: The loader's own: ``batch_size``, ``shuffle``, ``seed``, ``output`` and so on.
        """
        return Loader(self, **options)

    def _room(self, tokens: int) -> NDArray[np.unsignedinteger[Any]]:
        """Return room for so many tokens, in memory or in an unnamed file of the scratch folder."""
        return take_room(
            tokens, np.uint16 if len(self.vocabulary) <= _LARGEST_SMALL else np.uint32, self.scratch
        )


class SkipGram(CenterSpace):
    """Centre words that predict their contexts; ``CenterSpace`` says what a batch holds.

    Negatives are none of the centre's contexts; the centre itself may be drawn.
    """

    _predicts_center = False
    _negatives_per = "pair"


class CBOW(CenterSpace):
    """Contexts that predict their centre; ``CenterSpace`` says what a batch holds.

    The contexts (``labels`` 1) are averaged; the average is scored against the centre, the
    one right answer, and against the negatives (``masks`` 1, ``labels`` 0), which are neither
    the centre nor one of its contexts.
    """

    _predicts_center = True
    _negatives_per = "center"


def _subsample_key(seed: int, epoch: int) -> np.uint64:
    return stream_key(seed, epoch, "word2vec.subsample")


def _likely_room(counts: NDArray[np.int64], keep: NDArray[np.float64]) -> int:
    """Return more tokens than an epoch keeps, but with a chance of 1 in 10**30."""
    mean, variance = float(counts @ keep), float(counts @ (keep * (1 - keep)))
    return math.ceil(mean + _SPARE_DEVIATIONS * math.sqrt(variance)) + _SPARE_TOKENS


def _word_counts(corpus: Corpus, vocabulary: Vocabulary) -> NDArray[np.int64]:
    """Count the words: PAD, UNKNOWN, MISSING, hash buckets and a literal ``<unk>`` are none."""
    counts = corpus.counts(len(vocabulary))
    first = vocabulary.rules.first_id
    counts[:first] = 0
    counts[first + len(vocabulary.values) :] = 0
    if OWN_UNKNOWN in vocabulary:
        counts[vocabulary[OWN_UNKNOWN]] = 0
    return counts
