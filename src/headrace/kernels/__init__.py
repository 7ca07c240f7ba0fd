"""Compiled loops over plain arrays: no Arrow, no paths, no specs, no strings.

Every kernel releases the GIL (a brief one where there is much to do), is cached on
disk, and has a plain NumPy or Python reference in ``tests/kernels`` that a property test compares it with.
"""
