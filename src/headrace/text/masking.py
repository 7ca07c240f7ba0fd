"""The masked-language-model objective over windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.errors import TextError
from headrace.kernels.masking import mask_tokens
from headrace.kernels.rng import stream_key
from headrace.loading.space import Batch
from headrace.text.runs import Runs
from headrace.text.settings import MLM
from headrace.text.streams import Streams, check_id
from headrace.text.tokens import Tokens

WORD_STARTS = "word_starts"
"""The parallel column that is 1 on the first token of each word."""
_STREAM = "masked tokens"
_MOST_IDS = 1 << 32


@dataclass(frozen=True, eq=False)
class Masking:
    """What hides tokens in one epoch."""

    streams: Streams
    objective: MLM
    mask_id: int
    key: np.uint64

    @classmethod
    def at(cls, streams: Streams, objective: MLM, seed: int, epoch: int) -> Masking:
        """Return the masking of one epoch: every epoch hides other tokens."""
        mask_id, _ = masked_by(streams.tokens, objective)
        return cls(streams, objective, mask_id, stream_key(seed, epoch, _STREAM))

    def apply(self, batch: Batch, runs: Runs) -> None:
        """Hide tokens of ``input_ids``, and write ``labels``, both in place."""
        tokens, whole_word = self.streams.tokens, self.objective.whole_word
        dtype = tokens.columns[WORD_STARTS][0].dtype if whole_word else np.uint8
        mask_tokens(
            self.streams.segments(runs),
            *self.streams.places,
            tokens.column_addresses[WORD_STARTS] if whole_word else tokens.addresses,
            np.empty(0, dtype),
            whole_word,
            self.key,
            np.uint64(round(self.objective.probability * 2**32)),
            self.mask_id,
            tokens.special.vocab_size,
            batch["input_ids"],
            batch["labels"],
        )


def masked_by(tokens: Tokens, objective: MLM) -> tuple[int, int]:
    """Return the id that hides a token, and the number of ids, after checking that the tokens can be masked.

    Raises:
        TextError: No mask token, no vocabulary size or no word starts are known.
    """
    size = tokens.special.vocab_size
    if size is None:
        raise TextError(
            "MLM replaces a tenth of the chosen tokens by random ids, and the tokens do not say how many "
            "ids there are. Give Tokens a vocab_size."
        )
    if size > _MOST_IDS:
        raise TextError(
            f"MLM draws random ids with 32 bits, and vocab_size={size}. Declare at most {_MOST_IDS} ids."
        )
    if objective.whole_word and WORD_STARTS not in tokens.columns:
        raise TextError(
            f"MLM(whole_word=True): the tokens carry no column {WORD_STARTS!r}. "
            "Make it with tokenize(..., words=True)."
        )
    mask_id = tokens.special.mask if objective.mask_id is None else objective.mask_id
    if mask_id is None:
        raise TextError("MLM: the tokens declare no mask token. Give its id: MLM(mask_id=...).")
    return check_id("mask_id", mask_id, tokens), size
