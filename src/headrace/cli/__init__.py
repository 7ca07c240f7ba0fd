"""The command line: ``headrace build | encode | verify | show``.

Exit codes: 0 done; 1 the data or the store is at fault; 2 the command is; 130 interrupted.
"""

from headrace.cli.app import main

__all__ = ["main"]
