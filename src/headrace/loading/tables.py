"""From columns to what the gather kernel reads: addresses, limits and operations."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from headrace.errors import LoaderError
from headrace.kernels import operations as kernels
from headrace.loading import columns as declared
from headrace.loading.columns import Arrays, Bitmap, Column, Validity

_UNSIGNED = tuple(np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64"))
_INT64, _FLOAT32, _BOOL, _INT32 = (np.dtype(name) for name in ("int64", "float32", "bool", "int32"))
_OFFSETS = (_INT32, _INT64)
_LIBC = ctypes.CDLL(None)
_PAGE = mmap.PAGESIZE
_WILL_NEED = mmap.MADV_WILLNEED


@dataclass(frozen=True)
class Output:
    """One array of a batch."""

    name: str
    dtype: np.dtype[Any]
    slot: int
    """Its place among the addresses of the outputs."""
    operation: int
    """The operation that writes it."""
    columns: str = ""
    """What its second dimension is: "" none, "width" of the operation, or "flat": it is a sum of lengths."""
    label: bool = False


@dataclass(frozen=True)
class Alike:
    """Outputs of one dtype and one shape, whose memory is asked for together."""

    dtype: np.dtype[Any]
    columns: str
    """As of each of the outputs."""
    operation: int
    """The operation that their second dimension is from."""
    places: tuple[int, ...]
    """Their places among all outputs."""
    slots: tuple[int, ...]
    """Their places among the addresses."""

    def shapes(self, sizes: Sequence[int], operations: NDArray[np.int64]) -> list[tuple[int, ...]]:
        """Return the shapes for batches of so many rows: of each output of the first, then of the second."""
        if self.columns == "":
            return [(size,) for size in sizes for _ in self.places]
        field = kernels.SIZE if self.columns == "flat" else kernels.WIDTH
        widths = operations[:, self.operation, field].tolist()
        if len(widths) != len(sizes):
            widths *= len(sizes)
        if self.columns == "flat":
            return [(width,) for width in widths for _ in self.places]
        return [shape for shape in zip(sizes, widths, strict=True) for _ in self.places]


@dataclass(frozen=True)
class Ragged:
    """What is asked of a ragged column beside its gather."""

    name: str
    operation: int
    max_length: int
    offsets: Arrays
    weighted: bool


@dataclass(frozen=True)
class Table:
    """Everything that the kernel needs, and the arrays that keep the addresses valid."""

    operations: NDArray[np.int64]
    addresses: NDArray[np.uint64]
    limits: NDArray[np.int64]
    outputs: tuple[Output, ...]
    ragged: tuple[Ragged, ...]
    names: tuple[str, ...]
    """The column of each operation."""
    slots: int
    """Addresses of a batch: those of the outputs, and of ``sample_id`` behind them."""
    owners: tuple[Any, ...]
    alike: tuple[Alike, ...]
    """The outputs by dtype and shape, and ``sample_id`` as if it were the last of them."""

    def over(self, columns: Sequence[Column]) -> Table:
        """Return the table of other arrays of the same columns, as one shard, without ``name_present``.

        Raises:
            LoaderError: An array is not of the dtype that the column has here.
        """
        arrays, limits = [], []
        for column in columns:
            for array, limit in _arrays_of(column):
                arrays.append(np.ascontiguousarray(array))
                limits.append(limit)
        if [array.dtype for array in arrays] != [owner[0].dtype for owner in self.owners]:
            raise LoaderError("these arrays are of other columns, or of other dtypes.")
        return replace(
            self,
            operations=self._packed_operations,
            addresses=np.array([[_address(array)] for array in arrays], np.uint64),
            limits=np.array(limits, np.int64).reshape(-1, 1),
            owners=tuple([array] for array in arrays),
        )

    @cached_property
    def _packed_operations(self) -> NDArray[np.int64]:
        """The operations over arrays with nothing between their values."""
        operations = self.operations.copy()
        rows = operations[:, kernels.TABLE].tolist()
        operations[:, kernels.STRIDE] = [self.owners[row][0].itemsize for row in rows]
        operations[:, kernels.RECORD], operations[:, kernels.PLACE] = rows, 0
        return operations

    def read_ahead(self, shard: int, first: int, end: int) -> None:
        """Have the system read some rows of a shard, of every column."""
        for operation in self.operations:
            row = int(operation[kernels.TABLE])
            arrays = [self.owners[row][shard]]
            kind = int(operation[kernels.KIND])
            if kind == kernels.BITS:
                first_bit = int(self.limits[row, shard])
                _will_need(arrays[0][(first_bit + first) // 8 : (first_bit + end) // 8 + 1])
            elif kind in (kernels.PADDED, kernels.JAGGED):
                offsets = arrays[0]
                _will_need(offsets[first : end + 1])
                for values in (self.owners[row + 1][shard], self.owners[row + 2][shard]):
                    _will_need(values[offsets[first] : offsets[end]])
            else:
                _will_need(arrays[0][first:end])


def _common_stride(arrays: Arrays) -> int | None:
    """Return the bytes from one value to the next where all arrays run forwards with as many; else None."""
    strides = {array.strides for array in arrays if len(array) > 1}
    if len(strides) != 1:
        return None
    stride = strides.pop()
    return stride[0] if len(stride) == 1 and stride[0] > 0 else None


def _constant_distance(ours: Sequence[int], theirs: Sequence[int]) -> int | None:
    """Return how far their addresses are behind ours where that is the same for all that are not 0."""
    distances = (there - here for here, there in zip(ours, theirs, strict=True) if here and there)
    first = next(distances, None)
    return first if first is not None and all(other == first for other in distances) else None


def _will_need(array: NDArray[Any]) -> None:
    """Ask for the pages under an array; where they are no file's, nothing happens."""
    if array.size:
        start, end = byte_bounds(array)
        page = start - start % _PAGE
        _LIBC.madvise(ctypes.c_void_p(page), ctypes.c_size_t(end - page), _WILL_NEED)


@dataclass
class _Builder:
    shard_rows: tuple[int, ...]
    id_dtype: np.dtype[Any]
    masks: bool
    flat: bool
    operations: list[list[int]] = field(default_factory=list)
    addresses: list[list[int]] = field(default_factory=list)
    limits: list[list[int]] = field(default_factory=list)
    strides: list[int] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    ragged: list[Ragged] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    owners: list[Any] = field(default_factory=list)
    slots: int = 0

    def add(self, column: Column) -> None:
        """Add one column's operations and outputs."""
        self._check_validity(column.name, column.validity)
        if isinstance(column, declared.Ragged):
            self._add_ragged(column)
        elif isinstance(column, declared.Fixed):
            self._add_fixed(column)
        elif isinstance(column, declared.Label):
            self._add_label(column)
        else:
            self._add_values(column.name, column.values)
        if self.masks and not isinstance(column, declared.Label):
            self._add_bits(column.name, f"{column.name}_present", column.validity)

    def _add_values(self, name: str, arrays: Arrays, output: str | None = None, label: bool = False) -> None:
        dtype = self._dtype(name, arrays, (*_UNSIGNED, _INT64, _FLOAT32))
        target = _INT64 if label else self.id_dtype
        target = target if dtype in _UNSIGNED else dtype
        self._check_rows(name, arrays)
        self._output(output or name, target, label=label)
        self._operation(name, kernels.SCALAR, dtype, target, self._row(arrays, strided=True))

    def _add_label(self, label: declared.Label) -> None:
        self._add_values(label.name, label.values, label=True)
        if label.validity is not None:
            self._add_bits(label.name, f"{label.name}_mask", label.validity, label=True)
        if label.weights is not None:
            self._add_values(label.name, label.weights, f"{label.name}_weight", label=True)

    def _add_bits(self, name: str, output: str, validity: Validity, label: bool = False) -> None:
        bitmaps = [None] * len(self.shard_rows) if validity is None else list(validity)
        self._output(output, _BOOL, label=label)
        row = self._row([_bits_of(bitmap) for bitmap in bitmaps])
        self.limits[row] = [0 if bitmap is None else bitmap.offset for bitmap in bitmaps]
        self._operation(name, kernels.BITS, _BOOL, _BOOL, row)

    def _add_fixed(self, column: declared.Fixed) -> None:
        self._dtype(column.name, column.values, (_FLOAT32,))
        self._check_rows(column.name, column.values)
        widths = {values.shape[1:] for values in column.values}
        if len(widths) != 1 or len(next(iter(widths))) != 1:
            raise LoaderError(
                f"{column.name}: vectors have shapes {sorted(widths)}; they must be [n, D], D the same."
            )
        self._output(column.name, _FLOAT32, "width")
        width = next(iter(widths))[0]
        self._operation(column.name, kernels.VECTOR, _FLOAT32, _FLOAT32, self._row(column.values), width)

    def _add_ragged(self, column: declared.Ragged) -> None:
        dtype = self._dtype(column.name, column.values, _UNSIGNED)
        offsets = self._dtype(column.name, column.offsets, _OFFSETS)
        self._check_ragged(column)
        table = self._row(column.offsets, strided=True)
        self._row(column.values)
        self._row(column.weights or column.values)
        number = len(self.operations)
        kept = Ragged(column.name, number, column.max_length, column.offsets, column.weights is not None)
        self.ragged.append(kept)
        first = self._ragged_outputs(column, number)
        kind = kernels.JAGGED if self.flat else kernels.PADDED
        self._operation(column.name, kind, dtype, self.id_dtype, table, column.max_length)
        operation = self.operations[-1]
        operation[kernels.SIDE] = kernels.LEFT if column.pad == "left" else kernels.RIGHT
        operation[kernels.WIDE] = int(offsets == _INT64)
        operation[kernels.SLOT] = first

    def _ragged_outputs(self, column: declared.Ragged, number: int) -> int:
        first = self.slots
        self.slots += 4
        shape = "flat" if self.flat else "width"
        self.outputs.append(Output(column.name, self.id_dtype, first, number, shape))
        if not self.flat:
            self.outputs.append(Output(f"{column.name}_mask", _BOOL, first + 1, number, shape))
        self.outputs.append(Output(f"{column.name}_lengths", _INT32, first + 2, number))
        if column.weights is not None:
            self.outputs.append(Output(f"{column.name}_weights", _FLOAT32, first + 3, number, shape))
        return first

    def _output(self, name: str, dtype: np.dtype[Any], columns: str = "", label: bool = False) -> None:
        self.outputs.append(Output(name, dtype, self.slots, len(self.operations), columns, label))
        self.slots += 1

    def _operation(
        self, name: str, kind: int, source: np.dtype[Any], target: np.dtype[Any], table: int, width: int = 0
    ) -> None:
        codes = kernels.CODES
        self.names.append(name)
        settings = (kind, codes.get(source, 0), codes.get(target, 0), table, width, 0, 0, self.slots - 1, 0)
        self.operations.append([*settings, self.strides[table], *self._record_of(table)])

    def _row(self, arrays: Arrays, strided: bool = False) -> int:
        """Add a row of addresses, and return its number; ``strided`` arrays may be fields of records."""
        stride = _common_stride(arrays) if strided else None
        if stride is None:
            arrays = [np.ascontiguousarray(array) for array in arrays]
            stride = arrays[0].itemsize if arrays else 0
        self.owners.append(arrays)
        self.addresses.append([_address(array) for array in arrays])
        self.limits.append([array.size for array in arrays])
        self.strides.append(stride)
        return len(self.addresses) - 1

    def _record_of(self, table: int) -> tuple[int, int]:
        """Return the row of addresses of the first scalar in the same records, and the bytes from there.

        Arrays of which one begins as many bytes behind the other's in every shard, less than a stride, and
        goes on in the same strides, are fields of the same records. An empty array has no address, and is
        never read.
        """
        stride = self.strides[table]
        scalars = (row for row in self.operations if row[kernels.KIND] == kernels.SCALAR)
        for first in (row[kernels.TABLE] for row in scalars if row[kernels.TABLE] == row[kernels.RECORD]):
            place = _constant_distance(self.addresses[first], self.addresses[table])
            if place is not None and self.strides[first] == stride and abs(place) < stride:
                return first, place
        return table, 0

    def _dtype(self, name: str, arrays: Arrays, allowed: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
        if len(arrays) != len(self.shard_rows):
            raise LoaderError(f"{name}: {len(arrays)} arrays for {len(self.shard_rows)} shards.")
        dtypes = {array.dtype for array in arrays} or {allowed[0]}
        dtype = dtypes.pop()
        if dtypes or dtype not in allowed:
            found = ", ".join(sorted(str(each) for each in {dtype, *dtypes}))
            raise LoaderError(
                f"{name}: dtype {found}; it must be one of {', '.join(map(str, allowed))} in all shards."
            )
        return dtype

    def _check_rows(self, name: str, arrays: Arrays) -> None:
        for number, (array, rows) in enumerate(zip(arrays, self.shard_rows, strict=True)):
            if len(array) != rows:
                raise LoaderError(f"{name}: shard {number} has {len(array)} values for {rows} rows.")

    def _check_validity(self, name: str, validity: Validity) -> None:
        if validity is None:
            return
        if len(validity) != len(self.shard_rows):
            raise LoaderError(f"{name}: {len(validity)} bitmaps for {len(self.shard_rows)} shards.")
        for bitmap, rows in zip(validity, self.shard_rows, strict=True):
            if bitmap is not None and bitmap.bits.size * 8 < bitmap.offset + rows:
                raise LoaderError(f"{name}: a validity bitmap is shorter than the {rows} rows of its shard.")

    def _check_ragged(self, column: declared.Ragged) -> None:
        if column.max_length < 0 or column.max_length >= 1 << 31:
            raise LoaderError(f"{column.name}: max_length={column.max_length}; it must be in [0, 2**31).")
        for number, (offsets, rows) in enumerate(zip(column.offsets, self.shard_rows, strict=True)):
            if len(offsets) != rows + 1:
                raise LoaderError(
                    f"{column.name}: shard {number} has {len(offsets)} offsets for {rows} rows."
                )
        if column.weights is not None:
            self._dtype(f"{column.name} (weights)", column.weights, (_FLOAT32,))
            for number, (values, weights) in enumerate(zip(column.values, column.weights, strict=True)):
                if len(values) != len(weights):
                    raise LoaderError(
                        f"{column.name}: shard {number}: {len(values)} values, {len(weights)} weights."
                    )


def _arrays_of(column: Column) -> Iterator[tuple[NDArray[Any], int]]:
    """Yield the arrays of a column's first shard and their limits, in the order of ``_Builder.add``."""
    if isinstance(column, declared.Ragged):
        for arrays in (column.offsets, column.values, column.weights or column.values):
            yield arrays[0], arrays[0].size
        return
    yield column.values[0], column.values[0].size
    if isinstance(column, declared.Label):
        if column.validity is not None:
            bitmap = column.validity[0]
            yield _bits_of(bitmap), 0 if bitmap is None else bitmap.offset
        if column.weights is not None:
            yield column.weights[0], column.weights[0].size


def _bits_of(bitmap: Bitmap | None) -> NDArray[np.uint8]:
    return np.empty(0, np.uint8) if bitmap is None else bitmap.bits


def _address(array: NDArray[Any]) -> int:
    """Return where an array starts; 0 for an empty one, which is never read."""
    return int(array.__array_interface__["data"][0]) if array.size else 0


def build_table(
    columns: Sequence[Column], shard_rows: tuple[int, ...], id_dtype: np.dtype[Any], masks: bool, flat: bool
) -> Table:
    """Build the kernel's table of some columns.

    Raises:
        LoaderError: Arrays do not fit their column, or two outputs have one name.
    """
    builder = _Builder(shard_rows, id_dtype, masks, flat)
    for column in columns:
        builder.add(column)
    builder.outputs.append(Output("sample_id", _INT64, builder.slots, 0))
    _check_names([output.name for output in builder.outputs])
    shards = len(shard_rows)
    return Table(
        operations=np.array(builder.operations, np.int64).reshape(-1, kernels.OPERATION_FIELDS),
        addresses=np.array(builder.addresses, np.uint64).reshape(len(builder.addresses), shards),
        limits=np.array(builder.limits, np.int64).reshape(len(builder.limits), shards),
        outputs=tuple(builder.outputs),
        ragged=tuple(builder.ragged),
        names=tuple(builder.names),
        slots=builder.slots + 1,
        owners=tuple(builder.owners),
        alike=tuple(_alike(builder.outputs)),
    )


def _alike(outputs: Sequence[Output]) -> Iterator[Alike]:
    """Yield the outputs by dtype and shape."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, output in enumerate(outputs):
        operation = output.operation if output.columns else 0
        groups.setdefault((output.dtype, output.columns, operation), []).append(place)
    for (dtype, columns, operation), places in groups.items():
        yield Alike(dtype, columns, operation, tuple(places), tuple(outputs[place].slot for place in places))


def _check_names(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise LoaderError(f"two columns give '{name}' in a batch; rename one of them.")
        seen.add(name)
