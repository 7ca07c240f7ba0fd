"""What a document is: clean, tokenize, cut into windows, pack, mask."""

from headrace.text.masks import cu_seqlens, document_mask
from headrace.text.settings import MLM, DynamicStride
from headrace.text.tokens import Tokens
from headrace.text.windows import Windows

__all__ = ["MLM", "DynamicStride", "Tokens", "Windows", "cu_seqlens", "document_mask"]
