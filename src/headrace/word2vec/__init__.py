"""word2vec: from a corpus to skip-gram and CBOW minibatches."""

from headrace.word2vec.collate import batchify
from headrace.word2vec.corpus import Corpus
from headrace.word2vec.figure import plot_subsampling
from headrace.word2vec.noise import keep_probabilities
from headrace.word2vec.ptb import Batches, load_data_ptb
from headrace.word2vec.reading import read_corpus, read_sentences
from headrace.word2vec.space import CBOW, SkipGram

__all__ = [
    "CBOW",
    "Batches",
    "Corpus",
    "SkipGram",
    "batchify",
    "keep_probabilities",
    "load_data_ptb",
    "plot_subsampling",
    "read_corpus",
    "read_sentences",
]
