"""Loaders of encoded rows, to be run beside headrace: the same batches of the same data from each.

``layout.py`` says what the data and a batch are, ``contenders.py`` who takes part and with which settings.
"""
