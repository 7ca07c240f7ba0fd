"""Machine code of kernels: kept on disk, loaded without Numba, called by CPython itself.

``signature``: which types a call has. ``fingerprint``: what a kernel's machine code depends on.
``files``: machine code on disk. ``translate``: Python function to machine code, with Numba.
``entry``: the part of it that CPython calls, arguments in and result out. ``runtime``: memory for
arrays that kernels allocate. ``link``: machine code to a Python callable, with LLVM alone.
"""
