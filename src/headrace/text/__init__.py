"""What a document is: clean, tokenize, cut into windows, pack, mask."""

from headrace.text.cleaning import clean
from headrace.text.masks import cu_seqlens, document_mask
from headrace.text.readers import from_bin, from_megatron, from_parquet
from headrace.text.settings import MLM, DynamicStride
from headrace.text.tokenizing import tokenize
from headrace.text.tokens import Tokens
from headrace.text.windows import Windows

__all__ = [
    "MLM",
    "DynamicStride",
    "Tokens",
    "Windows",
    "clean",
    "cu_seqlens",
    "document_mask",
    "from_bin",
    "from_megatron",
    "from_parquet",
    "tokenize",
]
