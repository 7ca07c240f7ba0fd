"""Names of the columns of a shard that no spec declares."""

from __future__ import annotations

ID = "__id__"
"""string: the value of the column that ``[id]`` declares."""
FILE = "__file__"
"""uint32: the number of the source file, where no ``[id]`` is declared."""
ROW = "__row__"
"""uint64: the 0-based data row in that file."""
TIME = "__time__"
"""int64: the row's own time in microseconds, where ``[time]`` is declared."""
