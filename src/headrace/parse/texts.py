"""Python values and Arrow arrays as id texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.errors import VocabularyError
from headrace.sources.values import float_text, floats_as_text


def to_id_texts(values: Iterable[Any] | pa.Array) -> pa.Array:
    """Return an Arrow array of id texts: int64, uint64 or large_string, nulls for missing ones.

    Args:
        values: Texts, integers, integral or other floats, booleans, ``None``; any iterable,
            a NumPy array or an Arrow array; one level of lists is flattened.

    Raises:
        VocabularyError: A value is none of these, with its index; or a text has half a surrogate pair.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, np.ndarray):
        values = values.ravel() if values.ndim else values.item()
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuU":
        values = pa.array(values)
    if isinstance(values, pa.Array):
        return _from_arrow(values)
    if isinstance(values, str | bytes):
        raise VocabularyError(f"the values are one text, {values[:40]!r}; give a list of texts.")
    if not isinstance(values, Iterable) or isinstance(values, Mapping):
        raise VocabularyError(f"the values are a {type(values).__name__}; give a list of texts.")
    return _array(values)


def _array(values: Iterable[Any]) -> pa.Array:
    try:
        return pa.array(_flat_texts(values), pa.large_string())
    except UnicodeEncodeError as error:
        raise VocabularyError(
            f"a text is not valid Unicode ({error.reason}): {error.object[:40]!r}."
        ) from None


_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def _from_arrow(array: pa.Array) -> pa.Array:
    kind = array.type
    if any(is_one(kind) for is_one in _LISTS):
        return _from_arrow(array.flatten())
    if pa.types.is_dictionary(kind):
        return _from_arrow(array.dictionary_decode())
    if pa.types.is_integer(kind):
        return array.cast(pa.uint64() if pa.types.is_unsigned_integer(kind) else pa.int64())
    if pa.types.is_null(kind) or pa.types.is_large_string(kind) or pa.types.is_string(kind):
        return array
    if pa.types.is_string_view(kind):
        return array.cast(pa.large_string())
    if pa.types.is_floating(kind):
        return floats_as_text(array).cast(pa.large_string())
    return _array(array.to_pylist())


def _flat_texts(values: Iterable[Any]) -> list[str | None]:
    texts: list[str | None] = []
    for place, value in enumerate(values):
        elements = value if isinstance(value, list | tuple) else (value,)
        for element in elements:
            try:
                texts.append(id_text(element))
            except TypeError as error:
                raise VocabularyError(f"index {place}: {error}") from None
            except UnicodeDecodeError as error:
                raise VocabularyError(
                    f"index {place}: {element!r} is not valid UTF-8 ({error.reason})."
                ) from None
    return texts


def id_text(value: Any) -> str | None:
    """Return the id text of one value: a text as it is, an integer in decimal, ``None`` as ``None``.

    An integral float is its integer (``1001.0`` is ``1001``), another float its shortest
    text that round-trips in its own width; booleans are ``true`` and ``false``.

    Raises:
        TypeError: The value is none of these.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        return float_text(float(value) if isinstance(value, float) else float(str(value)))
    if isinstance(value, bytes):
        return value.decode()
    raise TypeError(f"{value!r} is a {type(value).__name__}; an id is a text, a number or missing.")
