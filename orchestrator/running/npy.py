"""Arrays of numbers or truth values, and `.npy` files of them.

NumPy reads and writes the files.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from tokenize import TokenError
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from orchestrator.errors import SourceSpan, UsageError

# `max_header_size` of numpy.lib.format: its default.
_MAX_HEADER_BYTES: Final = 10_000
"""Longest header that is parsed, as in NumPy: the cost of parsing is unbounded."""

_NAMES: Final = {
    "|b1": "bool",
    "|i1": "int8",
    "<i2": "int16",
    "<i4": "int32",
    "<i8": "int64",
    "|u1": "uint8",
    "<u2": "uint16",
    "<u4": "uint32",
    "<u8": "uint64",
    "<f2": "float16",
    "<f4": "float32",
    "<f8": "float64",
    "<c8": "complex64",
    "<c16": "complex128",
}
_HEADER_ERRORS: Final = (
    *(ValueError, TypeError, LookupError, AttributeError, SyntaxError, TokenError),
    *(MemoryError, RecursionError, OverflowError),
)
"""What NumPy raises on damaged headers: it evaluates them as Python literals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """A dense array of numbers or truth values.

    Args:
        dtype: NumPy's `descr`, little endian: `<f4`, `|i1`, `|b1`.
        shape: Sizes, outermost dimension first; empty for a single element.
        data: The elements in C order, little endian; `numel * item_bytes` bytes.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> Self:
        """The elements of a NumPy array, of any byte order and layout."""
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        return cls(dtype=little.dtype.str, shape=array.shape, data=little.tobytes())

    @property
    def numpy(self) -> npt.NDArray[Any]:
        """The items as a NumPy array, read-only."""
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)

    @property
    def item_bytes(self) -> int:
        """Size of one element in bytes."""
        return int(self.dtype[2:])

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def dtype_name(self) -> str:
        """NumPy's name of the dtype: `float32`."""
        return _NAMES[self.dtype]

    def __str__(self) -> str:
        return f"{self.dtype_name} {list(self.shape)}"


def dtype_name(dtype: str) -> str:
    """NumPy's name of a dtype of `Array`: `float32` for `<f4`."""
    return _NAMES[dtype]


def read_npy(data: bytes, *, file: str) -> Array:
    """The array in the bytes of a `.npy` file.

    Any byte order and both memory orders are read. Nothing in the file is trusted, and
    pickled objects are refused.

    Args:
        data: The whole file.
        file: Its name, for messages.

    Raises:
        UsageError: The file is no `.npy` file, is damaged, or holds something else
            than numbers or truth values (`bad-npy`).
    """
    with _in_file(file):
        return Array.of(_read(data, _NAMES.get))


def read_texts(data: bytes, *, file: str) -> npt.NDArray[Any] | None:
    """The texts in the bytes of a `.npy` file; None if it is one of other items.

    Raises:
        UsageError: As `read_npy`, or a text is none in UTF-8.
    """
    with _in_file(file):
        # Labels of `evaluate`.
        if _header(data)[0][2].kind not in "SU":
            return None
        try:
            found = _read(data, lambda _: "text")
            if found.dtype.kind == "S":
                return np.char.decode(found, "utf-8")
            return np.array(found.tolist(), "U")  # refuses what is no character
        except ValueError as error:
            raise _bad("a text in the .npy file is damaged", str(error), "UTF-8") from None


@contextmanager
def _in_file(file: str) -> Iterator[None]:
    """Names the file in errors."""
    try:
        yield
    except UsageError as error:
        where = SourceSpan(file=file)
        raise UsageError([replace(d, where=where) for d in error.diagnostics]) from None


def write_npy(item: Array) -> bytes:
    """The bytes of a `.npy` file, format version 1.0."""
    file = io.BytesIO()
    np.lib.format.write_array(file, item.numpy, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def _bad(
    message: str, found: str, expected: str, hint: str = "write it with numpy.save"
) -> UsageError:
    return UsageError.of("bad-npy", message, found=found, expected=expected, hint=hint)


def _read(data: bytes, name_of: Callable[[str], str | None]) -> npt.NDArray[Any]:
    """The items of a file whose dtype, as little endian, has a name."""
    (shape, fortran, dtype), start = _header(data)
    name = name_of(dtype.newbyteorder("<").str)
    if name is None:
        raise _bad(
            "unsupported dtype in the .npy file",
            found="Python objects" if dtype.hasobject else dtype.str,
            expected=", ".join(_NAMES.values()),
            hint="convert the array with astype before it is saved: texts with astype(str)",
        )
    # In Python's integers: a product of sizes may not fit those of NumPy.
    size_bytes = prod(shape) * dtype.itemsize
    if len(data) - start != size_bytes:
        raise _bad(
            "the size of the .npy file does not match its header",
            found=f"{len(data) - start} bytes of elements",
            expected=f"{size_bytes} for {name} {list(shape)}",
        )
    try:
        array = np.ndarray(shape, dtype, data, offset=start, order="F" if fortran else "C")
    except (ValueError, OverflowError) as error:  # limits of NumPy
        raise _damaged(str(error)) from None
    # Other bytes are undefined as `bool` in C++.
    if name == "bool" and (wrong := data[start:].translate(None, b"\0\1")):
        raise _bad("invalid bool in the .npy file", found=f"byte {wrong[0]}", expected="0 or 1")
    return array


def _header(data: bytes) -> tuple[tuple[tuple[int, ...], bool, np.dtype[Any]], int]:
    """Shape, whether it is in Fortran's order, and dtype; where the elements begin."""
    npy = np.lib.format
    file = io.BytesIO(data)
    try:
        version = npy.read_magic(file)
    except ValueError:
        raise _bad(
            "not a .npy file",
            found=f"{len(data)} bytes, beginning with {data[:8]!r}",
            expected=f"{npy.magic(1, 0)!r}",
        ) from None
    # Version 3.0 differs in the encoding of names, which no dtype of a tensor has.
    readers = {
        (1, 0): npy.read_array_header_1_0,
        (2, 0): npy.read_array_header_2_0,
        (3, 0): npy.read_array_header_2_0,
    }
    if version not in readers:
        raise _bad(
            "unknown format version of the .npy file",
            found=".".join(map(str, version)),
            expected="1.0, 2.0 or 3.0",
        )
    try:
        with warnings.catch_warnings():
            # On damaged text, Python's parser and NumPy warn before they fail.
            warnings.simplefilter("ignore")
            header = readers[version](file, max_header_size=_MAX_HEADER_BYTES)
    except _HEADER_ERRORS as error:
        raise _damaged(str(error)) from None
    # True is an int for NumPy, and a negative size passes its check of the header.
    if any(type(size) is not int or size < 0 for size in header[0]):
        raise _damaged(f"shape {header[0]!r}")
    return header, file.tell()


def _damaged(found: str) -> UsageError:
    return _bad(
        "the .npy header is damaged",
        found=f"{found.partition(chr(10))[0]:.80}",
        expected="{'descr': ..., 'fortran_order': ..., 'shape': ...}",
    )
