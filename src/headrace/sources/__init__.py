"""Others' bytes as Arrow arrays that know where they came from."""

from headrace.sources.batch import BadRow, Batch, Block, Column, Kind
from headrace.sources.files import SourceFile, find_files
from headrace.sources.quarantine import QuarantinedRow, read_quarantine, write_quarantine
from headrace.sources.reader import BLOCK_BYTES, Reader, SourceLike, open_source

__all__ = [
    "BLOCK_BYTES",
    "BadRow",
    "Batch",
    "Block",
    "Column",
    "Kind",
    "QuarantinedRow",
    "Reader",
    "SourceFile",
    "SourceLike",
    "find_files",
    "open_source",
    "read_quarantine",
    "write_quarantine",
]
