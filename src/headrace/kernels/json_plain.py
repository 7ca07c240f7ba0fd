"""Recognises rows of plain JSON and says where the wanted values stand.

A row is *plain* when it is one object, every wanted key stands in it at most once
at the top level, and nothing in it needs more than a look at its bytes: no escape
in a key or in a wanted string, no exponent in a wanted number, ``-0`` nowhere. It
is checked against the whole grammar of JSON (RFC 8259), so that what is accepted
here is valid; everything else is left to a JSON library, valid or not.

What is found of a wanted scalar in a row, and of each element of a wanted list:

    tag       NULL, INTEGER, TEXT or NUMBER
    value     int64: the integer, for INTEGER
    begin     int32: where the text or the literal begins in the block, for TEXT and NUMBER
    end       int32: where it ends; quotes are left out
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compile import inline, kernel

NULL = 0
INTEGER = 1
"""A decimal integer of at most 18 digits."""
TEXT = 2
"""A string without escapes, ``true``, ``false``, or an integer of more than 18 digits."""
NUMBER = 3
"""A number with a fraction and no exponent."""

SCALAR = 0
LIST = 1
SPAN = 2
"""Any value: what is noted is where it stands, with the tag TEXT."""

_MOST_DIGITS = 18
_DEEPEST = 60
_QUOTE, _BACKSLASH = 34, 92
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_LIST, _CLOSE_LIST = 123, 125, 91, 93
_COMMA, _COLON, _MINUS, _POINT, _ZERO, _NINE = 44, 58, 45, 46, 48, 57
_FAILED = np.int64(-1)


@inline
def at(array, place):  # type: ignore[no-untyped-def]
    """Return ``array[place]`` for a place that is not negative: an unsigned index needs no check for that."""
    return array[np.uintp(place)]


@inline
def skip_blanks(data, place, end):  # type: ignore[no-untyped-def]
    """Return the first place from ``place`` on that holds no blank, at most ``end``."""
    while place < end and (
        at(data, place) == 32 or at(data, place) == 9 or at(data, place) == 13 or at(data, place) == 10
    ):
        place += 1
    return place


@inline
def plain_string(data, place, end):  # type: ignore[no-untyped-def]
    """Return the place of the closing quote of a string whose text begins at ``place``; -1: not plain."""
    while place < end:
        byte = at(data, place)
        if byte == _QUOTE:
            return np.int64(place)
        if byte == _BACKSLASH or byte < 32:
            return _FAILED
        place += 1
    return _FAILED


@inline
def _any_string(data, place, end):  # type: ignore[no-untyped-def]
    """Return the place after the closing quote of a string with simple escapes; -1: it needs a library."""
    while place < end:
        byte = at(data, place)
        if byte == _QUOTE:
            return np.int64(place + 1)
        if byte < 32:
            return _FAILED
        if byte == _BACKSLASH:
            place += 1
            if place >= end:
                return _FAILED
            # One of " \ / b f n r t; \u may be half of a surrogate pair.
            code = at(data, place)
            known = code == 34 or code == 92 or code == 47 or code == 98 or code == 102
            if not (known or code == 110 or code == 114 or code == 116):
                return _FAILED
        place += 1
    return _FAILED


@inline
def _literal(data, place, end):  # type: ignore[no-untyped-def]
    """Return ``(place after, is null)`` of ``true``, ``false`` or ``null`` at ``place``; -1: none."""
    if place + 4 <= end:
        a, b, c, d = at(data, place), at(data, place + 1), at(data, place + 2), at(data, place + 3)
        if a == 110 and b == 117 and c == 108 and d == 108:
            return np.int64(place + 4), True
        if a == 116 and b == 114 and c == 117 and d == 101:
            return np.int64(place + 4), False
        if a == 102 and b == 97 and c == 108 and d == 115 and place + 5 <= end and at(data, place + 4) == 101:
            return np.int64(place + 5), False
    return _FAILED, False


@inline
def _number(data, place, end):  # type: ignore[no-untyped-def]
    """Return ``(place after, tag, value)`` of the number at ``place``; -1: none, or not a plain one."""
    start = place
    negative = at(data, place) == _MINUS
    if negative:
        place += 1
    first = place
    value = np.int64(0)
    while place < end and _ZERO <= at(data, place) <= _NINE:
        if place - first < _MOST_DIGITS:
            value = value * 10 + (np.int64(at(data, place)) - _ZERO)
        place += 1
    digits = place - first
    if digits == 0 or (digits > 1 and at(data, first) == _ZERO):
        return _FAILED, NULL, value
    if place < end and at(data, place) == _POINT:
        place += 1
        fraction = place
        while place < end and _ZERO <= at(data, place) <= _NINE:
            place += 1
        if place == fraction or place - start > 100 or (place < end and (at(data, place) | 32) == 101):
            return _FAILED, NULL, value
        return np.int64(place), NUMBER, value
    if place < end and (at(data, place) | 32) == 101:
        return _FAILED, NULL, value
    if negative and digits == 1 and value == 0:
        return _FAILED, NULL, value
    if digits > _MOST_DIGITS:
        return np.int64(place), TEXT, value
    return np.int64(place), INTEGER, -value if negative else value


@inline
def plain_value(data, place, end):  # type: ignore[no-untyped-def]
    """Read the scalar at ``place``: ``(place after, tag, value, begin, end)``; -1: no plain scalar."""
    byte = at(data, place)
    if byte == _QUOTE:
        close = plain_string(data, place + 1, end)
        if close < 0:
            return _FAILED, NULL, np.int64(0), place, place
        return close + 1, TEXT, np.int64(0), place + 1, close
    if byte == _MINUS or _ZERO <= byte <= _NINE:
        after, tag, number = _number(data, place, end)
        return after, tag, number, place, after
    after, is_null = _literal(data, place, end)
    return after, NULL if is_null else TEXT, np.int64(0), place, after


@inline
def _skip_scalar(data, place, end):  # type: ignore[no-untyped-def]
    """Return the place after any scalar at ``place``; -1: it is not valid, or needs a library."""
    byte = at(data, place)
    if byte == _QUOTE:
        return _any_string(data, place + 1, end)
    if byte == _MINUS or _ZERO <= byte <= _NINE:
        return _skip_number(data, place, end)
    after, _ = _literal(data, place, end)
    return after


@inline
def _skip_number(data, place, end):  # type: ignore[no-untyped-def]
    if at(data, place) == _MINUS:
        place += 1
    first = place
    while place < end and _ZERO <= at(data, place) <= _NINE:
        place += 1
    if place == first or (place - first > 1 and at(data, first) == _ZERO):
        return _FAILED
    if place < end and at(data, place) == _POINT:
        fraction = place + 1
        place = fraction
        while place < end and _ZERO <= at(data, place) <= _NINE:
            place += 1
        if place == fraction:
            return _FAILED
    if place < end and (at(data, place) | 32) == 101:
        place += 1
        if place < end and (at(data, place) == 43 or at(data, place) == _MINUS):
            place += 1
        exponent = place
        while place < end and _ZERO <= at(data, place) <= _NINE:
            place += 1
        if place == exponent:
            return _FAILED
    return np.int64(place)


@inline
def _skip_key(data, place, end):  # type: ignore[no-untyped-def]
    """Return the place of the value after the key at ``place``; -1: there is no key and colon."""
    if place >= end or at(data, place) != _QUOTE:
        return _FAILED
    place = _any_string(data, place + 1, end)
    if place < 0:
        return _FAILED
    place = skip_blanks(data, place, end)
    if place >= end or at(data, place) != _COLON:
        return _FAILED
    place = skip_blanks(data, place + 1, end)
    return np.int64(place) if place < end else _FAILED


@inline
def _skip_value(data, place, end):  # type: ignore[no-untyped-def]
    """Return the place after the value at ``place``, whatever it is; -1: it is not valid, or needs a library.

    ``nesting`` holds one bit for each open container, the innermost lowest: 1 is an object.
    """
    nesting = np.uint64(0)
    depth = 0
    while True:
        byte = at(data, place)
        opened = False
        if byte in (_OPEN_OBJECT, _OPEN_LIST):
            if depth == _DEEPEST:
                return _FAILED
            depth += 1
            is_object = byte == _OPEN_OBJECT
            nesting = (nesting << np.uint64(1)) | np.uint64(is_object)
            place = skip_blanks(data, place + 1, end)
            if place >= end:
                return _FAILED
            if at(data, place) != (_CLOSE_OBJECT if is_object else _CLOSE_LIST):
                opened = True
        else:
            place = _skip_scalar(data, place, end)
            if place < 0:
                return _FAILED
        if opened:
            if nesting & np.uint64(1):
                place = _skip_key(data, place, end)
                if place < 0:
                    return _FAILED
            continue
        # After a value: close what ends here, then go on after a comma.
        while True:
            if depth == 0:
                return np.int64(place)
            place = skip_blanks(data, place, end)
            if place >= end:
                return _FAILED
            byte = at(data, place)
            is_object = (nesting & np.uint64(1)) != 0
            if byte == _COMMA:
                place = skip_blanks(data, place + 1, end)
                if place >= end:
                    return _FAILED
                if is_object:
                    place = _skip_key(data, place, end)
                    if place < 0:
                        return _FAILED
                break
            if byte != (_CLOSE_OBJECT if is_object else _CLOSE_LIST):
                return _FAILED
            place += 1
            depth -= 1
            nesting >>= np.uint64(1)


@inline
def _key_equals(data, begin, end, names, name_borders, column):  # type: ignore[no-untyped-def]
    start = name_borders[column]
    if end - begin != name_borders[column + 1] - start:
        return False
    for offset in range(end - begin):
        if at(data, begin + offset) != at(names, start + offset):
            return False
    return True


@inline
def _find_column(data, begin, end, names, name_borders, guess):  # type: ignore[no-untyped-def]
    """Return the wanted column of a key, -1 where it is not wanted; ``guess`` is tried first."""
    columns = len(name_borders) - 1
    if guess < columns and _key_equals(data, begin, end, names, name_borders, guess):
        return guess
    for column in range(columns):
        if _key_equals(data, begin, end, names, name_borders, column):
            return column
    return -1


@kernel
def read_plain_rows(  # type: ignore[no-untyped-def]
    data,
    starts,
    ends,
    names,
    name_borders,
    kinds,
    slots,
    tags,
    values,
    begins,
    stops,
    list_tags,
    list_values,
    list_begins,
    list_stops,
    list_borders,
    list_known,
    plain,
):
    """Read the wanted values of every row that is plain.

    Args:
        data: uint8, the block.
        starts: Where each row begins; int [n].
        ends: Where each row ends.
        names: uint8, the wanted keys one after the other.
        name_borders: int64 [columns + 1], where each key begins in ``names``.
        kinds: uint8 [columns]: SCALAR, LIST or SPAN.
        slots: int64 [columns]: the column's row in the lists' arrays, or in those of all others.
        tags: uint8 [scalars, n], all NULL; ``values`` int64, ``begins`` and ``stops`` int32 likewise.
        list_tags: uint8 [lists, room]; ``list_values``, ``list_begins`` and ``list_stops`` likewise.
        list_borders: int64 [lists, n + 1], where the elements of each row begin.
        list_known: bool [lists, n], all False: the row has a list.
        plain: bool [n]: the row was read. What stands at other rows is without meaning, but borders fit.
    """
    columns = len(kinds)
    lists = len(list_borders)
    used = np.zeros(lists, np.int64)
    seen = np.full(columns, -1, np.int64)
    for row in range(len(starts)):
        place, end = np.int64(starts[row]), np.int64(ends[row])
        for number in range(lists):
            list_borders[number, row] = used[number]
        good = False
        place = skip_blanks(data, place, end)
        if place < end and at(data, place) == _OPEN_OBJECT:
            place = skip_blanks(data, place + 1, end)
            guess = 0
            if place < end and at(data, place) == _CLOSE_OBJECT:
                good = True
                place += 1
            else:
                while True:
                    # A key.
                    if place >= end or at(data, place) != _QUOTE:
                        break
                    close = plain_string(data, place + 1, end)
                    if close < 0:
                        break
                    column = _find_column(data, place + 1, close, names, name_borders, guess)
                    place = skip_blanks(data, close + 1, end)
                    if place >= end or at(data, place) != _COLON:
                        break
                    place = skip_blanks(data, place + 1, end)
                    if place >= end:
                        break
                    # Its value.
                    if column < 0:
                        place = _skip_value(data, place, end)
                        if place < 0:
                            break
                    else:
                        if seen[column] == row:
                            break
                        seen[column] = row
                        guess = column + 1
                        slot = slots[column]
                        if kinds[column] == LIST and at(data, place) == _OPEN_LIST:
                            list_known[slot, row] = True
                            count = used[slot]
                            place = skip_blanks(data, place + 1, end)
                            whole = place < end and at(data, place) == _CLOSE_LIST
                            while not whole and place < end:
                                after, tag, value, begin, stop = plain_value(data, place, end)
                                if after < 0:
                                    break
                                list_tags[slot, count] = tag
                                list_values[slot, count] = value
                                if tag > INTEGER:
                                    list_begins[slot, count] = begin
                                    list_stops[slot, count] = stop
                                count += 1
                                place = after
                                if place < end and at(data, place) <= 32:
                                    place = skip_blanks(data, place, end)
                                if place >= end:
                                    break
                                byte = at(data, place)
                                if byte == _COMMA:
                                    place += 1
                                    if place < end and at(data, place) <= 32:
                                        place = skip_blanks(data, place, end)
                                elif byte == _CLOSE_LIST:
                                    whole = True
                                else:
                                    break
                            if not whole:
                                break
                            used[slot] = count
                            place += 1
                        elif kinds[column] == SPAN:
                            begins[slot, row] = place
                            tags[slot, row] = NULL if at(data, place) == 110 else TEXT
                            place = _skip_value(data, place, end)
                            if place < 0:
                                break
                            stops[slot, row] = place
                        else:
                            after, tag, value, begin, stop = plain_value(data, place, end)
                            if after < 0 or (kinds[column] == LIST and tag != NULL):
                                break
                            place = after
                            if kinds[column] == SCALAR:
                                tags[slot, row] = tag
                                values[slot, row] = value
                                begins[slot, row] = begin
                                stops[slot, row] = stop
                    # What follows.
                    place = skip_blanks(data, place, end)
                    if place >= end:
                        break
                    if at(data, place) == _CLOSE_OBJECT:
                        good = True
                        place += 1
                        break
                    if at(data, place) != _COMMA:
                        break
                    place = skip_blanks(data, place + 1, end)
        plain[row] = good and skip_blanks(data, place, end) == end
        if not plain[row]:
            for number in range(lists):
                used[number] = list_borders[number, row]
                list_known[number, row] = False
    for number in range(lists):
        list_borders[number, len(starts)] = used[number]
